#!/usr/bin/env bash
# VirtualiZarr reads 5 and 1000 of a FITS image of uint64 as 0 and 1024.
#
# Versions: virtualizarr 2.8.0, astropy 8.0.2, zarr 3.4.2, obstore 0.12.1, obspec-utils 0.9.0, numpy 2.5.5.
# Behaviour: FITS has no unsigned integers, and stores them less 2**63, with a BZERO of 2**63, as its standard says.
# `FITSParser` adds a BZERO in float64 and shows the array as float64. What is stored for a small identifier is close to
# -2**63, where float64 has only each 1024th number, so numbers are off by up to 512, and those below 512 are 0. uint32 is
# right, as float64, and int64, which has no BZERO, is right. No warning says so. astropy reads all exactly.
# Expected before the run: the integers, at most rounded to float64 (5 and 1000 would stay as they are).
# Output seen:
#   uint64  astropy [5, 1000, 1099511627779]  VirtualiZarr float64 [0.0, 1024.0, 1099511627776.0]
#   int64   astropy [5, 1000, 1099511627779]  VirtualiZarr int64 [5, 1000, 1099511627779]
#   uint32  astropy [5, 1000, 4294967295]  VirtualiZarr float64 [5.0, 1000.0, 4294967295.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install virtualizarr==2.8.0 astropy==8.0.2 zarr==3.4.2 obstore==0.12.1 \
    obspec-utils==0.9.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import numpy as np
import zarr
from astropy.io import fits
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import FITSParser

registry = ObjectStoreRegistry({"file://": LocalStore()})
seen = {
    "uint64": ([5, 1000, 2**40 + 3], [0, 1024, 2**40], "float64"),
    "int64": ([5, 1000, 2**40 + 3], [5, 1000, 2**40 + 3], "int64"),
    "uint32": ([5, 1000, 2**32 - 1], [5, 1000, 2**32 - 1], "float64"),
}
for dtype, (numbers, expected, shown) in seen.items():
    path = f"{os.getcwd()}/{dtype}.fits"
    fits.PrimaryHDU(np.array(numbers, dtype)).writeto(path)
    store = FITSParser()(url=f"file://{path}", registry=registry)
    array = zarr.open_group(store=store, mode="r", zarr_format=3)["PRIMARY"]
    right = [int(number) for number in fits.getdata(path)]
    print(f"{dtype:6}  astropy {right}  VirtualiZarr {array.dtype} {array[:].tolist()}")
    assert right == numbers
    assert array[:].tolist() == expected and array.dtype == shown
PYTHON
