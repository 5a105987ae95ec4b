#!/usr/bin/env bash
# Pyramids of ome-zarr-py have black edges or wrong positions, by the size of the image.
#
# Versions: ome-zarr 0.18.0, scipy 1.17.1, scikit-image 0.26.0, dask 2026.8.0, zarr 3.1.6, numpy 2.4.6.
# Behaviour: with the method ZOOM an image that is 7 everywhere gets a last row and column of zeros
# in its lower levels if it has 48, 64 or 500 pixels a side, and none if it has 40 or 512: the
# position of the last pixel is rounded to just outside of the image, where scipy.ndimage.zoom
# fills in zeros. With LOCAL_MEAN each pixel is the mean of a whole block; if the size is odd, the last
# pixel is dropped, but the metadata divides the full size by the new one: of 65 pixels the scale is
# 2.03125, not 2, so that the last pixel stands almost one pixel of the image too far. Even sizes
# are exact.
# One would expect: a constant image stays constant; scale and translation fit the blocks.
# Output seen:
#   ZOOM of 7s          zeros in levels 1 and 2
#     40 pixels a side  0, 0
#     48 pixels a side  47, 23
#     64 pixels a side  0, 31
#     500 pixels a side 0, 249
#     512 pixels a side 0, 0
#   LOCAL_MEAN   scale    last pixel stands at, and is the mean at
#     64 pixels  2.0      62.5 62.5
#     65 pixels  2.03125  63.484375 62.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install ome-zarr==0.18.0 scipy==1.17.1 scikit-image==0.26.0 \
    dask==2026.8.0 zarr==3.1.6 numcodecs==0.16.5 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import zarr
from ome_zarr.scale import Methods
from ome_zarr.writer import write_image


def pyramid(image, method):
    path = f"{method.name}-{len(image)}"
    write_image(image, path, axes="yx", method=method, scale_factors=[2, 4])
    group = zarr.open_group(path, mode="r")
    for level in group.attrs["ome"]["multiscales"][0]["datasets"]:
        scale, translation = level["coordinateTransformations"]
        yield group[level["path"]][:], scale["scale"][1], translation["translation"][1]


print("ZOOM of 7s          zeros in levels 1 and 2")
for size, expected in ((40, [0, 0]), (48, [47, 23]), (64, [0, 31]), (500, [0, 249]), (512, [0, 0])):
    levels = [level for level, *_ in pyramid(np.full((size, size), 7, "u2"), Methods.ZOOM)]
    zeros = [int((level == 0).sum()) for level in levels]
    print(f"  {size} pixels a side".ljust(19), f"{zeros[1]}, {zeros[2]}")
    assert zeros == [0, *expected]
    assert all(((level == 7) | (level == 0)).all() for level in levels)

print("LOCAL_MEAN   scale    last pixel stands at, and is the mean at")
for size, expected in ((64, 62.5), (65, 63.484375)):
    ramp = np.tile(np.arange(size, dtype="f4"), (size, 1))
    _, (level, scale, translation), _ = pyramid(ramp, Methods.LOCAL_MEAN)
    stands = translation + scale * (level.shape[1] - 1)
    print(f"  {size} pixels  {scale:<8} {stands} {level[0, -1]}")
    assert level[0, -1] == 62.5 and stands == expected
PYTHON
