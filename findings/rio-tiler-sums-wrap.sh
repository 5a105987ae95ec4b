#!/usr/bin/env bash
# rio-tiler finds 39 as the sum of 200, 100 and 251 in a mosaic of three GeoTIFFs, and -25536 as that of 20000 and 20000.
#
# Versions: rio-tiler 9.4.12, rasterio 1.5.2, numpy 2.5.5.
# Behaviour: the mosaic method SumMethod adds in 64 bits, and then turns the sum to the type of the files, unless it is made with
# enforce_data_type=False. What does not fit wraps: more rain or more visits give a darker tile. MeanMethod and
# MedianMethod cut the fraction off, so that means of -1, -2 and -2 are nearer to 0 than two of the three. A count of 300 files is
# right, though the type for one file is uint8: it grows. No warning.
# Expected before the run: 551, 40000, 184 and -2; the type of the sum would grow as that of the count does.
# Output seen:
#   SumMethod of 200, 100, 251 in uint8     uint8 39
#   SumMethod, enforce_data_type=False      uint64 551
#   SumMethod of 20000, 20000 in int16      int16 -25536
#   MeanMethod of 200, 100, 251 in uint8    uint8 183
#   MeanMethod of -1, -2, -2 in int16       int16 -1
#   CountMethod of 300 files in uint8       int64 300
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rio-tiler==9.4.12 rasterio==1.5.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
from rasterio.transform import from_origin
from rio_tiler.io import Reader
from rio_tiler.mosaic import mosaic_reader
from rio_tiler.mosaic.methods.defaults import CountMethod, MeanMethod, SumMethod


def written(value, kind):
    name = f"{kind}.{value}.tif"
    pixels = np.full((1, 2, 2), value, kind)
    options = {"crs": 4326, "transform": from_origin(0, 2, 1, 1), "dtype": kind}
    with rasterio.open(name, "w", driver="GTiff", height=2, width=2, count=1, **options) as file:
        file.write(pixels)
    return name


def read(name):
    with Reader(name) as file:
        return file.read()


for name, method, kind, values, seen in (
    ("SumMethod of 200, 100, 251 in uint8", SumMethod(), "uint8", [200, 100, 251], "uint8 39"),
    ("SumMethod, enforce_data_type=False", SumMethod(enforce_data_type=False), "uint8", [200, 100, 251], "uint64 551"),
    ("SumMethod of 20000, 20000 in int16", SumMethod(), "int16", [20000, 20000], "int16 -25536"),
    ("MeanMethod of 200, 100, 251 in uint8", MeanMethod(), "uint8", [200, 100, 251], "uint8 183"),
    ("MeanMethod of -1, -2, -2 in int16", MeanMethod(), "int16", [-1, -2, -2], "int16 -1"),
    ("CountMethod of 300 files in uint8", CountMethod(), "uint8", [1] * 300, "int64 300"),
):
    files = [written(value, kind) for value in values]
    image, _ = mosaic_reader(files, read, pixel_selection=method, threads=0)
    found = f"{image.array.dtype} {image.array[0, 0, 0]}"
    print(f"{name:39} {found}")
    assert found == seen, found
PYTHON
