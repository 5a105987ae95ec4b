#!/usr/bin/env bash
# multiview-stitcher writes 199 where two tiles overlap that are 200 everywhere, and 0 in place of NaN.
#
# Versions: multiview-stitcher 0.1.62, numpy 2.5.5.
# Behaviour: fuse weighs tiles in float32 where they overlap, and cuts the sum to an integer instead of rounding it. The
# weights do not add up to 1 to the last bit, so that some pixels lose 1: labels get another label, of which the tiles have
# none, and 1 becomes 0. uint32 are off by 256 in both directions. NaN in a tile of floats becomes 0, also
# where no other tile is. The integers of one tile alone stay as they are. Nothing warns.
# Expected before the run: the number of both tiles, since their mean is the same; NaN where no tile has a number.
# Output seen (two tiles of 20 x 30 pixels, 10 columns of which overlap; pixels of each number in these columns):
#   uint8 200: {199: 24, 200: 176}
#   uint8 1: {0: 16, 1: 184}
#   int16 -100: {-100: 176, -99: 24}
#   uint32 4000000000: {3999999744: 24, 4000000000: 136, 4000000256: 40}
#   float32 [3.0, nan, 3.0]: [3.0, 0.0, 3.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install multiview-stitcher==0.1.62 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
from multiview_stitcher import fusion, spatial_image_utils


def tile(array, place):
    return spatial_image_utils.get_sim_from_array(
        array,
        dims=["y", "x"],
        scale={"y": 1.0, "x": 1.0},
        translation={"y": 0.0, "x": float(place)},
        transform_key="stage",
    )


def fused(*tiles):
    return np.squeeze(np.asarray(fusion.fuse(list(tiles), transform_key="stage").data))


CASES = (("uint8", 200, {199, 200}), ("uint8", 1, {0, 1}), ("int16", -100, {-100, -99}))
CASES += (("uint32", 4000000000, {3999999744, 4000000000, 4000000256}),)
for dtype, number, expected in CASES:
    array = np.full((20, 30), number, dtype=dtype)
    image = fused(tile(array, 0), tile(array, 20))
    assert image.shape == (20, 50) and image.dtype == dtype
    assert (image[:, :20] == number).all() and (image[:, 30:] == number).all()
    found = dict(zip(*(part.tolist() for part in np.unique(image[:, 20:30], return_counts=True)), strict=True))
    print(f"{dtype} {number}: {found}")
    assert set(found) == expected

array = np.full((20, 30), 3, dtype="float32")
array[5, 5] = np.nan
pixels = fused(tile(array, 0))[5, 4:7].tolist()
print(f"float32 {array[5, 4:7].tolist()}: {pixels}")
assert pixels == [3, 0, 3]
PYTHON
