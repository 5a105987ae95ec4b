#!/usr/bin/env bash
# xarray-spatial reads the 7 of a GeoTIFF of three bands as -10, and writes such files wrong for all others.
#
# Versions: xarray-spatial 0.10.20, xarray 2026.9.0, rasterio 1.5.2, pyproj 3.8.0, tifffile 2026.11.8, imagecodecs 2026.10.10,
# numpy 2.5.5.
# Behaviour: xarray-spatial has a GeoTIFF codec of its own. The predictor for floats takes differences of bytes that lie as
# many bytes apart as a pixel has bands; xarray-spatial takes neighbours, when it reads and when it writes. Its own round
# trip is therefore right, and no other program agrees with it. It also writes big-endian arrays, which readers of NetCDF-3
# and FITS return, byte for byte as little-endian ones. There is no error.
# Expected before the run: rasterio and tifffile read what xarray-spatial writes, and the reverse.
# Output seen (the last pixel; 7 in the first band):
#   rasterio writes 1 band, predictor 3    tifffile [7.]            xarray-spatial [7.]
#   rasterio writes 3 bands, predictor 3   tifffile [7.   5.   0.75]  xarray-spatial [-10.  -16.   -1.5]
#   xarray-spatial writes 3 bands, predictor 2   rasterio 7         tifffile 7         xarray-spatial 7
#   xarray-spatial writes 3 bands, predictor 3   rasterio -0.02705  tifffile -0.02705  xarray-spatial 7
#   xarray-spatial writes big-endian int16       rasterio 1792      tifffile 1792      xarray-spatial 1792
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray-spatial==0.10.20 xarray==2026.9.0 rasterio==1.5.2 pyproj==3.8.0 tifffile==2026.11.8 \
    imagecodecs==2026.10.10 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import tifffile
import xarray as xr
from xrspatial import open_geotiff, to_geotiff

PIXELS = np.array([[[1, 2, 4], [0.5, 0.25, 2], [-1, 3, 8], [7, 5, 0.75]]] * 2, "f4")
PLACE = {"crs": "EPSG:32632", "transform": rasterio.transform.from_origin(0, 2, 1, 1)}

for bands, seen in (1, [7]), (3, [-10, -16, -1.5]):
    layout = dict(driver="GTiff", height=2, width=4, count=bands, dtype="float32", interleave="pixel", **PLACE)
    with rasterio.open("a.tif", "w", compress="deflate", predictor=3, **layout) as file:
        file.write(np.moveaxis(PIXELS[..., :bands], -1, 0))
    with rasterio.open("a.tif") as file:
        np.testing.assert_array_equal(np.moveaxis(file.read(), 0, -1), PIXELS[..., :bands])
    right, found = tifffile.imread("a.tif"), open_geotiff("a.tif").values.reshape(2, 4, bands)
    np.testing.assert_array_equal(right.reshape(found.shape), PIXELS[..., :bands])
    name = f"{bands} band{'s' * (bands > 1)}, predictor 3"
    print(f"rasterio writes {name:20}   tifffile {np.atleast_1d(right[0, 3])!s:14}  xarray-spatial {found[0, 3]}")
    np.testing.assert_allclose(found[0, 3], seen)

for name, pixels, predictor, seen in (
    ("3 bands, predictor 2", PIXELS, 2, (7, 7, 7)),
    ("3 bands, predictor 3", PIXELS, 3, (-0.0270527, -0.0270527, 7)),
    ("big-endian int16", PIXELS[..., 0].astype(">i2"), False, (1792, 1792, 1792)),
):
    coordinates = {"y": [1.5, 0.5], "x": np.arange(4) + 0.5}
    image = xr.DataArray(pixels, coordinates, ("y", "x", "band")[: pixels.ndim], attrs={"crs": 32632})
    assert image.values[0, 3].flat[0] == 7
    to_geotiff(image, "b.tif", compression="deflate", predictor=predictor)
    with rasterio.open("b.tif") as file:
        gdal = file.read(1)
    found = [gdal[0, 3], tifffile.imread("b.tif")[0, 3].flat[0], open_geotiff("b.tif").values[0, 3].flat[0]]
    text = "rasterio {:<8.4g}  tifffile {:<8.4g}  xarray-spatial {:.4g}".format(*found)
    print(f"xarray-spatial writes {name:20}   {text}")
    np.testing.assert_allclose(found, seen, rtol=1e-4)
PYTHON
