#!/usr/bin/env bash
# rasterix adds the number of all geometries to each sum, or 1 for each geometry, or cuts 19900 to 255.
#
# Versions: rasterix 0.2.4, rasterio 1.5.2, geopandas 1.2.0, dask-geopandas 0.5.0, xarray 2026.9.0, dask 2026.8.0,
# pandas 3.1.1, numpy 2.5.5.
# Behaviour: `rasterize` burns the number of each geometry into an array, and the number of geometries where there is none.
# With merge_alg="add", documented as "values are summed where geometries overlap", arrays in memory start each sum at the
# mark for "none": a pixel in geometry 0 alone looks as if it lay outside. Lazy arrays count from 1 and take 1 away once at
# the end, so that each further geometry adds 1. Both add in the smallest type that holds the number of geometries, in
# which rasterio stops at the largest number. Nothing is reported. merge_alg="replace", the default, is right.
# Expected before the run: the sum of the numbers of the geometries, alike for both.
# Output seen (4 geometries, the last pixel is in none; then 200 geometries with the numbers 0 to 199 on one place):
#   replace  right [0, 2, 2, 3, 4]  in memory [0, 2, 2, 3, 4]  lazy [0, 2, 2, 3, 4]
#   add      right [0, 3, 3, 3, 4]  in memory [4, 7, 7, 7, 4]  lazy [0, 5, 4, 3, 4]
#   add      right 19900            in memory 255 (uint8)      lazy 254 (uint64)
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterix==0.2.4 rasterio==1.5.2 geopandas==1.2.0 dask-geopandas==0.5.0 \
    xarray==2026.9.0 dask==2026.8.0 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import geopandas
import numpy as np
import rasterix
import xarray
from rasterix.rasterize import rasterize
from shapely.geometry import box

grid = xarray.Dataset({"heights": (("y", "x"), np.zeros((2, 5)))}, coords={"y": [1.5, 0.5], "x": np.arange(5) + 0.5})
grid.coords["spatial_ref"] = xarray.DataArray(0, attrs={"GeoTransform": "0 1 0 2 0 -1"})
grid = rasterix.assign_index(grid)


def burn(geometries, method):
    frame = geopandas.GeoDataFrame(geometry=geometries, crs="EPSG:4326")
    for data in (grid, grid.chunk({"x": 3})):
        yield rasterize(data, frame, engine="rasterio", merge_alg=method).compute()[0]


some = [box(0, 0, 2, 2), box(1, 0, 3, 2), box(1, 0, 3, 2), box(3, 0, 4, 2)]
covering = [[number for number, shape in enumerate(some) if shape.contains(box(x, 0, x + 1, 1))] for x in range(5)]
for method, merge, seen in (
    ("replace", max, ([0, 2, 2, 3, 4], [0, 2, 2, 3, 4])),
    ("add", sum, ([4, 7, 7, 7, 4], [0, 5, 4, 3, 4])),
):
    right = [merge(numbers) if numbers else len(some) for numbers in covering]
    found = tuple(row.values.tolist() for row in burn(some, method))
    print(f"{method:8} right {right}  in memory {found[0]}  lazy {found[1]}")
    assert found == seen

first = [(row.values[0].item(), row.dtype.name) for row in burn([box(0, 0, 2, 2)] * 200, "add")]
print("add      right {:<15}  in memory {} ({})      lazy {} ({})".format(sum(range(200)), *first[0], *first[1]))
assert first == [(255, "uint8"), (254, "uint64")]
PYTHON
