#!/usr/bin/env bash
# sparse computes sums of uint64 as floats: 2**64 - 1 and two zeros make 0.
#
# Versions: sparse 0.19.3, numba 0.68.1, numpy 2.5.5.
# Behaviour: `sum` adds to the stored elements of a row how often its fill value is missing, times that value. For uint64 and
# a fill value of 0, this makes a float64 of the sum and then an integer again: the last digits change above 2**53 without
# a warning, and from 2**64 - 1024 on the sum is 0, with NumPy's warning of an invalid cast. int64 is right.
# Expected before the run: what NumPy computes for the dense array.
# Output seen:
#   sum of [2**53 + 1, 0, 0] as int64    NumPy 9007199254740993      sparse 9007199254740993
#   sum of [2**53 + 1, 0, 0] as uint64   NumPy 9007199254740993      sparse 9007199254740992
#   sum of [2**63, 0, 5] as uint64       NumPy 9223372036854775813   sparse 9223372036854775808
#   sum of [2**64 - 1, 0, 0] as uint64   NumPy 18446744073709551615  sparse 0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install sparse==0.19.3 numba==0.68.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import sparse

for text, row, dtype, seen in (
    ("[2**53 + 1, 0, 0]", [2**53 + 1, 0, 0], "int64", 2**53 + 1),
    ("[2**53 + 1, 0, 0]", [2**53 + 1, 0, 0], "uint64", 2**53),
    ("[2**63, 0, 5]", [2**63, 0, 5], "uint64", 2**63),
    ("[2**64 - 1, 0, 0]", [2**64 - 1, 0, 0], "uint64", 0),
):
    dense = np.array([row] * 2, dtype)
    right = dense.sum(axis=1)
    found = sparse.COO.from_numpy(dense).sum(axis=1)
    assert right[0] == sum(row) and found.dtype == right.dtype
    found = found.todense().tolist()[0]
    print(f"{f'sum of {text} as {dtype}':36} NumPy {right[0]!s:21} sparse {found}")
    assert found == seen
PYTHON
