#!/usr/bin/env bash
# xarray-spatial writes cubic overviews whose last column is 0, for an image that is 100 everywhere.
#
# Versions: xarray-spatial 0.10.20, xarray 2026.9.0, scipy 1.18.1, rasterio 1.5.2, pyproj 3.8.0, numpy 2.5.5.
# Behaviour: it resamples with scipy.ndimage.zoom, whose last point falls, by rounding, behind the image for some sizes; what
# lies there is 0. An image of 600 rows and columns gets 599 such zeros in its first overview, and 299 in its second. 512
# rows, and the other methods, are right. There is no warning.
# Expected before the run: 100 in all pixels, as rasterio's own cubic overviews have it.
# Output seen:
#   512 x 512, cubic, 1:2    GDAL all 100  xarray-spatial   0 zeros, 0 not in the last row or column
#   600 x 600, mean, 1:2     GDAL all 100  xarray-spatial   0 zeros, 0 not in the last row or column
#   600 x 600, cubic, 1:2    GDAL all 100  xarray-spatial 599 zeros, 0 not in the last row or column
#   600 x 600, cubic, 1:4    GDAL all 100  xarray-spatial 299 zeros, 0 not in the last row or column
#   600 x 601, cubic, 1:2    GDAL all 100  xarray-spatial 301 zeros, 0 not in the last row or column
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray-spatial==0.10.20 xarray==2026.9.0 scipy==1.18.1 rasterio==1.5.2 pyproj==3.8.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import xarray as xr
from rasterio.enums import Resampling
from xrspatial import to_geotiff


PLACE = rasterio.transform.from_origin(0, 600, 1, 1)


def overview(level):
    with rasterio.open("a.tif", overview_level=level) as file:
        return file.read(1)


for rows, columns, method, level, seen in (
    (512, 512, "cubic", 0, 0),
    (600, 600, "mean", 0, 0),
    (600, 600, "cubic", 0, 599),
    (600, 600, "cubic", 1, 299),
    (600, 601, "cubic", 0, 301),
):
    coordinates = {"y": np.arange(rows)[::-1] + 0.5, "x": np.arange(columns) + 0.5}
    image = xr.DataArray(np.full((rows, columns), 100, "f4"), coordinates, ("y", "x"), attrs={"crs": 32632})
    options = dict(compression="deflate", cog=True, overview_levels=[2, 4])
    to_geotiff(image, "a.tif", overview_resampling=method, **options)
    found = overview(level)
    dark = np.abs(found) < 1
    inside = dark[:-1, :-1].sum()
    with rasterio.open("a.tif", "r+") as file:
        np.testing.assert_array_equal(file.read(1), image)
    image = dict(driver="GTiff", height=rows, width=columns, count=1, dtype="float32")
    with rasterio.open("b.tif", "w", **image, crs="EPSG:32632", transform=PLACE) as file:
        file.write(np.full((1, rows, columns), 100, "f4"))
        file.build_overviews([2, 4], Resampling.cubic)
    with rasterio.open("b.tif", overview_level=level) as file:
        assert (file.read(1) == 100).all()
    size = f"{rows} x {columns}, {method}, 1:{2 << level}"
    print(f"{size:23}  GDAL all 100  xarray-spatial {dark.sum():3} zeros, {inside} not in the last row or column")
    assert (dark.sum(), inside) == (seen, 0)
PYTHON
