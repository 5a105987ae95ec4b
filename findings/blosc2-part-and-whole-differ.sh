#!/usr/bin/env bash
# An expression of python-blosc2 has one value in a slice and another in the whole array.
#
# Versions: blosc2 4.14.1, numexpr 2.14.2, numpy 2.4.6.
# Behaviour: `a / b` of two integer arrays says that it is float64. Its slices are so: -7 / 2 is -3.5.
# `[:]` and `compute()` divide as C does and give -3.0, still as float64; `%` has the sign that it
# has in C. Integers above 2**53 lose their last bits in the whole: the slice says that 2**53 + 1 is
# not equal to 2**53, the sum over the same comparison says that all are. The mean of uint64 at
# 2**63 is 0. Nothing warns.
# One would expect: NumPy's numbers, and in any case the same in a slice and in the whole.
# Output seen (the first two of 1000):
#   a / b       NumPy [-3.5, 4.5]  slice [-3.5, 4.5]  whole [-3.0, 4.0]
#   a % b       NumPy [1, 1]  slice [1, 1]  whole [-1, 1]
#   large | 0   NumPy [9007199254740993, 9007199254740993]  slice [9007199254740993, 9007199254740993]
#               whole [9007199254740992, 9007199254740992]
#   large == 2**53: slice [False, False] and 1000 of 1000 are equal
#   mean of 2**63 as uint64: 0.0 NumPy 9.223372036854776e+18
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install blosc2==4.14.1 numexpr==2.14.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import blosc2
import numpy as np

SIZE = 1000
a, b = np.resize([-7, 9], SIZE), np.resize([2, 2], SIZE)
large, unsigned = np.full(SIZE, 2**53 + 1), np.full(SIZE, 2**63, "u8")
A, B, L, U = map(blosc2.asarray, (a, b, large, unsigned))


def show(name, numpy, expression, whole):
    part = expression[:2].tolist()
    found = expression[:][:2].tolist()
    print(f"{name:<11} NumPy {numpy[:2].tolist()}  slice {part}  whole {found}")
    assert part == numpy[:2].tolist() and found == whole
    assert expression[:].dtype == expression[:2].dtype == numpy.dtype


show("a / b", a / b, A / B, [-3, 4])
show("a % b", a % b, A % B, [-1, 1])
show("large | 0", large | 0, L | 0, [2**53, 2**53])
equal = L == 2**53
print("large == 2**53: slice", equal[:2].tolist(), "and", int(blosc2.sum(equal)), "of", SIZE, "are equal")
assert not equal[:2].any() and blosc2.sum(equal) == SIZE
print("mean of 2**63 as uint64:", float(blosc2.mean(U)), "NumPy", float(unsigned.mean()))
assert blosc2.mean(U) == 0
PYTHON
