#!/usr/bin/env bash
# rasterio reads the identifier 0x8a1fb46622dffff as 0x8a1fb46622e0000, if the window may go beyond the edge of the raster.
#
# Versions: rasterio 1.5.2 with its GDAL 3.12.2, numpy 2.5.5.
# Behaviour: identifiers of 64 bits, such as H3 cells, keep each bit in a window, a mask, a sample and a merge. The same
# window with boundless=True goes through GDAL's warper, which computes in double: the last 7 bits are rounded away, also
# where the window is inside. `reproject` of a raster onto itself, `rasterize` of an integer and `shapes` round in the
# same way. The result has the type of the file, and is no H3 cell. Nothing warns; `sieve` refuses the type.
# Expected before the run: integers keep their value wherever pixels are only copied.
# Output seen (of int64; the same of uint64):
#   int64   window        0x8a1fb46622dffff
#   int64   mask          0x8a1fb46622dffff
#   int64   sample        0x8a1fb46622dffff
#   int64   merge         0x8a1fb46622dffff
#   int64   boundless     0x8a1fb46622e0000
#   int64   reproject     0x8a1fb46622e0000
#   int64   rasterize     0x8a1fb46622e0000
#   int64   shapes        0x8a1fb46622e0000
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterio==1.5.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import numpy as np
import rasterio
from rasterio.features import rasterize, shapes
from rasterio.mask import mask
from rasterio.merge import merge
from rasterio.transform import from_origin
from rasterio.warp import reproject
from rasterio.windows import Window

cell, rounded = 0x8A1FB46622DFFFF, 0x8A1FB46622E0000
place = from_origin(0, 4, 1, 1)
square = {"type": "Polygon", "coordinates": [[(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)]]}
for dtype in ("int64", "uint64"):
    cells = np.full((4, 4), cell, dtype)
    path = f"{dtype}.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=4, height=4, count=1, dtype=dtype, crs="EPSG:4326", transform=place
    ) as file:
        file.write(cells, 1)
    window = Window(1, 1, 2, 2)
    projected = np.zeros_like(cells)
    reproject(
        cells, projected, src_transform=place, dst_transform=place, src_crs="EPSG:4326", dst_crs="EPSG:4326"
    )
    with rasterio.open(path) as file:
        arrays = {
            "window": file.read(1, window=window),
            "mask": mask(file, [square])[0],
            "sample": next(file.sample([(2.5, 2.5)])),
            "merge": merge([file])[0],
            "boundless": file.read(1, window=window, boundless=True),
            "reproject": projected,
            "rasterize": rasterize([(square, cell)], out_shape=(4, 4), transform=place, dtype=dtype),
        }
    assert all(array.dtype == dtype for array in arrays.values())
    seen = {name: {int(number) for number in array.flat} for name, array in arrays.items()}
    seen["shapes"] = {int(number) for _, number in shapes(cells, transform=place)}
    for name, numbers in seen.items():
        (number,) = numbers
        print(f"{dtype:6}  {name:12}  {number:#x}")
        assert number == (cell if name in ("window", "mask", "sample", "merge") else rounded)
PYTHON
