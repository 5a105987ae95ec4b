#!/usr/bin/env bash
# Pillow swaps the bytes of compressed TIFF files that are big-endian, if their numbers have a sign.
#
# Versions: pillow 13.0.0, tifffile 2026.3.3, imagecodecs 2026.3.6, rasterio 1.4.4 (GDAL 3.10.3),
# numpy 2.4.6.
# Behaviour: of big-endian TIFF files, as ImageJ writes them, Pillow reads int16, int32 and float32
# right if they are not compressed. With any compression (deflate, LZW, zstd, PackBits) 1 becomes 256 as
# int16, 16777216 as int32 and 4.6e-41 as float32. uint16 is right, and little-endian files are.
# GDAL and tifffile read all of them. There is no error or warning.
# One would expect: compression does not change what is read.
# Output seen (numbers 1, 2, 3; "." is right):
#             not compressed  deflate     LZW         zstd        PackBits
#   uint16, > .               .           .           .           .
#   int16, >  .               256         256         256         256
#   int32, >  .               16777216    16777216    16777216    16777216
#   float32, >.               4.6006e-41  4.6006e-41  4.6006e-41  4.6006e-41
#   int16, <  .               .           .           .           .
#   int32, <  .               .           .           .           .
#   float32, <.               .           .           .           .
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pillow==13.0.0 tifffile==2026.3.3 imagecodecs==2026.3.6 \
    rasterio==1.4.4 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import tifffile
from PIL import Image

METHODS = {"not compressed": None, "deflate": "zlib", "LZW": "lzw", "zstd": "zstd", "PackBits": "packbits"}
print(" " * 10 + "".join(f"{name:<{len(name) + 2 if name[0] == 'n' else 12}}" for name in METHODS))


def show(name, dtype, order, swapped):
    values = np.array([[1, 2, 3]], dtype)
    shown = []
    for method in METHODS.values():
        tifffile.imwrite("a.tif", values, byteorder=order, compression=method, photometric="minisblack")
        assert (tifffile.imread("a.tif") == values).all()
        with rasterio.open("a.tif") as file:
            assert (file.read(1) == values).all()
        with Image.open("a.tif") as image:
            found = np.asarray(image)
        expected = values.byteswap() if swapped and method else values
        assert (found == expected).all(), (name, method, found)
        shown.append("." if found[0, 0] == 1 else f"{found[0, 0]:.5g}" if dtype == "f4" else str(found[0, 0]))
    print(f"{name + ', ' + order:<10}{shown[0]:<16}" + "".join(f"{text:<12}" for text in shown[1:]))


show("uint16", "u2", ">", False)
for order in "><":
    for name, dtype in {"int16": "i2", "int32": "i4", "float32": "f4"}.items():
        show(name, dtype, order, order == ">")
PYTHON
