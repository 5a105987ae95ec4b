#!/usr/bin/env bash
# npy2bdv halves the last row and column of the smaller levels, and writes 70000 as 4464.
#
# Versions: npy2bdv 1.1.0 (it writes light-sheet images for BigDataViewer), h5py 3.16.0, numpy 2.4.6.
# Behaviour: with `subsamp=` npy2bdv writes means of blocks as smaller levels. If a side is odd, its last block is filled with
# zeros before the mean: an image that is 1000 everywhere has 500 along the edge, and 125 in the corner of
# three odd sides. Sides that are even are right. The elements are 16 bits; wider integers
# and floats are cut to their lowest bits without an error.
# Expected before the run: the edge is the mean of the voxels that exist, and wider elements are refused.
# Output seen (an image of 1000, halved along each axis; smallest number of the level):
#   4 x 6 x 8  1000
#   4 x 6 x 9  500
#   4 x 7 x 9  250
#   5 x 7 x 9  125
#   float32 [1.7, 70000.0, 3.0] is written as [1, 4464, 3]
#   int32   [1, 70000, 3] is written as [1, 4464, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install npy2bdv==1.1.0 h5py==3.16.0 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import h5py
import npy2bdv
import numpy as np


def written(image, level, factors):
    name = f"{image.shape}-{image.dtype}.h5"
    blocks = ((4, 4, 4),) * len(factors)
    writer = npy2bdv.BdvWriter(name, subsamp=factors, blockdim=blocks)
    writer.append_view(image)
    writer.write_xml()
    writer.close()
    with h5py.File(name) as file:
        return file[f"t00000/s00/{level}/cells"][:]


seen = {(4, 6, 8): 1000, (4, 6, 9): 500, (4, 7, 9): 250, (5, 7, 9): 125}
for shape, expected in seen.items():
    smaller = written(np.full(shape, 1000, "u2"), 1, ((1, 1, 1), (2, 2, 2)))
    print(" x ".join(map(str, shape)), "", smaller.min())
    assert smaller.min() == expected and smaller.max() == 1000
for dtype, first in (("float32", 1.7), ("int32", 1)):
    image = np.array([[[first, 70000, 3]]], dtype)
    found = written(image, 0, ((1, 1, 1),)).ravel().tolist()
    given = [round(number, 3) for number in image.ravel().tolist()]
    print(f"{dtype:7} {given} is written as {found}")
    assert found == [1, 4464, 3]
PYTHON
