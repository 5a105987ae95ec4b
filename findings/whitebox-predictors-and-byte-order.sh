#!/usr/bin/env bash
# Whitebox Workflows reads the heights 0, 1, 2, 3 of a common GeoTIFF as 0, 1, 1, 1.
#
# Versions: whitebox-workflows 2.0.6, rasterio 1.5.2, numpy 2.5.5.
# Behaviour: version 2 of Whitebox has a GeoTIFF reader of its own. It does not look at the predictor: with PREDICTOR=2, which
# GDAL writes for LZW and DEFLATE when asked to, it returns the differences between neighbours, and with
# PREDICTOR=3 the mixed bytes of floats. Samples of big-endian files are taken for little-endian ones, although their header is
# read right. Terrain analysis then runs on these numbers. An unknown compression (ZSTD) is refused; the others, tiles, and all
# types of numbers are right. Nothing warns.
# Expected before the run: the heights that rasterio wrote, or an error.
# Output seen (the first four of 0, 1, 2, ...):
#   int16    LZW                        0 1 2 3
#   int16    LZW, PREDICTOR=2           0 1 1 1
#   float32  DEFLATE                    0 1 2 3
#   float32  DEFLATE, PREDICTOR=2       0 1 1.17549e-38 5.87747e-39
#   float32  DEFLATE, PREDICTOR=3       1.14436e-40 0 1.4013e-45 0
#   uint16   ENDIANNESS=LITTLE          0 1 2 3
#   uint16   ENDIANNESS=BIG             0 256 512 768
#   uint16   ZSTD                       refused
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install whitebox-workflows==2.0.6 rasterio==1.5.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import whitebox_workflows

heights = np.arange(40 * 50).reshape(40, 50)
place = {"crs": "EPSG:32631", "transform": rasterio.transform.from_origin(1000, 2000, 10, 10)}
right = "0 1 2 3"
reader = whitebox_workflows.WbEnvironment()
for dtype, options, seen in (
    ("int16", "LZW", right),
    ("int16", "LZW, PREDICTOR=2", "0 1 1 1"),
    ("float32", "DEFLATE", right),
    ("float32", "DEFLATE, PREDICTOR=2", "0 1 1.17549e-38 5.87747e-39"),
    ("float32", "DEFLATE, PREDICTOR=3", "1.14436e-40 0 1.4013e-45 0"),
    ("uint16", "ENDIANNESS=LITTLE", right),
    ("uint16", "ENDIANNESS=BIG", "0 256 512 768"),
    ("uint16", "ZSTD", "refused"),
):
    compression, *rest = options.split(", ") if "ENDIAN" not in options else ("NONE", options)
    path = f"{dtype}-{options}.tif".replace(", ", "-")
    shape = {"height": 40, "width": 50, "count": 1}
    creation = {"compress": compression, **dict(option.split("=") for option in rest)}
    with rasterio.open(path, "w", driver="GTiff", dtype=dtype, **shape, **place, **creation) as file:
        file.write(heights.astype(dtype), 1)
    with rasterio.open(path) as file:
        assert (file.read(1) == heights).all()
    try:
        found = " ".join(f"{number:g}" for number in np.asarray(reader.read_raster(path).to_numpy()).flat[:4])
    except OSError as error:
        assert "Unsupported compression" in str(error), error
        found = "refused"
    print(f"{dtype:8} {options:26} {found}")
    assert found == seen, found
PYTHON
