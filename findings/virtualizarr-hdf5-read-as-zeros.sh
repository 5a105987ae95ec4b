#!/usr/bin/env bash
# VirtualiZarr shows three layouts of HDF5 as zeros, and integers of fewer bits as other integers.
#
# Versions: virtualizarr 2.5.1, h5py 3.16.0, zarr 3.1.6, obstore 0.12.1, numpy 2.4.6.
# Behaviour: `HDFParser` finds no chunks in compact, external and virtual datasets; a Zarr reader
# takes what has no chunk for never written, and returns the fill value 0 without an error. An
# integer that has 12 of 32 bits, from bit 4 on (as instruments write), is served as all 32 bits:
# each value is 16 times as large.
# Expected before the run: the parser inlines compact data, and refuses the others by name.
# Output seen:
#   compact     h5py [1, 2, 3, 4]  VirtualiZarr [0, 0, 0, 0]
#   external    h5py [1, 2, 3, 4]  VirtualiZarr [0, 0, 0, 0]
#   virtual     h5py [1, 2, 3, 4]  VirtualiZarr [0, 0, 0, 0]
#   12 bits     h5py [1, 2, 3, 4]  VirtualiZarr [16, 32, 48, 64]
#   contiguous  h5py [1, 2, 3, 4]  VirtualiZarr [1, 2, 3, 4]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install virtualizarr==2.5.1 h5py==3.16.0 zarr==3.1.6 \
    obstore==0.12.1 obspec-utils==0.9.0 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import h5py
import numpy as np
import zarr
from h5py import h5d, h5p, h5s, h5t
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import HDFParser

values = np.arange(1, 5, dtype="i4")
path = f"{os.getcwd()}/layouts.h5"
with h5py.File(path, "w") as file:
    space = h5s.create_simple((4,))
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_layout(h5d.COMPACT)
    compact = h5d.create(file.id, b"compact", h5t.NATIVE_INT32, space, layout)
    compact.write(h5s.ALL, h5s.ALL, values)
    external = [(f"{os.getcwd()}/external.raw", 0, 16)]
    file.create_dataset("external", shape=(4,), dtype="i4", external=external)[:] = values
    file.create_dataset("contiguous", data=values)
    virtual = h5py.VirtualLayout((4,), "i4")
    virtual[:] = h5py.VirtualSource(file["contiguous"])
    file.create_virtual_dataset("virtual", virtual)
    bits = h5t.NATIVE_INT32.copy()
    bits.set_precision(12)
    bits.set_offset(4)
    h5d.create(file.id, b"12 bits", bits, space).write(h5s.ALL, h5s.ALL, values)
registry = ObjectStoreRegistry({"file://": LocalStore()})
store = HDFParser()(url=f"file://{path}", registry=registry)
group = zarr.open_group(store=store, mode="r", zarr_format=3)
seen = {"compact": 0, "external": 0, "virtual": 0, "12 bits": 16, "contiguous": 1}
with h5py.File(path) as file:
    for name, factor in seen.items():
        right, read = file[name][:].tolist(), group[name][:].tolist()
        print(f"{name:11} h5py {right}  VirtualiZarr {read}")
        assert right == values.tolist()
        assert read == (values * factor).tolist()
PYTHON
