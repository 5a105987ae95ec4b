#!/usr/bin/env bash
# FabIO writes most pixels of unsigned images wrong into Oxford Diffraction files: 100 becomes 65636.
#
# Versions: fabio 2026.6.0, numpy 2.5.5.
# Behaviour: the compression TY1 of these files stores differences of neighbours. FabIO takes them in the type of the
# image. From 110 to 100, uint16 gives 65526, which is written as a difference of four bytes, and every pixel behind
# it is 65536 too large. int16 wraps where a difference does not fit. The same image as int32 is written right.
# Into CBF, floats are cut to integers. No error.
# Expected before the run: the numbers that were written, or a refusal.
# Output seen (the first row read back):
#   OxdImage  int32   [120, 110, 100, 90]     reads [120, 110, 100, 90]
#   OxdImage  uint16  [120, 110, 100, 90]     reads [120, 65646, 131172, 196698]
#   OxdImage  uint8   [120, 110, 100, 90]     reads [120, 366, 612, 858]
#   OxdImage  int16   [-20000, 20000, 1, 2]   reads [-32, 32, 1, 2]
#   CbfImage  float32 [0.25, 0.5, -1.5, 2.75] reads [0, 0, -1, 2]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fabio==2026.6.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import fabio
import numpy as np
from fabio.cbfimage import CbfImage
from fabio.OXDimage import OxdImage

for kind, dtype, row, seen in (
    (OxdImage, "int32", [120, 110, 100, 90], [120, 110, 100, 90]),
    (OxdImage, "uint16", [120, 110, 100, 90], [120, 65646, 131172, 196698]),
    (OxdImage, "uint8", [120, 110, 100, 90], [120, 366, 612, 858]),
    (OxdImage, "int16", [-20000, 20000, 1, 2], [-32, 32, 1, 2]),
    (CbfImage, "float32", [0.25, 0.5, -1.5, 2.75], [0, 0, -1, 2]),
):
    name = f"{dtype}.{'img' if kind is OxdImage else 'cbf'}"
    kind(data=np.tile(np.array(row, dtype), (64, 16))).write(name)
    found = fabio.open(name).data[0, :4].tolist()
    print(f"{kind.__name__:8}  {dtype:7} {row!s:23} reads {found}")
    assert found == seen
PYTHON
