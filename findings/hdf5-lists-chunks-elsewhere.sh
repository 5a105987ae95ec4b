#!/usr/bin/env bash
# HDF5 2.0 lists chunks at places beyond the array, and kerchunk reads zeros where data are.
#
# Versions: h5py 3.16.0 with HDF5 2.0.0, kerchunk 0.2.10, virtualizarr 2.5.1, zarr 3.1.6, numpy 2.4.6.
# Behaviour: in a file of `libver="latest"`, a dataset of which one axis is unlimited, and that is not
# the first, has an index (an extensible array) that counts the unlimited axis as the slowest. h5py
# reads such a dataset right, but `chunk_iter`, `get_chunk_info` and `get_chunk_info_by_coord` agree on
# places that are not those of the chunks: the offset of a chunk in an array of 6 × 6 is (0, 15).
# kerchunk makes references for places that do not exist, and what has no reference reads as 0 without
# an error. VirtualiZarr raises IndexError if a place lies outside the array.
# One would expect: the places are those that were written, as in files for older versions, and as
# where the first axis is the unlimited one.
# Output seen:
#   earliest, unlimited axis 0: chunks elsewhere 0 of 6; kerchunk 0 of 36 wrong, 0 of them zero
#   earliest, unlimited axis 1: chunks elsewhere 0 of 6; kerchunk 0 of 36 wrong, 0 of them zero
#   latest, unlimited axis 0: chunks elsewhere 0 of 6; kerchunk 0 of 36 wrong, 0 of them zero
#   latest, unlimited axis 1: chunks elsewhere 5 of 6; kerchunk 30 of 36 wrong, 24 of them zero
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install h5py==3.16.0 kerchunk==0.2.10 virtualizarr==2.5.1 \
    zarr==3.1.6 obstore==0.12.1 obspec-utils==0.9.0 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import h5py
import numpy as np
import zarr
from kerchunk.hdf import SingleHdf5ToZarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import HDFParser

assert h5py.version.hdf5_version == "2.0.0"
values = np.arange(1, 37, dtype="i4").reshape(6, 6)
registry = ObjectStoreRegistry({"file://": LocalStore()})
for libver, axis, elsewhere, wrong, zero in (
    ("earliest", 0, 0, 0, 0),
    ("earliest", 1, 0, 0, 0),
    ("latest", 0, 0, 0, 0),
    ("latest", 1, 5, 30, 24),
):
    path = f"{os.getcwd()}/{libver}{axis}.h5"
    longest = [6, 6]
    longest[axis] = None
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("x", data=values, maxshape=longest, chunks=(2, 3))
    raw = np.memmap(path, np.uint8, "r")
    listed = []
    with h5py.File(path) as file:
        assert (file["x"][:] == values).all()
        chunks = file["x"].id
        chunks.chunk_iter(lambda chunk: listed.append((chunk.chunk_offset, chunk.byte_offset)))
        for number, (place, at) in enumerate(listed):
            assert chunks.get_chunk_info(number).chunk_offset == place
            assert chunks.get_chunk_info_by_coord(place).byte_offset == at
    off = 0
    for (i, j), at in listed:
        stored = raw[at : at + 24].view("i4").reshape(2, 3)
        here = values[i : i + 2, j : j + 3]
        off += here.shape != (2, 3) or bool((stored != here).any())
    options = {
        "fo": SingleHdf5ToZarr(path, inline_threshold=0).translate(),
        "asynchronous": True,
        "remote_protocol": "file",
        "remote_options": {"asynchronous": True},
    }
    store = zarr.storage.FsspecStore.from_url(
        "reference://", storage_options=options, read_only=True
    )
    read = zarr.open_group(store, mode="r", zarr_format=2)["x"][:]
    different = read != values
    print(
        f"{libver}, unlimited axis {axis}: chunks elsewhere {off} of {len(listed)}; kerchunk "
        f"{different.sum()} of 36 wrong, {(read == 0).sum()} of them zero"
    )
    assert (off, different.sum(), (read == 0).sum()) == (elsewhere, wrong, zero)
    try:
        HDFParser()(url=f"file://{path}", registry=registry)
        refused = False
    except IndexError:
        refused = True
    assert refused == (elsewhere > 0)
PYTHON
