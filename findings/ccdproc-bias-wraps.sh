#!/usr/bin/env bash
# ccdproc subtracts a bias of 302 from a pixel of 300 and finds 65534, if both come from raw frames.
#
# Versions: ccdproc 2.5.1, astropy 8.0.2, numpy 2.5.5.
# Behaviour: cameras write unsigned 16-bit numbers, and astropy reads such a FITS file as uint16. Noise puts half of the dark
# pixels below the bias. `subtract_bias`, `ccd_process` and `subtract_dark` compute in uint16 if both frames have it, and the pixels
# below become the brightest of the image; the file that is written has them too. With a bias in floats, as
# `combine` makes it of several frames, and with an overscan the differences are negative and right. No warning.
# Expected before the run: -2 in all cases.
# Output seen (pixels of 300, 310 and 900, and a bias of 302, 300 and 300):
#   subtract_bias, bias in uint16      uint16 [65534, 10, 600]
#   ccd_process, bias in uint16        uint16 [65534, 10, 600]
#   subtract_dark, dark in uint16      uint16 [65534, 10, 600]
#   subtract_bias, two biases combined float64 [-2.0, 10.0, 600.0]
#   written and read again             uint16 [65534, 10, 600]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install ccdproc==2.5.1 astropy==8.0.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import astropy.units as u
import ccdproc
import numpy as np
from astropy.io import fits
from astropy.nddata import CCDData

for name, pixels in (("raw", [300, 310, 900]), ("bias", [302, 300, 300])):
    fits.PrimaryHDU(np.array([pixels], "u2")).writeto(f"{name}.fits")
raw, bias = (CCDData.read(f"{name}.fits", unit="adu") for name in ("raw", "bias"))
times = {"dark_exposure": 1 * u.s, "data_exposure": 1 * u.s}
wrapped = "uint16 [65534, 10, 600]"
for name, frame, seen in (
    ("subtract_bias, bias in uint16", ccdproc.subtract_bias(raw, bias), wrapped),
    ("ccd_process, bias in uint16", ccdproc.ccd_process(raw, master_bias=bias), wrapped),
    ("subtract_dark, dark in uint16", ccdproc.subtract_dark(raw, bias, **times), wrapped),
    (
        "subtract_bias, two biases combined",
        ccdproc.subtract_bias(raw, ccdproc.combine([bias, bias], method="average")),
        "float64 [-2.0, 10.0, 600.0]",
    ),
):
    found = f"{frame.data.dtype} {frame.data[0].tolist()}"
    print(f"{name:34} {found}")
    assert found == seen, found
ccdproc.subtract_bias(raw, bias).write("reduced.fits")
pixels = fits.getdata("reduced.fits")
found = f"{pixels.dtype} {pixels[0].tolist()}"
print(f"{'written and read again':34} {found}")
assert found == wrapped
PYTHON
