#!/usr/bin/env bash
# xcube-resampling finds 9.5 as the mean longitude of a pixel that lies at 5, and picks one pixel where a mean was asked.
#
# Versions: xcube-resampling 0.3.6, xarray 2026.9.0, dask 2026.8.0, numpy 2.4.6.
# Behaviour: `resample_in_space` to pixels that are N times as wide takes each mean from a place that lies (N - 1) / 2 small
# pixels further along both axes. N = 1 is right. For integers it ignores `agg_methods`: mean, sum and max are all one
# pixel of each block, because integers are interpolated by the nearest one unless `interp_methods` says otherwise.
# There is no warning.
# Expected before the run: the mean of the longitudes in a pixel is its longitude, and the largest of integers the largest.
# Output seen (each value is the longitude of its pixel):
#   1 times   at 0.5 1.5 2.5 ...  mean 0.5 1.5 2.5 ...
#   2 times   at 1.0 3.0 5.0 ...  mean 1.5 3.5 5.5 ...
#   4 times   at 2.0 6.0 10.0 ...  mean 3.5 7.5 11.5 ...
#   10 times  at 5.0 15.0 25.0 ...  mean 9.5 19.5 29.5 ...
#   integers 0 to 15 in 4 by 4:  max 5 7 13 15  mean 5 7 13 15  sum 5 7 13 15
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xcube-resampling==0.3.6 xarray==2026.9.0 dask==2026.8.0 numpy==2.4.6
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import numpy as np
import xarray as xr
from xcube_resampling.gridmapping import GridMapping
from xcube_resampling.spatial import resample_in_space


def coarser(values, factor, method):
    size = len(values)
    places = np.arange(size) + 0.5
    source = xr.Dataset({"v": (("lat", "lon"), values)}, coords={"lat": places[::-1], "lon": places})
    # The middle of the first pixel names the corner of the grid.
    grid = GridMapping.regular(
        size=(size // factor,) * 2, xy_min=(factor / 2,) * 2, xy_res=float(factor), crs="EPSG:4326"
    )
    assert grid.xy_bbox == (0, 0, size, size) == GridMapping.from_dataset(source).xy_bbox
    return resample_in_space(source, target_gm=grid, agg_methods=method)


def first(numbers):
    return " ".join(f"{number:.1f}" for number in numbers[:3])


longitudes = np.tile(np.arange(40) + 0.5, (40, 1))
for factor in 1, 2, 4, 10:
    found = coarser(longitudes, factor, "mean")
    places, means = found.lon.values, found.v.values[0]
    print(f"{factor} times".ljust(9), f"at {first(places)} ...  mean {first(means)} ...")
    assert (means - places)[:-1].tolist() == [(factor - 1) / 2] * (40 // factor - 1)
integers = np.arange(16, dtype="i4").reshape(4, 4)
picked = {method: coarser(integers, 2, method).v.values.ravel() for method in ("max", "mean", "sum")}
print("integers 0 to 15 in 4 by 4: ", "  ".join(f"{name} {' '.join(map(str, part))}" for name, part in picked.items()))
assert all(part.tolist() == [5, 7, 13, 15] for part in picked.values())
assert integers.reshape(2, 2, 2, 2).mean(axis=(1, 3)).ravel().tolist() == [2.5, 4.5, 10.5, 12.5]
PYTHON
