#!/usr/bin/env bash
# cubed cuts the mean of integers to an integer, if it is to skip NaN, and that of booleans to True.
#
# Versions: cubed 0.27.0, numpy 2.4.6.
# Behaviour: cubed.nanmean gives the mean of integers in the type of the integers, without its fraction, and
# sums of uint64 wrap before the division. The mean of complex numbers loses its imaginary part
# once there are more than four chunks. `mean` is right for all three, yet the mean of booleans is
# True. The product vecdot lacks the conjugate that the array API demands. Nothing is reported.
# Expected before the run: the numbers of NumPy, or a refusal.
# Output seen:
#   nanmean of int32       NumPy 1.5                    cubed 1
#   nanmean of uint64      NumPy 4.611686018427388e+18  cubed 1
#   nanmean of complex128  NumPy (4.5-4.5j)             cubed (4.5+0j)
#   mean of bool           NumPy 0.3                    cubed True
#   vecdot of complex128   NumPy (570+0j)               cubed -570j
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install cubed==0.27.0 numpy==2.4.6
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import cubed
import cubed.array_api as xp
import numpy as np


def compare(name, right, lazy, expected):
    found = lazy.compute()[()]
    print(f"{name:21}  NumPy {right!s:21}  cubed {found}")
    assert found == expected and found != right


def chunked(values):
    return cubed.from_array(values, chunks=2)


integers = np.array([1, 2, 1, 2], "i4")
large = np.array([2**63, 2**63, 0, 4], "u8")
complexes = np.arange(10) * (1 - 1j)
flags = np.arange(10) < 3
lazy = chunked(complexes)
for values in integers, large, complexes:
    np.testing.assert_allclose(xp.mean(chunked(values)).compute(), values.mean())
compare("nanmean of int32", np.nanmean(integers), cubed.nanmean(chunked(integers)), 1)
compare("nanmean of uint64", np.nanmean(large), cubed.nanmean(chunked(large)), 1)
compare("nanmean of complex128", np.nanmean(complexes), cubed.nanmean(lazy), 4.5)
compare("mean of bool", np.mean(flags), xp.mean(chunked(flags)), True)
compare("vecdot of complex128", np.vecdot(complexes, complexes), xp.vecdot(lazy, lazy), -570j)
PYTHON
