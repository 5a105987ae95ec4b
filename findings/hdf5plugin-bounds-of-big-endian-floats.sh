#!/usr/bin/env bash
# The HDF5 filters that promise an error bound lose big-endian floats.
#
# Versions: hdf5plugin 7.1.0, h5py 3.16.0, numpy 2.4.6.
# Behaviour: SZ, SZ3, SPERR and ZFP, each asked for an absolute error of at most 0.001, keep it for
# native float32. HDF5 hands them the bytes of the type in the file. If this is ">f4", as it is for
# arrays out of NetCDF-3 and FITS files, they compute with the bytes in the wrong order: 4096
# different numbers become one that is 0 or almost so, or (SPERR) a large one. h5py reads it
# without an error.
# One would expect: the filters swap the bytes, or refuse the type when the dataset is made.
# Output seen:
#   filter  native float32   big-endian float32
#   SZ      [1, 2, 3]        0 everywhere
#   SZ3     [1, 2, 3]        0 everywhere
#   SPERR   [1, 2, 3]        15730737152 everywhere
#   ZFP     [1, 2, 3]        0 everywhere
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install hdf5plugin==7.1.0 h5py==3.16.0 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - 2>/dev/null <<'PYTHON'
import h5py
import hdf5plugin
import numpy as np

values = np.arange(4096, dtype="f4").reshape(64, 64)
filters = {
    "SZ": hdf5plugin.SZ(absolute=0.001),
    "SZ3": hdf5plugin.SZ3(absolute=0.001),
    "SPERR": hdf5plugin.Sperr(absolute=0.001),
    "ZFP": hdf5plugin.Zfp(accuracy=0.001),
}
print("filter  native float32   big-endian float32")
for name, options in filters.items():
    found = {}
    for dtype in ("<f4", ">f4"):
        with h5py.File("a.h5", "w") as file:
            file.create_dataset("a", data=values.astype(dtype), chunks=(64, 64), **options)
        with h5py.File("a.h5") as file:
            found[dtype] = file["a"][...]
    native, swapped = found.values()
    assert abs(native - values).max() < 0.0011
    first = [round(x) for x in native[0, 1:4].tolist()]
    unique = np.unique(swapped)
    assert unique.size == 1
    print(f"{name:<7} {first}        {unique[0]:.0f} everywhere")
    assert (abs(unique[0]) < 0.001) == (name != "SPERR")
PYTHON
