#!/usr/bin/env bash
# dyna-zarr finds 0 as the standard deviation of three times in seconds that are a second apart.
#
# Versions: dyna-zarr 0.1.1 (lazy operations on Zarr arrays), zarr 3.4.2, numpy 2.5.5.
# Behaviour: the variance is the mean of the squares less the square of the mean, in float64. If the numbers are large beside
# their spread, such as times since 1970 or coordinates of a map in metres, all digits cancel: the deviation is 0, or
# far too large. The imaginary part of complex numbers is left out, with a warning of NumPy. The mean of 64-bit integers
# adds them up in 64 bits: that of 2**63 and 2**63 is 0. The mean of float16 is infinite where the sum is, with a warning.
# Expected before the run: what NumPy finds for the same array.
# Output seen:
#   float64 [1700000000.0, 1700000001.0, 1700000002.0]  std NumPy 0.8165 dyna-zarr 0
#   float64 [5200000.1, 5200000.2, 5200000.3]           std NumPy 0.08165 dyna-zarr 0
#   float64 [9007199254740992.0, 9007199254740994.0]    std NumPy 1.414 dyna-zarr 1.342e+08
#   complex128 [(1+2j), (1-2j)]                         std NumPy 2 dyna-zarr 0
#   uint64 [9223372036854775808, 9223372036854775808]   mean NumPy 9.223e+18 dyna-zarr 0
#   int64 [4611686018427387904, 4611686018427387904]    mean NumPy 4.612e+18 dyna-zarr -4.612e+18
#   float16 [40000.0, 40000.0]                          mean NumPy 4e+04 dyna-zarr inf
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install dyna-zarr==0.1.1 zarr==3.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import dyna_zarr
import numpy as np
import zarr
from dyna_zarr import operations


def check(function, dtype, numbers, right, seen):
    values = np.array(numbers, dtype)
    stored = zarr.create_array({}, shape=values.shape, chunks=(1,), dtype=dtype)
    stored[...] = values
    by_numpy = f"{getattr(np, function)(values):.4g}"
    lazy = getattr(operations, function)(dyna_zarr.DynamicArray(stored))
    found = f"{lazy.compute():.4g}"
    print(f"{f'{dtype} {values.tolist()}':51} {function} NumPy {by_numpy} dyna-zarr {found}")
    assert by_numpy == right and found == seen


check("std", "float64", [1.7e9, 1.7e9 + 1, 1.7e9 + 2], "0.8165", "0")
check("std", "float64", [5200000.1, 5200000.2, 5200000.3], "0.08165", "0")
check("std", "float64", [2.0**53, 2.0**53 + 2], "1.414", "1.342e+08")
check("std", "complex128", [1 + 2j, 1 - 2j], "2", "0")
check("mean", "uint64", [2**63, 2**63], "9.223e+18", "0")
check("mean", "int64", [2**62, 2**62], "4.612e+18", "-4.612e+18")
check("mean", "float16", [40000, 40000], "4e+04", "inf")
PYTHON
