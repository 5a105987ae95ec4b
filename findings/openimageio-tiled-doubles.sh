#!/usr/bin/env bash
# OpenImageIO reads tiled TIFF files of 64-bit floats to numbers that are not in the file.
#
# Versions: OpenImageIO 3.2.2.0, tifffile 2026.3.3, imagecodecs 2026.3.6, rasterio 1.4.4 (GDAL 3.10.3),
# numpy 2.4.6.
# Behaviour: cloud-optimized GeoTIFF and OME-TIFF are tiled. OpenImageIO opens such a file of float64, says
# that it is of doubles and in tiles, and returns pixels that it never filled, mostly near 1e-310.
# There is no error, neither from ImageInput nor from ImageBuf, and no warning. The same pixels in
# strips are right, compressed or not, and so are float16, float32 and int32 in tiles.
# Expected before the run: all are right, or float64 is refused (libvips refuses such tiles).
# Output seen:
#   float64 strips         GDAL right, ImageInput right, ImageBuf right
#   float64 strips, zlib   GDAL right, ImageInput right, ImageBuf right
#   float64 tiles          GDAL right, ImageInput wrong, ImageBuf wrong
#   float64 tiles, zlib    GDAL right, ImageInput wrong, ImageBuf wrong
#   float32 tiles          GDAL right, ImageInput right, ImageBuf right
#   float32 tiles, zlib    GDAL right, ImageInput right, ImageBuf right
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install OpenImageIO==3.2.2.0 tifffile==2026.3.3 \
    imagecodecs==2026.3.6 rasterio==1.4.4 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import OpenImageIO
import rasterio
import tifffile

words = {True: "right", False: "wrong"}
for dtype, tile in (("float64", None), ("float64", (16, 16)), ("float32", (16, 16))):
    values = np.arange(1, 4097, dtype=dtype).reshape(64, 64)
    for compression in (None, "zlib"):
        kind = {"photometric": "minisblack", "compression": compression}
        tifffile.imwrite("image.tif", values, tile=tile, **kind)
        with rasterio.open("image.tif") as file:
            assert (file.read(1) == values).all()
        source = OpenImageIO.ImageInput.open("image.tif")
        format = source.spec().format
        assert str(format) == {"float64": "double", "float32": "float"}[dtype]
        read = np.squeeze(source.read_image(format))
        assert source.geterror() == "" and read.shape == values.shape
        buffer = OpenImageIO.ImageBuf("image.tif")
        pixels = np.squeeze(buffer.get_pixels(format))
        assert not buffer.has_error and pixels.shape == values.shape
        right = bool((read == values).all()), bool((pixels == values).all())
        name = f"{dtype} {'tiles' if tile else 'strips'}{', zlib' if compression else ''}"
        print(f"{name:22} GDAL right, ImageInput {words[right[0]]}, ImageBuf {words[right[1]]}")
        assert right == ((dtype, tile) != ("float64", (16, 16)),) * 2
PYTHON
