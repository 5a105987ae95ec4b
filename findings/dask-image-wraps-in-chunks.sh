#!/usr/bin/env bash
# Filters of dask-image with mode="wrap" wrap around each outer chunk instead of around the array.
#
# Versions: dask-image 2026.5.0, dask 2026.8.0, scipy 1.17.1, numpy 2.4.6.
# Behaviour: on a globe the last longitude is beside the first, which is what mode "wrap" is for. dask-image
# gives the filter to SciPy chunk by chunk, with the neighbours of each chunk around it, but at the edge of the
# array with nothing: SciPy then wraps around within the chunk. So the smoothed field depends on the chunks
# at both ends. One chunk is right, and so are the modes reflect, nearest, mirror and constant. `convolve`
# and `correlate` had this fault until 2021; gaussian, uniform, median, maximum and sobel filters have it.
# Expected before the run: the numbers of SciPy with any chunks, as the functions are named after its own.
# Output seen (eight longitudes with 80 at the last, a mean of three with wrap; the first and the last):
#   SciPy         26.67 26.67
#   one chunk     26.67 26.67
#   chunks of 4   0.0 26.67
#   convolve      26.67 26.67
#   other modes   right with chunks of 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install dask-image==2026.5.0 dask==2026.8.0 scipy==1.17.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import dask.array
import numpy as np
from dask_image.ndfilters import convolve, uniform_filter
from scipy import ndimage

values = np.array([0.0, 0, 0, 0, 0, 0, 0, 80])
right = ndimage.uniform_filter(values, 3, mode="wrap")


def filtered(chunk, mode):
    return uniform_filter(dask.array.from_array(values, chunks=chunk), 3, mode=mode).compute()


def ends(numbers):
    return [round(float(number), 2) for number in (numbers[0], numbers[-1])]


whole, parts = filtered(8, "wrap"), filtered(4, "wrap")
mended = convolve(dask.array.from_array(values, chunks=4), np.ones(3) / 3, mode="wrap").compute()
seen = {"SciPy": right, "one chunk": whole, "chunks of 4": parts, "convolve": mended}
for title, numbers in seen.items():
    print(f"{title:13}", *ends(numbers))
assert np.allclose(mended, right)
assert ends(right) == ends(whole) == [26.67, 26.67]
assert np.allclose(whole, right) and not np.allclose(parts, right)
for mode in ("reflect", "nearest", "mirror", "constant"):
    assert np.allclose(filtered(4, mode), ndimage.uniform_filter(values, 3, mode=mode))
print("other modes   right with chunks of 4")
PYTHON
