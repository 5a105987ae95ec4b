#!/usr/bin/env bash
# tifffile writes booleans of three colours in an order of bits that it does not read itself.
#
# Versions: tifffile 2026.11.8, imageio 2.38.1 (which writes TIFF with it), imagecodecs 2026.10.10, numpy 2.5.5.
# Behaviour: a TIFF image of one bit per sample keeps the samples of a pixel beside each other, in rows of whole bytes.
# tifffile reads such images so. It writes booleans of shape (rows, columns, 3) with photometric="rgb" in another
# order: it packs the bits of eight columns of one colour, and mixes the bytes of the colours. What it reads back is about as
# right as chance. imageio writes every array of booleans with three or four colours so. Nothing warns. Planes of
# colours and grey masks are right.
# Expected before the run: the array that was written.
# Output seen (parts of the elements that are right):
#   planes.tif      all
#   grey.tif        all
#   colours.tif     0.53
#   imageio.tif     0.53
#   specified.tif   all
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.11.8 imageio==2.38.1 \
    imagecodecs==2026.10.10 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import imageio.v3
import numpy as np
import tifffile

mask = np.random.default_rng(0).integers(0, 2, (32, 32, 3)).astype(bool)


def stored(name):
    """The bytes of the pixels in a file."""
    with tifffile.TiffFile(name) as file:
        page = file.pages[0]
        assert (page.bitspersample, page.samplesperpixel, page.planarconfig) == (1, 3, 1)
        place, size = page.dataoffsets[0], page.databytecounts[0]
        assert len(page.dataoffsets) == 1 and size == mask.size // 8
    with open(name, "rb") as file:
        data = file.read()
    return data[:place], data[place : place + size], data[place + size :]


def show(name, array):
    right = float((tifffile.imread(name) == array).mean())
    print(f"{name:15} {'all' if right == 1 else f'{right:.2f}'}")
    return right


tifffile.imwrite("planes.tif", mask.transpose(2, 0, 1).copy(), photometric="rgb")
assert show("planes.tif", mask.transpose(2, 0, 1)) == 1
tifffile.imwrite("grey.tif", mask[..., 0])
assert show("grey.tif", mask[..., 0]) == 1
tifffile.imwrite("colours.tif", mask, photometric="rgb")
assert 0.4 < show("colours.tif", mask) < 0.6
imageio.v3.imwrite("imageio.tif", mask)
assert 0.4 < show("imageio.tif", mask) < 0.6

before, pixels, after = stored("colours.tif")
specified = np.packbits(mask.reshape(32, -1), axis=1).tobytes()
assert pixels == np.packbits(mask, axis=1).tobytes() != specified
with open("specified.tif", "wb") as file:
    file.write(before + specified + after)
assert show("specified.tif", mask) == 1
PYTHON
