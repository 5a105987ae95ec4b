#!/usr/bin/env bash
# exactextract cuts the median of integers to an integer; rasterstats computes with the codes of a packed raster.
#
# Versions: exactextract 0.3.0, rasterstats 0.21.0, rasterio 1.5.2, numpy 2.5.5.
# Behaviour: between two pixels of floats, exactextract's median and quantiles interpolate. For rasters of integers the result
# has the type of the raster, and its fraction is cut off, towards zero: -0.5 becomes 0. rasterstats has the fraction.
# rasterstats computes with the stored numbers of a packed raster, where exactextract applies scale and offset. Neither
# warns.
# Expected before the run: the same median and mean from both, as NumPy has them.
# Output seen (four pixels in one polygon):
#   float32 [0, 0, 1, 1]              median NumPy 0.5  exactextract 0.5  rasterstats 0.5
#   uint8   [0, 0, 1, 1]              median NumPy 0.5  exactextract 0  rasterstats 0.5
#   int16   [-3, -2, 1, 4]            median NumPy -0.5  exactextract 0  rasterstats -0.5
#   int16   [1, 2, 3, 4] * 0.1 + 5    mean   NumPy 5.25  exactextract 5.25  rasterstats 2.5
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install exactextract==0.3.0 rasterstats==0.21.0 rasterio==1.5.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import exactextract
import numpy as np
import rasterio
import rasterstats

RING = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
SQUARE = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [RING]}}

for dtype, row, scale, offset, name, seen in (
    ("float32", [0, 0, 1, 1], 1, 0, "median", (0.5, 0.5)),
    ("uint8", [0, 0, 1, 1], 1, 0, "median", (0, 0.5)),
    ("int16", [-3, -2, 1, 4], 1, 0, "median", (0, -0.5)),
    ("int16", [1, 2, 3, 4], 0.1, 5, "mean", (5.25, 2.5)),
):
    pixels = np.array(row, dtype).reshape(1, 2, 2)
    place = rasterio.transform.from_origin(0, 2, 1, 1)
    options = dict(driver="GTiff", width=2, height=2, count=1, dtype=dtype, crs="EPSG:32632", transform=place)
    with rasterio.open("a.tif", "w", **options) as file:
        file.write(pixels)
        file.scales, file.offsets = [scale], [offset]
    right = float(getattr(np, name)(pixels * scale + offset))
    exact = exactextract.exact_extract("a.tif", [SQUARE], [name])[0]["properties"][name]
    stats = rasterstats.zonal_stats([SQUARE], "a.tif", stats=[name])[0][name]
    packed = "" if scale == 1 else f" * {scale} + {offset}"
    print(f"{dtype:7} {f'{row}{packed}':25} {name:6} NumPy {right:.4g}  exactextract {exact:.4g}  rasterstats {stats:.4g}")
    assert np.allclose((exact, stats), seen)
PYTHON
