#!/usr/bin/env bash
# pyresample finds 22 as the average of 100 and 200 in uint8, and NaN as the maximum where it skips NaN.
#
# Versions: pyresample 1.35.0, dask 2026.8.0, xarray 2026.9.0, numpy 2.5.5.
# Behaviour: the sums of a bucket are computed in the type of the data, and then the result is made uint64: 300 is 44. The
# average divides that sum. Minimum and maximum are right for uint8. With skipna=True, the default, sum, average and minimum
# leave NaN out, as documented; the maximum is NaN, and so is the largest absolute value. Nothing is reported.
# Expected before the run: what NumPy computes for the points of each bucket.
# Output seen (two points in one bucket):
#   [100, 200] uint8       get_sum      NumPy 300  pyresample 44 (uint64)
#   [100, 200] uint8       get_average  NumPy 150  pyresample 22 (float64)
#   [100, 200] uint8       get_max      NumPy 200  pyresample 200 (float64)
#   [100, 200] int16       get_sum      NumPy 300  pyresample 300 (int64)
#   [200, nan] float64     get_sum      NumPy 200  pyresample 200 (float64)
#   [200, nan] float64     get_min      NumPy 200  pyresample 200 (float64)
#   [200, nan] float64     get_max      NumPy 200  pyresample nan (float64)
#   [200, nan] float64     get_abs_max  NumPy 200  pyresample nan (float64)
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyresample==1.35.0 dask==2026.8.0 xarray==2026.9.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import dask.array as da
import numpy as np
from pyresample import create_area_def
from pyresample.bucket import BucketResampler

degrees = {"projection": {"proj": "longlat"}, "units": "degrees"}
area = create_area_def("square", shape=(2, 2), area_extent=(0, 0, 4, 4), **degrees)
buckets = BucketResampler(area, da.from_array(np.array([0.5, 0.6])), da.from_array(np.array([3.5, 3.4])))
for values, dtype, statistic, right, seen in (
    ([100, 200], "uint8", "get_sum", 300, 44),
    ([100, 200], "uint8", "get_average", 150, 22),
    ([100, 200], "uint8", "get_max", 200, 200),
    ([100, 200], "int16", "get_sum", 300, 300),
    ([200, np.nan], "float64", "get_sum", 200, 200),
    ([200, np.nan], "float64", "get_min", 200, 200),
    ([200, np.nan], "float64", "get_max", 200, np.nan),
    ([200, np.nan], "float64", "get_abs_max", 200, np.nan),
):
    points = np.array(values, dtype)
    name = {"get_sum": "nansum", "get_average": "nanmean", "get_min": "nanmin"}.get(statistic, "nanmax")
    numpy = float(getattr(np, name)(points))
    found = getattr(buckets, statistic)(da.from_array(points)).compute()
    first = float(found[0, 0])
    print(f"{f'{values} {dtype}':22} {statistic:11}  NumPy {numpy:.0f}  pyresample {first:.0f} ({found.dtype})")
    np.testing.assert_equal((numpy, first), (right, seen))
PYTHON
