#!/usr/bin/env bash
# One pixel of -2147483648 shifts all pixels behind it in a CBF file of FabIO.
#
# Versions: fabio 2026.6.0 (it reads and writes images of X-ray detectors), numpy 2.4.6.
# Behaviour: CBF stores each pixel as its difference to the one before, in 1, 2, 4 or 8 bytes; the smallest number of each
# width says that a wider one follows. FabIO writes the difference -2**31 where it has to write this mark. When it reads
# its own file, the pixel has the value before it, and all that follow are 2**31 off: 7 becomes -2147483641.
# The marks of one and two bytes are right, also 2147483647 after -2. A float32 image is cut to int32 with a note in the log
# only, and what NumPy makes of NaN, often this number, has the same effect.
# Expected before the run: int32 comes back as it was.
# Output seen:
#   int32 [0, -2147483648, 7, 8] reads [0, 0, -2147483641, -2147483640]
#   int32 [-2147483648, 1, 2, 3] reads [0, -2147483647, -2147483646, -2147483645]
#   int32 [1, -2147483648, 7, 8] reads [1, -2147483648, 7, 8]
#   int32 [0, -32768, 7, 8] reads [0, -32768, 7, 8]
#   int32 [0, -128, 7, 8] reads [0, -128, 7, 8]
#   int32 [-2, 2147483647, 7, 8] reads [-2, 2147483647, 7, 8]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fabio==2026.6.0 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import fabio
import numpy as np
from fabio.cbfimage import CbfImage

low = -(2**31)
seen = [
    ([0, low, 7, 8], [0, 0, low + 7, low + 8]),
    ([low, 1, 2, 3], [0, low + 1, low + 2, low + 3]),
    ([1, low, 7, 8], None),
    ([0, -32768, 7, 8], None),
    ([0, -128, 7, 8], None),
    ([-2, 2**31 - 1, 7, 8], None),
]
for values, expected in seen:
    CbfImage(data=np.array([values], "i4")).write("a.cbf")
    found = fabio.open("a.cbf").data
    assert found.dtype == "int32"
    print("int32", values, "reads", found.ravel().tolist())
    assert found.ravel().tolist() == (expected or values)
PYTHON
