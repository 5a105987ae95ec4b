#!/usr/bin/env bash
# Pillow reads the integers of FITS files as other integers: negative ones, and all unsigned ones.
#
# Versions: pillow 13.0.0, astropy 8.0.2, fitsio 1.4.2, numpy 2.4.6.
# Behaviour: 16-bit integers of FITS have a sign; Pillow gives them the mode "I;16", which has none: -1
# becomes 65535. FITS stores unsigned integers, as cameras write them, less a half of their range, and
# says so in BZERO. Pillow ignores BZERO and BSCALE: of a uint16 image 0 becomes 32768 and 32768
# becomes 0; of a uint32 image all numbers are 2**31 too small. A stretched picture hides it.
# Expected before the run: BZERO is ignored; the sign is not.
# Output seen:
#   int16           astropy [-1, 0, 1]  fitsio [-1, 0, 1]  Pillow I;16 [65535, 0, 1]
#   uint16          astropy [0, 1, 40000]  fitsio [0, 1, 40000]  Pillow I;16 [32768, 32769, 7232]
#   uint32          astropy [0, 1, 40000]  fitsio [0, 1, 40000]  Pillow I [-2147483648, -2147483647, -2147443648]
#   int16 as 0.5 x  astropy [-0.5, 0.0, 0.5]  fitsio [-0.5, 0.0, 0.5]  Pillow I;16 [65535, 0, 1]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pillow==13.0.0 astropy==8.0.2 fitsio==1.4.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import fitsio
import numpy as np
from astropy.io import fits
from PIL import Image


def show(name, values, *expected, scale=None):
    fits.PrimaryHDU(np.array([values])).writeto("a.fits", overwrite=True)
    if scale:
        with fits.open("a.fits", "update", do_not_scale_image_data=True) as file:
            file[0].header["BSCALE"] = scale
    with Image.open("a.fits") as image:
        mode, pillow = image.mode, np.asarray(image)[0].tolist()
    found = fits.getdata("a.fits")[0].tolist(), fitsio.read("a.fits")[0].tolist(), pillow
    print(f"{name:<15} astropy {found[0]}  fitsio {found[1]}  Pillow {mode} {pillow}")
    assert found == expected, found


signed, unsigned = [-1, 0, 1], [0, 1, 40000]
show("int16", np.array(signed, "i2"), signed, signed, [65535, 0, 1])
show("uint16", np.array(unsigned, "u2"), unsigned, unsigned, [32768, 32769, 7232])
show("uint32", np.array(unsigned, "u4"), unsigned, unsigned, [-(2**31), 1 - 2**31, 40000 - 2**31])
halves = [-0.5, 0.0, 0.5]
show("int16 as 0.5 x", np.array(signed, "i2"), halves, halves, [65535, 0, 1], scale=0.5)
PYTHON
