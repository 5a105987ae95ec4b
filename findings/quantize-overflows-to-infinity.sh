#!/usr/bin/env bash
# Numbers that a Zarr array rounds to three digits come back as infinity, from 64 on as float16.
#
# Versions: numcodecs 0.16.5, zarr 3.1.6, numpy 2.4.6.
# Behaviour: Quantize(digits) multiplies with a power of two, rounds, and divides, all in the type of
# the array. In float16, which ends at 65504, the product is infinite from 64 on for three digits, and
# infinity divided is infinity: temperatures in kelvin are lost, with no warning when the array is
# read. In float32 it happens from 3.3e35 on, so also to 9.96921e36, which netCDF stores for missing
# values. The values that are lost need no rounding: float16 has no fractions above 1024.
# One would expect: values so large stay as they are.
# Output seen:
#   float16 written [1.0, 63.96875, 64.0, 273.25] read [1.0, 63.96875, inf, inf]
#   float32 written [1.0, 9.969209968386869e+36] read [1.0, inf]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install numcodecs==0.16.5 zarr==3.1.6 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import zarr
from zarr.codecs.numcodecs import Quantize


def show(values, expected):
    array = zarr.create_array(
        {}, shape=values.shape, dtype=values.dtype, compressors=None,
        filters=[Quantize(digits=3, dtype=values.dtype.str)],
    )
    array[:] = values
    print(values.dtype, "written", values.tolist(), "read", array[:].tolist())
    assert array[:].tolist() == expected


show(np.array([1, 63.96875, 64, 273.25], "f2"), [1.0, 63.96875, np.inf, np.inf])
show(np.array([1, 9.969209968386869e36], "f4"), [1.0, np.inf])
PYTHON
