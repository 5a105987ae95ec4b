#!/usr/bin/env bash
# casa-formats-io reads a CASA image of complex numbers as float64: 1 + 2j becomes 2.0000004731118679.
#
# Versions: casa-formats-io 0.3.1, python-casacore 3.8.1, dask 2026.8.0, numpy 2.5.5.
# Behaviour: radio astronomers keep images and visibility planes in CASA's own format. casa-formats-io, which spectral-cube
# uses, opens them as dask arrays without CASA. It takes the type of the pixels from the size of the file: four
# bytes a pixel are float32, and eight are float64. Complex numbers of two times four bytes have eight as well, so each is read
# as one float64 of their bits, although the table says its type. Complex numbers of sixteen bytes are refused. float32
# and float64 are right, in any tiles. Nothing warns.
# Expected before the run: complex64, as python-casacore reads it, or a refusal.
# Output seen (the second pixel, which is 1 + 2j or 1):
#   float32     casacore 1.0       casa-formats-io float32 1.0
#   float64     casacore 1.0       casa-formats-io float64 1.0
#   complex64   casacore (1+2j)    casa-formats-io float64 2.0000004731118679
#   complex128  casacore (1+2j)    casa-formats-io refuses it
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install casa-formats-io==0.3.1 python-casacore==3.8.1 dask==2026.8.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
from casa_formats_io import image_to_dask
from casacore.images import image

seen = {"float32": "float32 1.0", "float64": "float64 1.0", "complex64": "float64 2.0000004731118679"}
for dtype in ("float32", "float64", "complex64", "complex128"):
    pixels = np.arange(120).reshape(4, 5, 6).astype(dtype)
    if pixels.dtype.kind == "c":
        pixels += 2j * pixels.real
    written = image(f"{dtype}.image", values=pixels)
    del written
    true = image(f"{dtype}.image").getdata()
    assert (true == pixels).all() and true.dtype == dtype
    try:
        found = image_to_dask(f"{dtype}.image").compute()
        found = f"{found.dtype} {found.flat[1]:.17}" if dtype == "complex64" else f"{found.dtype} {found.flat[1]}"
    except ValueError as error:
        assert "file size" in str(error), error
        found = "refuses it"
    print(f"{dtype:10}  casacore {true.flat[1]!s:8}  casa-formats-io {found}")
    assert found == seen.get(dtype, "refuses it"), found
PYTHON
