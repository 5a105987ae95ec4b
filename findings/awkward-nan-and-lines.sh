#!/usr/bin/env bash
# Awkward leaves NaN out of the minimum of a list, not out of that of all, and fits lines to times wrong.
#
# Versions: awkward 2.14.0, awkward-cpp 57, numpy 2.5.5.
# Behaviour: `ak.min` and `ak.max` over all lists give NaN if there is one, as NumPy does, and have a sibling `ak.nanmin` that
# leaves it out. Along an axis they leave NaN out as well, and give infinity for a list of nothing else. `ak.argmin` points to
# NaN where it is the first element, and to the minimum where it is not. `ak.linear_fit` subtracts sums of squares
# that are almost equal: a line through an hour of times in seconds since 1970 has a slope that is wrong in the
# fourth digit, and one through a minute has no slope. `ak.corr` and `ak.covar` are right. No error.
# Expected before the run: what NumPy gives for each list.
# Output seen:
#   [3, nan, 1, 2]  min along the axis 1.0  of all nan  argmin 2
#   [nan, 2, 5]     min along the axis 2.0  of all nan  argmin 0
#   [nan, nan]      min along the axis inf  of all nan  argmin 0
#     60 s from 0           slope 0.0010000  NumPy 0.0010000
#   3600 s from 1700000000  slope 0.0009998  NumPy 0.0010000
#    600 s from 1700000000  slope 0.0009998  NumPy 0.0010000
#     60 s from 1700000000  slope inf  NumPy 0.0010000
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install awkward==2.14.0 awkward-cpp==57 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import awkward as ak
import numpy as np

for row, least, place in (([3, np.nan, 1, 2], 1, 2), ([np.nan, 2, 5], 2, 0), ([np.nan, np.nan], np.inf, 0)):
    lists = ak.Array([np.array(row, "f8")])
    along, whole = ak.min(lists, axis=1)[0], ak.min(lists, axis=None)
    found = ak.argmin(lists, axis=1)[0]
    name = str(row).replace(".0", "")
    print(f"{name:15} min along the axis {along}  of all {whole}  argmin {found}")
    assert along == least and np.isnan(whole) and found == place
for start, length, wrong in ((0, 60, False), (1.7e9, 3600, True), (1.7e9, 600, True), (1.7e9, 60, True)):
    seconds = np.linspace(0, length, 1000)
    slope = float(ak.linear_fit(start + seconds, 20 + 0.001 * seconds).slope)
    right = np.polyfit(start + seconds - start, 20 + 0.001 * seconds, 1)[0]
    print(f"{length:4} s from {start:.0f}".ljust(23), f"slope {slope:.7f}  NumPy {right:.7f}")
    assert abs(right - 0.001) < 1e-9
    assert wrong != (abs(slope - 0.001) < 1e-8)
PYTHON
