#!/usr/bin/env bash
# libvips makes 0 or -3 of an image that is -1 everywhere, when it shrinks, resizes or blurs it.
#
# Versions: pyvips 3.2.0, libvips 8.18.7 (the package pyvips-binary), numpy 2.5.5.
# Behaviour: every pixel of the image is the same, so that any mean of pixels is that number. Of all signed integers
# below zero, libvips computes others: shrink and gaussblur add 2, reduce and resize take 2 away, of any size of number.
# Positive integers and floats stay as they are. Heights below the sea and Hounsfield units of CT are such images.
# The pyramid of a TIFF file of int32 overflows: where the image is 600000000, its smaller levels are -473741824.
# Expected before the run: the same number everywhere, or one that rounding moved by at most 1.
# Output seen (an inner pixel of the result):
#   int8      -1: shrink 0, blur 0, reduce -3, resize -3
#   int8    -100: shrink -98, blur -98, reduce -102, resize -102
#   int8     100: shrink 100, blur 100, reduce 100, resize 100
#   int16     -1: shrink 0, blur 0, reduce -3, resize -3
#   int16   -100: shrink -98, blur -98, reduce -102, resize -102
#   int16    100: shrink 100, blur 100, reduce 100, resize 100
#   int32     -1: shrink 0, blur 0, reduce -3, resize -3
#   int32   -100: shrink -98, blur -98, reduce -102, resize -102
#   int32    100: shrink 100, blur 100, reduce 100, resize 100
#   float32   -1: shrink -1, blur -1, reduce -1, resize -1
#   float32 -100: shrink -100, blur -100, reduce -100, resize -100
#   float32  100: shrink 100, blur 100, reduce 100, resize 100
#   levels of a pyramid of int32: [[500000000], [500000000], [500000000]]
#   levels of a pyramid of int32: [[600000000], [-473741824], [-473741824]]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyvips==3.2.0 pyvips-binary==8.18.7 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import pyvips

WAYS = {
    "shrink": lambda image: image.shrink(2, 2),
    "blur": lambda image: image.gaussblur(1),
    "reduce": lambda image: image.reduce(2, 2),
    "resize": lambda image: image.resize(0.5),
}


def seen(number, dtype):
    """An inner pixel of each result for an image that is the number everywhere."""
    image = pyvips.Image.new_from_array(np.full((8, 8), number, dtype=dtype))
    results = [way(image).numpy() for way in WAYS.values()]
    assert all(result.dtype == dtype for result in results)
    return [result[result.shape[0] // 2, result.shape[1] // 2].item() for result in results]


for dtype in ("int8", "int16", "int32", "float32"):
    for number in (-1, -100, 100):
        found = seen(number, dtype)
        print(f"{dtype:7} {number:4}: " + ", ".join(f"{way} {pixel:g}" for way, pixel in zip(WAYS, found)))
        wrong = number < 0 and dtype != "float32"
        expected = [min(number + 2, 0)] * 2 + [number - 2] * 2 if wrong else [number] * 4
        assert found == expected

for number, wrong in ((500000000, 500000000), (600000000, -473741824)):
    image = pyvips.Image.new_from_array(np.full((256, 256), number, dtype="int32"))
    name = f"{number}.tif"
    image.write_to_file(name, pyramid=True, tile=True, tile_width=64, tile_height=64)
    levels = [np.unique(pyvips.Image.new_from_file(name, page=level).numpy()).tolist() for level in range(3)]
    print(f"levels of a pyramid of int32: {levels}")
    assert levels == [[number], [wrong], [wrong]]
PYTHON
