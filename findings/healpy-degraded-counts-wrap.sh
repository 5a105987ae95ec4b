#!/usr/bin/env bash
# healpy finds 36 as the mean of four pixels of 100 in uint8, and -1384 as that of 20000, 20000, 20000 and 0 in int16.
#
# Versions: healpy 1.20.1, astropy 8.0.2, numpy 2.5.5.
# Behaviour: `ud_grade` makes a map of the sky coarser. It sums the pixels in the type of the map and writes the mean in that
# type: counts wrap, and a mask of 0 and 1 loses its fractions, so that one masked pixel masks all that it is averaged
# with. `read_map` keeps the type of a file, so counts and masks come as integers. A mask of booleans becomes True
# where any pixel is, unlike one of uint8. Floats, and `dtype=float`, are right. Nothing warns.
# Expected before the run: the mean that the same numbers have as floats.
# Output seen (two coarse pixels; as floats the means are 0.75 and 1.0 times the value):
#   bool of 1           bool [True, True]                dtype=float [0.75, 1.0]
#   uint8 of 1          uint8 [0, 1]                     dtype=float [0.75, 1.0]
#   uint8 of 100        uint8 [11, 36]                   dtype=float [75.0, 100.0]
#   int16 of 20000      int16 [-1384, 3616]              dtype=float [15000.0, 20000.0]
#   int32 of 1000000000 int32 [-323741824, -73741824]    dtype=float [750000000.0, 1000000000.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install healpy==1.20.1 astropy==8.0.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import logging

import healpy
import numpy as np

logging.disable()
seen = {
    "bool of 1": "bool [True, True]",
    "uint8 of 1": "uint8 [0, 1]",
    "uint8 of 100": "uint8 [11, 36]",
    "int16 of 20000": "int16 [-1384, 3616]",
    "int32 of 1000000000": "int32 [-323741824, -73741824]",
}
for name, expected in seen.items():
    dtype, value = name.split(" of ")
    sky = np.full(healpy.nside2npix(2), int(value)).astype(dtype)
    sky[3] = 0
    if dtype in ("int16", "int32"):
        healpy.write_map("sky.fits", sky, nest=True, overwrite=True)
        read = healpy.read_map("sky.fits", nest=None)
        assert read.dtype == sky.dtype.newbyteorder(">") and (read == sky).all()
    coarse = healpy.ud_grade(sky, 1, order_in="NEST")
    right = healpy.ud_grade(sky, 1, order_in="NEST", dtype=float)
    found = f"{coarse.dtype} {coarse[:2].tolist()}"
    print(f"{name:19} {found:32} dtype=float {right[:2].tolist()}")
    assert right[:2].tolist() == [int(value) * 0.75, int(value)]
    assert found == expected, found
PYTHON
