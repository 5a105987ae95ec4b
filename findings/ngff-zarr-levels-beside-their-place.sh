#!/usr/bin/env bash
# Two methods of ngff-zarr make levels whose pixels lie beside the place that the metadata says.
#
# Versions: ngff-zarr 0.50.0, dask-image 2026.5.0, dask 2026.8.0, itkwasm-downsample 2.0.2, scipy 1.17.1,
# numpy 2.4.6.
# Behaviour: each level of OME-Zarr has a scale and a translation. ngff-zarr writes the translation that puts
# a pixel at the middle of those it stands for. `itkwasm_gaussian` and `itkwasm_bin_shrink` make such
# pixels. `dask_image_gaussian` and `dask_image_nearest` take every second pixel, from the first on, and
# get the same metadata: level 1 lies half a pixel of the image off, level 2 one and a half. So levels
# jump while one zooms in, and labels leave their cells. The size of the image makes no difference.
# Expected before the run: the translation fits each method.
# Output seen (an image whose pixels are their own x; in the middle of a row):
#   itkwasm_gaussian     level 1 off by 0.0, level 2 off by 0.0
#   itkwasm_bin_shrink   level 1 off by 0.0, level 2 off by 0.0
#   dask_image_gaussian  level 1 off by -0.5, level 2 off by -1.5
#   dask_image_nearest   level 1 off by -0.5, level 2 off by -1.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install ngff-zarr==0.50.0 dask-image==2026.5.0 dask==2026.8.0 \
    itkwasm-downsample==2.0.2 scipy==1.17.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
from ngff_zarr import Methods, to_multiscales, to_ngff_image

size = 64
image = np.tile(np.arange(size, dtype="f4"), (size, 1))
seen = {
    "itkwasm_gaussian": [0, 0],
    "itkwasm_bin_shrink": [0, 0],
    "dask_image_gaussian": [-0.5, -1.5],
    "dask_image_nearest": [-0.5, -1.5],
}
for name, expected in seen.items():
    zero, one = {"y": 0.0, "x": 0.0}, {"y": 1.0, "x": 1.0}
    base = to_ngff_image(image, dims=("y", "x"), scale=one, translation=zero)
    levels = to_multiscales(base, scale_factors=[2, 4], method=Methods(name), chunks=32)
    off = []
    for level in levels.images[1:]:
        row = np.asarray(level.data)[level.data.shape[0] // 2]
        places = level.translation["x"] + np.arange(len(row)) * level.scale["x"]
        off.append(round(float((row - places)[len(row) // 2]), 2) + 0.0)
    print(f"{name:20} level 1 off by {off[0]}, level 2 off by {off[1]}")
    assert np.allclose(off, expected, atol=0.02)
PYTHON
