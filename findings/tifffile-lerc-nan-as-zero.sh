#!/usr/bin/env bash
# tifffile shows NaN as 0 in TIFF files with LERC compression, whether it or GDAL wrote them.
#
# Versions: tifffile 2026.3.3, imagecodecs 2026.3.6, rasterio 1.4.4 (GDAL 3.10.3), numpy 2.4.6.
# Behaviour: LERC keeps NaN as a mask of invalid pixels beside the numbers. imagecodecs drops this
# mask, so that `tifffile.imread` gives measured zeros; infinities stay. GDAL reads NaN from both
# files: the mask is in them, also in the one that tifffile wrote and cannot read back.
# One would expect: tifffile reads NaN, or lossless LERC refuses it.
# Output seen:
#   written by tifffile  GDAL [nan, inf, 0.5, 2.0]  tifffile [0.0, inf, 0.5, 2.0]
#   written by GDAL      GDAL [nan, inf, 0.5, 2.0]  tifffile [0.0, inf, 0.5, 2.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.3.3 imagecodecs==2026.3.6 rasterio==1.4.4 \
    numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import tifffile

values = np.ones((16, 16), "f4")
values[0, :4] = right = [np.nan, np.inf, 0.5, 2]
tifffile.imwrite("tifffile.tif", values, compression="lerc")
shape = {"height": 16, "width": 16, "count": 1, "dtype": "float32"}
with rasterio.open("GDAL.tif", "w", driver="GTiff", compress="LERC", **shape) as file:
    file.write(values, 1)
for writer in ("tifffile", "GDAL"):
    with rasterio.open(f"{writer}.tif") as file:
        gdal = file.read(1)[0, :4]
    own = tifffile.imread(f"{writer}.tif")[0, :4]
    print(f"written by {writer:<9} GDAL {gdal.tolist()}  tifffile {own.tolist()}")
    np.testing.assert_array_equal(gdal, right)
    np.testing.assert_array_equal(own, [0, *right[1:]])
PYTHON
