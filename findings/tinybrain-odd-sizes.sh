#!/usr/bin/env bash
# tinybrain makes wrong edges when it halves an image that has an odd number of rows or columns.
#
# Versions: tinybrain 1.7.0 (it makes the pyramids of CloudVolume and Igneous), numpy 2.4.6.
# Behaviour: `downsample_with_averaging(image, (2, 2, 1))` makes one level. If a side is odd, the mean of
# the last row stands in the row before it, and zeros or chance numbers in the last row and column.
# With `num_mips=2` the same call gives the right first level. Sides that are even, and the factor
# (2, 2, 2), are right. There is no error or warning.
# Expected before the run: the edge is the mean of the pixels that exist, as with num_mips=2.
# Output seen (wrong of all pixels in the first level):
#   16 x 16  num_mips=1: 0 of 64, num_mips=2: 0 of 64
#   17 x 16  num_mips=1: 16 of 72, num_mips=2: 0 of 72
#   16 x 17  num_mips=1: 8 of 72, num_mips=2: 0 of 72
#   17 x 17  num_mips=1: 25 of 81, num_mips=2: 0 of 81
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tinybrain==1.7.0 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import tinybrain


def mean(image):
    """Of blocks of 2 by 2, and of the pixels that exist at the edges."""
    size = [-(-length // 2) for length in image.shape[:2]]
    blocks = [
        image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for i, j in np.ndindex(*size)
    ]
    return np.array(blocks).reshape(size)


seen = {(16, 16): 0, (17, 16): 16, (16, 17): 8, (17, 17): 25}
for shape, expected in seen.items():
    image = 1000 + np.arange(shape[0] * shape[1], dtype="f4").reshape(*shape, 1)
    right = mean(image)
    wrong = []
    for mips in (1, 2):
        level = tinybrain.downsample_with_averaging(image, (2, 2, 1), num_mips=mips)[0][..., 0]
        wrong.append(level != right)
    count = [int(level.sum()) for level in wrong]
    print(
        f"{shape[0]} x {shape[1]}  num_mips=1: {count[0]} of {right.size}, "
        f"num_mips=2: {count[1]} of {right.size}"
    )
    assert count == [expected, 0]
PYTHON
