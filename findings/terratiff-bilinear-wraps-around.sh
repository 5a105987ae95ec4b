#!/usr/bin/env bash
# terratiff makes 75, 25, 75 of heights that rise from 0, 100 when it halves the pixels, and puts rasters with turned rows at 0, 0.
#
# Versions: terratiff 0.1.11, rasterio 1.5.2, numpy 2.4.6.
# Behaviour: `resample` with "bilinear" to smaller pixels mixes the first row and column with those one pixel further in the
# wrong way round: at the edge a height of 0 becomes 75, falls to 25 and rises again, and an image of 2 by 2 pixels comes
# out as the same 2 by 2 pattern four times. "cubic" does the same. "bilinear" and "average" count the nodata value as a
# height. `open` knows the place of a GeoTIFF by its pixel scale only: a raster whose rows go from south to north
# has its corner at 0, 0 and pixels of 1, with its coordinate system kept. There is no error.
# Expected before the run: the pixels of GDAL inside the image and the nearest ones at its edge, no nodata in means,
# and the place that rasterio reads, or a refusal.
# Output seen:
#   rising by 100, bilinear      GDAL 0 25 75 125 175 225 275 300          terratiff 75 25 75 125 175 225 275 225
#   0 200 over 200 250           GDAL 0 50 150 200                         terratiff 215 171 215 171
#   average of 1 -9999 over 3 2  GDAL 2                                    terratiff -2498
#   rows from south to north     rasterio 500000 4000000 500120 4000120    terratiff 0 -4 4 0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install terratiff==0.1.11 rasterio==1.5.2 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
from rasterio.enums import Resampling
from rasterio.transform import Affine
from terratiff import TerraTiff

NORTH_UP = Affine(30, 0, 500000, 0, -30, 4000000)
SOUTH_UP = Affine(30, 0, 500000, 0, 30, 4000000)


def write(values, transform=NORTH_UP, nodata=None):
    rows, columns = values.shape
    profile = {"driver": "GTiff", "height": rows, "width": columns, "count": 1, "dtype": values.dtype}
    with rasterio.open("a.tif", "w", crs="EPSG:32633", transform=transform, nodata=nodata, **profile) as file:
        file.write(values, 1)
    read = TerraTiff.open("a.tif")
    assert (np.squeeze(read.data) == values).all()
    return read


def resampled(values, factor, method, nodata=None):
    size = 30 / factor
    found = np.squeeze(write(values, nodata=nodata).resample(size, size, method).data)
    with rasterio.open("a.tif") as file:
        shape = int(file.height * factor), int(file.width * factor)
        right = file.read(1, out_shape=shape, resampling=Resampling[method])
    return np.atleast_2d(right)[0], np.atleast_2d(found)[0]


def show(name, program, right, found):
    right, found = (" ".join(f"{value:.0f}" for value in part) for part in (right, found))
    print(f"{name:28} {program + ' ' + right:41} terratiff {found}")


slope = np.tile(np.array([0, 100, 200, 300], "f4"), (4, 1))
right, found = resampled(slope, 2, "bilinear")
show("rising by 100, bilinear", "GDAL", right, found)
assert right.tolist() == [0, 25, 75, 125, 175, 225, 275, 300]
assert found.tolist() == [75, 25, 75, 125, 175, 225, 275, 225]
right, found = resampled(np.array([[0, 200], [200, 250]], "u1"), 2, "bilinear")
show("0 200 over 200 250", "GDAL", right, found)
assert right[0] == 0 and found.tolist() == [215, 171, 215, 171]
right, found = resampled(np.array([[1, -9999], [3, 2]], "f4"), 0.5, "average", -9999)
show("average of 1 -9999 over 3 2", "GDAL", right, found)
assert right == 2 and found == -2498.25
turned = write(slope, SOUTH_UP)
with rasterio.open("a.tif") as file:
    left, bottom, right, top = file.bounds
show("rows from south to north", "rasterio", (left, top, right, bottom), turned.get_bounds())
assert (left, top, right, bottom) == (500000, 4000000, 500120, 4000120)
assert turned.get_bounds() == (0, -4, 4, 0) and "32633" in str(turned.crs_info.epsg)
PYTHON
