#!/usr/bin/env bash
# DracoPy gives the point (1, 2, 3) back as (1065353216, 1073741824, 1077936128), if it was unsigned.
#
# Versions: DracoPy 2.2.0, numpy 2.5.5.
# Behaviour: Draco compresses meshes and clouds of points. DracoPy encodes points of unsigned integers as such if
# they have faces. Without faces it encodes the bits of floats, and decodes them as uint32: 1065353216 is the pattern of
# 1.0. Encoding and decoding raise no error. Clouds of float32 come back as floats.
# Expected before the run: the numbers (the documentation says "points/vertices (float)"), or an error.
# Output seen (the second of the points (0, 0, 0), (1, 2, 3) and (100, 200, 300)):
#   float32 points alone [1.0, 2.0, 3.0]
#   float32 with a face  [1.0, 2.0, 3.0]
#   uint8   points alone [1065353216, 1073741824, 1077936128]
#   uint8   with a face  [1, 2, 3]
#   uint16  points alone [1065353216, 1073741824, 1077936128]
#   uint16  with a face  [1, 2, 3]
#   uint32  points alone [1065353216, 1073741824, 1077936128]
#   uint32  with a face  [1, 2, 3]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install DracoPy==2.2.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import DracoPy
import numpy as np

points = np.array([[0, 0, 0], [1, 2, 3], [100, 200, 300]])
faces = np.array([[0, 1, 2]], dtype="uint32")
for dtype in ("float32", "uint8", "uint16", "uint32"):
    array = points.astype(dtype)
    for kind in (None, faces):
        encoded = DracoPy.encode(array, kind, quantization_bits=20, preserve_order=True)
        found = DracoPy.decode(encoded).points
        assert found.dtype == (np.float32 if dtype == "float32" else np.uint32)
        name = "points alone" if kind is None else "with a face"
        print(f"{dtype:7} {name:12} {[round(number, 3) for number in found[1].tolist()]}")
        if kind is None and dtype != "float32":
            found = found.view("float32")
        assert np.allclose(found, array, atol=0.001)
PYTHON
