#!/usr/bin/env bash
# dask pads an array by less than was asked if the padding is wider than the axis.
#
# Versions: dask 2026.8.0, xarray 2026.9.0, numpy 2.4.6.
# Behaviour: dask.array.pad repeats the axis once on each side at most with the modes "wrap", "reflect"
# and "symmetric". A padding that is wider gives a smaller array, without an error. NumPy
# repeats it as often as is needed. xarray passes it on: the same call gives two sizes, by
# whether the variable is in chunks.
# Expected before the run: the shape and the values of numpy.pad, which dask's documentation refers to.
# Output seen:
#   4 elements, 6 more on each side
#   wrap       NumPy 16  dask 10 elements
#   reflect    NumPy 16  dask 9 elements
#   symmetric  NumPy 16  dask 10 elements
#   xarray     NumPy 2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1
#   xarray     dask  2,3,0,1,2,3,0,1,2,3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install "dask[array]==2026.8.0" xarray==2026.9.0 numpy==2.4.6
"$folder/venv/bin/python" -I - <<'PYTHON'
import dask.array as da
import numpy as np
import xarray

values = np.arange(4)
lazy = da.from_array(values, chunks=2)
print("4 elements, 6 more on each side")
for mode, size in {"wrap": 10, "reflect": 9, "symmetric": 10}.items():
    right = np.pad(values, 6, mode=mode)
    padded = da.pad(lazy, 6, mode=mode)
    found = padded.compute()
    print(f"{mode:9}  NumPy {right.size}  dask {found.size} elements")
    assert right.shape == (16,) and padded.shape == found.shape == (size,)
for name, data, size in ("NumPy", values, 16), ("dask ", lazy, 10):
    found = xarray.DataArray(data, dims="x").pad(x=6, mode="wrap").values
    print("xarray    ", name, ",".join(map(str, found)))
    assert found.shape == (size,)
PYTHON
