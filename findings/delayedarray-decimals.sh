#!/usr/bin/env bash
# numpy.round(x, 2) of a DelayedArray rounds to whole numbers: 0.127 becomes 0.0.
#
# Versions: delayedarray 0.6.2, numpy 2.5.5.
# Behaviour: BiocPy's delayedarray computes with matrices of HDF5 files and others that do not fit in memory, and lets
# NumPy's functions take them. For `numpy.round` it looks for `decimals` among the named arguments only. Given by position, as
# is usual, it is dropped, and the numbers lose their fractions: probabilities become 0 and 1. Negative decimals are
# dropped as well. Nothing warns.
# Expected before the run: the numbers of NumPy in both spellings.
# Output seen:
#   round(x, decimals=2)    NumPy [0.13, 0.68, 149.99]   delayedarray [0.13, 0.68, 149.99]
#   round(x, 2)             NumPy [0.13, 0.68, 149.99]   delayedarray [0.0, 1.0, 150.0]
#   round(x, -2)            NumPy [0.0, 0.0, 100.0]      delayedarray [0.0, 1.0, 150.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install delayedarray==0.6.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import delayedarray
import numpy as np

x = np.array([[0.127, 0.6789, 149.987]])
for spelling, rounded, seen in (
    ("round(x, decimals=2)", lambda x: np.round(x, decimals=2), [0.13, 0.68, 149.99]),
    ("round(x, 2)", lambda x: np.round(x, 2), [0, 1, 150]),
    ("round(x, -2)", lambda x: np.round(x, -2), [0, 1, 150]),
):
    true, found = (np.asarray(rounded(array))[0].tolist() for array in (x, delayedarray.wrap(x)))
    print(f"{spelling:22}  NumPy {true!s:21}  delayedarray {found}")
    assert found == seen
PYTHON
