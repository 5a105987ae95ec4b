#!/usr/bin/env bash
# fitsio writes the infinities of an image as NaN, those of a table as they are.
#
# Versions: fitsio 1.4.2, astropy 8.0.2, numpy 2.4.6.
# Behaviour: `fitsio.write` of a float32 or float64 image stores NaN where the array has inf or
# -inf; astropy and fitsio itself read NaN from that file. The same numbers in a column of a
# table stay infinite, and fitsio reads infinities from an image that astropy wrote.
# Expected before the run: the bits of an image are stored as they are.
# Output seen:
#   fitsio image, float32  astropy reads [nan, nan, nan, 1.0]
#   fitsio image, float64  astropy reads [nan, nan, nan, 1.0]
#   astropy image          fitsio reads  [nan, inf, -inf, 1.0]
#   fitsio table           astropy reads [nan, inf, -inf, 1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fitsio==1.4.2 astropy==8.0.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import fitsio
import numpy as np
from astropy.io import fits

values = np.array([np.nan, np.inf, -np.inf, 1])
for dtype in ("float32", "float64"):
    fitsio.write("a.fits", values.astype(dtype).reshape(2, 2), clobber=True)
    image = fits.getdata("a.fits").ravel()
    print(f"fitsio image, {dtype}  astropy reads {image.tolist()}")
    assert np.isnan(image[:3]).all() and image[3] == 1
    np.testing.assert_array_equal(fitsio.read("a.fits").ravel(), image)
fits.PrimaryHDU(values.astype("f4").reshape(2, 2)).writeto("b.fits")
image = fitsio.read("b.fits").ravel()
print("astropy image          fitsio reads ", image.tolist())
np.testing.assert_array_equal(image, values)
fitsio.write("c.fits", values.astype([("x", "f4")]), clobber=True)
column = fits.getdata("c.fits")["x"]
print("fitsio table           astropy reads", column.tolist())
np.testing.assert_array_equal(column, values)
PYTHON
