#!/usr/bin/env bash
# OpenCV makes the height 51200 of 200, or -14336, if it gets a big-endian array.
#
# Versions: opencv-python-headless 5.0.0.93, astropy 8.0.1, numpy 2.5.5.
# Behaviour: the Python bindings look at the kind and the size of the elements, and not at their byte order. Images
# that astropy reads from FITS files, SRTM heights and memory maps of such files are big-endian. `resize`, `medianBlur`,
# `GaussianBlur`, `flip`, `minMaxLoc` and `imwrite` take their bytes for little-endian numbers, and return
# little-endian arrays. Other arrays that they cannot use, as of uint64 in `medianBlur`, they refuse.
# Expected before the run: the numbers of the image, or a refusal.
# Output seen (an image that is 200 everywhere):
#   <u2  each function 200
#   >u2  each function 51200
#   >i2  each function -14336
#   >f4  each function 2.59226e-41, GaussianBlur 2.5924e-41
#   FITS >i2  mean 200  flip -14336
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install opencv-python-headless==5.0.0.93 astropy==8.0.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import cv2
import numpy as np
from astropy.io import fits


def written(image):
    assert cv2.imwrite("image.tif", image)
    return cv2.imread("image.tif", cv2.IMREAD_UNCHANGED)


functions = {
    "resize": lambda image: cv2.resize(image, (2, 2), interpolation=cv2.INTER_AREA),
    "medianBlur": lambda image: cv2.medianBlur(image, 3),
    "GaussianBlur": lambda image: cv2.GaussianBlur(image, (3, 3), 0),
    "flip": lambda image: cv2.flip(image, 0),
    "minMaxLoc": lambda image: np.array(cv2.minMaxLoc(image)[:2]),
    "imwrite": written,
}
swapped = {"<u2": 200, ">u2": 51200, "<i2": 200, ">i2": -14336, "<f4": 200, ">f4": 2.592262029154479e-41}
for dtype, expected in swapped.items():
    image = np.full((4, 4), 200, dtype)
    seen = {}
    for name, function in functions.items():
        (number,) = {float(number) for number in np.ravel(function(image))}
        seen[name] = number
    print(f"{dtype}  " + "  ".join(f"{name} {number:g}" for name, number in seen.items()))
    assert all(np.isclose(number, expected, rtol=1e-3, atol=0) for number in seen.values())
fits.PrimaryHDU(np.full((4, 4), 200, "i2")).writeto("image.fits")
image = fits.getdata("image.fits")
print(f"FITS {image.dtype.str}  mean {image.mean():g}  flip {cv2.flip(image, 0)[0, 0]}")
assert image.mean() == 200 and cv2.flip(image, 0)[0, 0] == -14336
PYTHON
