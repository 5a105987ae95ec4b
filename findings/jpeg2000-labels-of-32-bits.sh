#!/usr/bin/env bash
# tifffile writes a label image with lossless JPEG 2000, and most of its background of 0 is 1 or 1048576 afterwards.
#
# Versions: tifffile 2026.11.8, imagecodecs 2026.10.10, rasterio 1.5.2, zarr 3.4.2, numpy 2.5.5.
# Behaviour: imagecodecs hands uint32 to OpenJPEG as numbers of 32 bits. OpenJPEG computes with fewer bits, and what it
# computes with is the distance from 2**31, which is large for small numbers. An image of zeros becomes one of ones, and
# labels have numbers up to 67108863 around them. That the data use few bits, as a note in imagecodecs asks, does not
# help. GDAL reads the same from the file, so the file is wrong. Zarr chunks of the codec imagecodecs_jpeg2k are the
# same. int32, uint16, HTJ2K, and uint32 with bitspersample=24 are right. Nothing warns.
# Expected before the run: each number as it was, since the compression is without loss.
# Output seen (64 by 64 pixels of 0 with a square of 52: pixels that changed, and the most frequent number):
#   uint32 tifffile           4022 changed, most are 1
#   uint32 GDAL reads it      4022 changed, most are 1
#   uint32 Zarr               4022 changed, most are 1
#   uint32 of 24 bits         0 changed, most are 0
#   uint32 HTJ2K              0 changed, most are 0
#   int32 tifffile            0 changed, most are 0
#   uint16 tifffile           0 changed, most are 0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.11.8 imagecodecs==2026.10.10 rasterio==1.5.2 zarr==3.4.2 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import imagecodecs
import numpy as np
import rasterio
import tifffile
import zarr
from imagecodecs.numcodecs import Jpeg2k, register_codecs

register_codecs(verbose=False)
labels = np.zeros((64, 64), "u4")
labels[4:12, 4:12] = 52


def through_tiff(image):
    path = f"{image.dtype}.tif"
    tifffile.imwrite(path, image, compression="jpeg2000", compressionargs={"level": 0, "reversible": True})
    return tifffile.imread(path)


def through_gdal(image):
    with open("labels.jp2", "wb") as file:
        file.write(imagecodecs.jpeg2k_encode(image, level=0, reversible=True, codecformat="jp2"))
    with rasterio.open("labels.jp2") as file:
        return file.read(1)


def through_zarr(image):
    array = zarr.create_array(
        "labels.zarr",
        data=image,
        chunks=image.shape,
        zarr_format=2,
        compressors=Jpeg2k(level=0, reversible=True),
    )
    return array[:]


seen = {
    "uint32 tifffile": (through_tiff(labels), False),
    "uint32 GDAL reads it": (through_gdal(labels), False),
    "uint32 Zarr": (through_zarr(labels), False),
    "uint32 of 24 bits": (
        imagecodecs.jpeg2k_decode(imagecodecs.jpeg2k_encode(labels, level=0, reversible=True, bitspersample=24)),
        True,
    ),
    "uint32 HTJ2K": (imagecodecs.htj2k_decode(imagecodecs.htj2k_encode(labels, reversible=True)), True),
    "int32 tifffile": (through_tiff(labels.astype("i4")), True),
    "uint16 tifffile": (through_tiff(labels.astype("u2")), True),
}
for name, (after, right) in seen.items():
    changed = int((after != labels).sum())
    numbers, counts = np.unique(after, return_counts=True)
    most = int(numbers[counts.argmax()])
    print(f"{name:24}  {changed} changed, most are {most}")
    assert after.shape == labels.shape and after.dtype.kind in "iu"
    assert (changed == 0 and most == 0) if right else (changed > 4000 and most != 0)
zeros = np.zeros((64, 64), "u4")
assert (imagecodecs.jpeg2k_decode(imagecodecs.jpeg2k_encode(zeros, level=0, reversible=True)) == 1).all()
PYTHON
