#!/usr/bin/env bash
# fitsio shows the blank pixels of FITS images as numbers: -16374 beside 10.5 and 12.
#
# Versions: fitsio 1.4.2 (with its own CFITSIO), astropy 8.0.2, numpy 2.5.5.
# Behaviour: an image of integers in FITS marks undefined pixels with the integer that the keyword BLANK names.
# CFITSIO replaces them if its caller asks for that, which fitsio does not: it scales them with BSCALE and BZERO like
# the others, and returns plain floats, with no mask. In a compressed image (RICE_1) it is the same. The header
# that it returns has BLANK. astropy returns NaN. Of tables, fitsio returns the integers that TNULLn marks.
# Expected before the run: NaN, as for the missing pixels of a compressed image of floats.
# Output seen:
#   image      astropy [10.5, 11.0, nan, 12.0], fitsio [10.5, 11.0, -16374.0, 12.0]
#   compressed astropy [10.5, 11.0, nan, 12.0], fitsio [10.5, 11.0, -16374.0, 12.0]
#   table      astropy [1, 2, None, 4], fitsio [1, 2, -32768, 4]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fitsio==1.4.2 astropy==8.0.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import fitsio
import numpy as np
from astropy.io import fits
from astropy.table import Table

stored = np.tile(np.array([1, 2, -32768, 4], dtype="int16"), (4, 1))
for name, kind in (("image", fits.ImageHDU), ("compressed", fits.CompImageHDU)):
    hdu = kind(stored)
    hdu.header["BLANK"] = -32768
    hdu.header["BSCALE"] = 0.5
    hdu.header["BZERO"] = 10.0
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto("image.fits", overwrite=True)
    right = fits.getdata("image.fits", 1)[0]
    assert np.array_equal(right, [10.5, 11, np.nan, 12], equal_nan=True)
    found = fitsio.read("image.fits", ext=1)[0]
    print(f"{name:10} astropy {right.tolist()}, fitsio {found.tolist()}")
    assert found.tolist() == [10.5, 11, -16374, 12]

column = fits.Column("x", "I", null=-32768, array=stored[0])
fits.BinTableHDU.from_columns([column]).writeto("table.fits")
masked = Table.read("table.fits")["x"].tolist()
found = fitsio.read("table.fits", ext=1)["x"]
print(f"{'table':10} astropy {masked}, fitsio {found.tolist()}")
assert masked == [1, 2, None, 4]
assert found.tolist() == stored[0].tolist() and not np.ma.isMaskedArray(found)
PYTHON
