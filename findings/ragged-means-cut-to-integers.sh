#!/usr/bin/env bash
# ragged cuts the mean of integers to an integer, finds 15.7 as the deviation of 100 and 201, and True as a mean.
#
# Versions: ragged 0.3.0, awkward 2.14.0, numpy 2.5.5.
# Behaviour: ragged gives means and variances in the type of the array, without their fraction: the mean of True and False is
# True. Variances of uint8 square in uint8, where 100 * 100 is 16, and so do standard deviations; those
# of int32 are the roots of cut variances. ragged says that it implements the Python array API. Nothing is reported.
# Expected before the run: what NumPy computes for the same numbers.
# Output seen:
#   [[100, 201], [7]] int32       mean  axis 1     NumPy 150.5     ragged 150 (int32)
#   [[100, 201], [7]] int32       mean  axis None  NumPy 102.667   ragged 102 (int32)
#   [[100, 201], [7]] int32       std   axis 1     NumPy 50.5      ragged 50.49752469181039 (float64)
#   [[100, 201], [7]] float64     std   axis 1     NumPy 50.5      ragged 50.5 (float64)
#   [[100, 201], [7]] uint8       var   axis 1     NumPy 2550.25   ragged 247 (uint8)
#   [[100, 201], [7]] uint8       std   axis 1     NumPy 50.5      ragged 15.71875 (float16)
#   [[True, False], [True]] bool  mean  axis 1     NumPy 0.5       ragged True (bool)
#   [[True, False], [True]] bool  var   axis 1     NumPy 0.25      ragged True (bool)
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install ragged==0.3.0 awkward==2.14.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import ragged

for dtype, statistic, axis, right, seen in (
    ("int32", "mean", 1, 150.5, 150),
    ("int32", "mean", None, 102.667, 102),
    ("int32", "std", 1, 50.5, 50.4975),
    ("float64", "std", 1, 50.5, 50.5),
    ("uint8", "var", 1, 2550.25, 247),
    ("uint8", "std", 1, 50.5, 15.71875),
    ("bool", "mean", 1, 0.5, True),
    ("bool", "var", 1, 0.25, True),
):
    rows = [[True, False], [True]] if dtype == "bool" else [[100, 201], [7]]
    numbers = np.array(rows[0] if axis else sum(rows, []), dtype)
    numpy = getattr(np, statistic)(numbers).item()
    found = getattr(ragged, statistic)(ragged.array(rows, dtype=dtype), axis=axis)
    kind = str(found.dtype)
    found = found.tolist()[0] if axis else found.tolist()
    print(f"{f'{rows} {dtype}':29} {statistic:4}  axis {axis!s:4}  NumPy {numpy:<9.6g} ragged {found} ({kind})")
    np.testing.assert_allclose((numpy, found), (right, seen), rtol=1e-5)
PYTHON
