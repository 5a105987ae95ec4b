#!/usr/bin/env bash
# astropy's compressed images cut floats to integers when quantization is switched off.
#
# Versions: astropy 8.0.2, fitsio 1.4.2, numpy 2.4.6.
# Behaviour: `CompImageHDU(..., quantize_level=0)` stops the quantization of floats. With the default
# compression, RICE_1, which knows integers only, the floats are cut to whole numbers: an image of
# 0 to 1 reads back as zeros and a one, with no warning from the writer or the reader. With GZIP_2 the
# same call is exact. fitsio (cfitsio) reads the RICE_1 file to yet other numbers: the integers as
# the bits of floats.
# One would expect: RICE_1 without quantization is refused, or quantizes after all.
# Output seen:
#   RICE_1  astropy [0.0, 0.0, 0.0, 0.0, 1.0]  fitsio [0.0, 0.0, 0.0, 0.0, 1.401298464324817e-45]
#   GZIP_2  astropy [0.0, 0.25, 0.5, 0.75, 1.0]  fitsio [0.0, 0.25, 0.5, 0.75, 1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install astropy==8.0.2 fitsio==1.4.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W error - <<'PYTHON'
import fitsio
import numpy as np
from astropy.io import fits

values = np.linspace(0, 1, 5, dtype="f4").reshape(1, 5)
seen = {"RICE_1": ([0, 0, 0, 0, 1], [0, 0, 0, 0, 2.0**-149]), "GZIP_2": ([0, 0.25, 0.5, 0.75, 1],) * 2}
for method, expected in seen.items():
    hdu = fits.CompImageHDU(values, compression_type=method, quantize_level=0)
    hdu.writeto("a.fits", overwrite=True)
    own = fits.getdata("a.fits").ravel().tolist()
    other = fitsio.read("a.fits", ext=1).ravel().tolist()
    print(f"{method}  astropy {own}  fitsio {other}")
    assert (own, other) == expected
assert fits.CompImageHDU(values).compression_type == "RICE_1"
PYTHON
