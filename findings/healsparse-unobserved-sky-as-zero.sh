#!/usr/bin/env bash
# healsparse makes 0 of the sky that nobody observed when it degrades a map by sums, and 1 by products.
#
# Versions: healsparse 1.15.0, hpgeom 1.6.1, astropy 8.0.2, numpy 2.5.5.
# Behaviour: `degrade` with "mean", "max", "min", "median" and "std" leaves pixels without data at the sentinel -1.6375e+30.
# With "sum" and "prod" they are 0 and 1 and count as valid, even far away from all data, because a sum of no numbers is 0.
# `n_valid` counts pixels outside the covered sky too, and `valid_pixels` lists the first pixels of the sky twice, here
# pixels 0 to 3. Nothing is reported. The mean of the sums of all valid pixels is 1.92 instead of 6.5.
# Expected before the run: one valid pixel where an observed pixel is within it, as with "mean".
# Output seen (four observed pixels in pixel 0, two in pixel 10; pixel 1 beside them and pixel 100 far away have none):
#   mean  pixel 0, 10, 1, 100: 2.5 1.5 -1.6375e+30 -1.6375e+30  valid [0, 10]
#   sum   pixel 0, 10, 1, 100: 10.0 3.0 0.0 0.0  valid [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]
#   prod  pixel 0, 10, 1, 100: 24.0 2.0 1.0 1.0  valid [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]
#   mean of the sums of all valid pixels: 1.92 instead of 6.5
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install healsparse==1.15.0 hpgeom==1.6.1 astropy==8.0.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import healsparse
import numpy as np

sky = healsparse.HealSparseMap.make_empty(nside_coverage=2, nside_sparse=8, dtype=np.float64)
sky[np.arange(0, 4)] = np.array([1.0, 2, 3, 4])
sky[np.arange(40, 42)] = np.array([1.0, 2])

none = sky.sentinel
often = [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]
for reduction, seen, valid in (
    ("mean", [2.5, 1.5, none, none], [0, 10]),
    ("sum", [10, 3, 0, 0], often),
    ("prod", [24, 2, 1, 1], often),
):
    coarse = sky.degrade(4, reduction=reduction)
    values = coarse[np.array([0, 10, 1, 100])].tolist()
    listed = coarse.valid_pixels.tolist()
    print(f"{reduction:5} pixel 0, 10, 1, 100:", *values, f" valid {listed}")
    assert (values, listed, coarse.n_valid) == (seen, valid, len(valid))

sums = sky.degrade(4, reduction="sum")
mean = sums[sums.valid_pixels].mean()
print(f"mean of the sums of all valid pixels: {mean:.2f} instead of 6.5")
assert round(mean, 2) == 1.92
PYTHON
