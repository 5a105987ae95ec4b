#!/usr/bin/env bash
# xgcm finds no value at a level if the levels are asked for in falling order and one measurement is missing.
#
# Versions: xgcm 0.10.1, xarray 2026.9.0, numba 0.68.1, numpy 2.5.5.
# Behaviour: where the target data has a NaN inside, the values at levels on one side of it are NaN if the levels are asked
# for in falling order, and right if they rise. Without the NaN, or with it at an end, the order makes no difference. Nothing is reported. For uint8, xgcm interpolates 10 and 250 to 2: it adds in uint8.
# Expected before the run: the same values in the other order.
# Output seen:
#   temperature [10, 20, 30, 40, 50]    levels [15, 25, 45] [1.5 2.5 4.5]  reversed [1.5 2.5 4.5]
#   temperature [10, 20, nan, 40, 50]   levels [15, 25, 45] [1.5 nan 4.5]  reversed [nan nan 4.5]
#   temperature [50, 40, nan, 20, 10]   levels [15, 25, 45] [4.5 nan 1.5]  reversed [nan nan 1.5]
#   temperature [10, 20, 30, 40, nan]   levels [15, 25, 35] [1.5 2.5 3.5]  reversed [1.5 2.5 3.5]
#   between 10 and 250   int16 130  uint8 2
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xgcm==0.10.1 xarray==2026.9.0 numba==0.68.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import xarray as xr
from xgcm import Grid

nan = np.nan
places = {"centre": np.arange(5) + 0.5, "edge": np.arange(5.0)}
grid = Grid(
    xr.Dataset(coords=places),
    coords={"Z": {"center": "centre", "left": "edge"}},
    padding={"Z": "extend"},
    autoparse_metadata=False,
)


def column(values, dtype="f8"):
    return xr.DataArray(np.array(values, dtype), {"centre": places["centre"]}, ("centre",), "temperature")


depth = column([1, 2, 3, 4, 5]).rename("depth")
for values, levels, seen, reverse in (
    ([10, 20, 30, 40, 50], [15, 25, 45], [1.5, 2.5, 4.5], [1.5, 2.5, 4.5]),
    ([10, 20, nan, 40, 50], [15, 25, 45], [1.5, nan, 4.5], [nan, nan, 4.5]),
    ([50, 40, nan, 20, 10], [15, 25, 45], [4.5, nan, 1.5], [nan, nan, 1.5]),
    ([10, 20, 30, 40, nan], [15, 25, 35], [1.5, 2.5, 3.5], [1.5, 2.5, 3.5]),
):
    rising, falling = (
        grid.transform(depth, "Z", np.array(order, "f8"), target_data=column(values), method="linear").values
        for order in (levels, levels[::-1])
    )
    print(f"temperature {values!s:21}   levels {levels} {rising}  reversed {falling[::-1]}")
    np.testing.assert_array_equal(rising, seen)
    np.testing.assert_array_equal(falling[::-1], reverse)

wide, narrow = (grid.interp(column([10, 250, 0, 0, 0], dtype), "Z").values[1] for dtype in ("i2", "u1"))
print(f"between 10 and 250   int16 {wide:.4g}  uint8 {narrow:.4g}")
assert (wide, narrow) == (130, 2)
PYTHON
