#!/usr/bin/env bash
# fastremap.transpose mixes up arrays that are not square, and edt measures only zeros in big-endian images.
#
# Versions: fastremap 1.21.0, edt 3.1.2, numpy 2.5.5.
# Behaviour: `transpose` promises a transposed array. If the sides are equal, it returns one. Else it returns an array of
# the shape that was given, in which the elements lie in the order of the transposed one: neither the array nor
# its transpose. `edt.edt` gives the distance of each voxel to the background. For a big-endian image, as FITS and old
# TIFF files have them, all distances are 0. Other functions of fastremap refuse big-endian arrays. No error.
# Expected before the run: what NumPy's `.T` and SciPy give, or an error.
# Output seen:
#   [[0, 1], [2, 3]]        transposed [[0, 2], [1, 3]]
#   [[0, 1, 2], [3, 4, 5]]  transposed [[0, 3, 1], [4, 2, 5]]
#   distances in <u2 [0.0, 1.0, 2.0, 1.0, 0.0]
#   distances in >u2 [0.0, 0.0, 0.0, 0.0, 0.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fastremap==1.21.0 edt==3.1.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import edt
import fastremap
import numpy as np

for array, seen in (
    (np.array([[0, 1], [2, 3]]), [[0, 2], [1, 3]]),
    (np.array([[0, 1, 2], [3, 4, 5]]), [[0, 3, 1], [4, 2, 5]]),
):
    given = str(array.tolist())
    found = fastremap.transpose(array).tolist()
    print(f"{given:23} transposed {found}")
    assert found == seen
for dtype, seen in (("<u2", [0, 1, 2, 1, 0]), (">u2", [0] * 5)):
    image = np.zeros((5, 5), dtype)
    image[1:4, 1:4] = 1
    found = edt.edt(image, black_border=False)[2].tolist()
    print(f"distances in {dtype} {found}")
    assert found == seen
PYTHON
