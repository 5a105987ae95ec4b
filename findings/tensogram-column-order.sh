#!/usr/bin/env bash
# Tensogram encodes a transposed array with its elements in other places, without an error.
#
# Versions: tensogram 0.24.0 (a message format for N-dimensional fields, of ECMWF), numpy 2.5.5.
# Behaviour: `encode` takes a shape and an array. Of an array in the order of columns, such as a transposed one, or one
# that Fortran or `np.asfortranarray` made, it stores the memory as it lies, and `decode` shapes that
# in the order of rows: shape and numbers are right, their places are not. Arrays with gaps or reversed
# axes are refused with a message. A row or a column alone is right in both orders.
# Expected before the run: the order is kept, or the array is refused as slices are.
# Output seen:
#   order of rows     [[0, 1, 2], [3, 4, 5]] reads [[0, 1, 2], [3, 4, 5]]
#   order of columns  [[0, 1, 2], [3, 4, 5]] reads [[0, 3, 1], [4, 2, 5]]
#   transposed        [[0, 3], [1, 4], [2, 5]] reads [[0, 1], [2, 3], [4, 5]]
#   every second      refused
#   reversed          refused
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tensogram==0.24.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import tensogram

field = np.arange(6.0).reshape(2, 3)
arrays = {
    "order of rows": (field, field),
    "order of columns": (np.asfortranarray(field), [[0, 3, 1], [4, 2, 5]]),
    "transposed": (field.T, [[0, 1], [2, 3], [4, 5]]),
    "every second": (field[:, ::2], None),
    "reversed": (field[::-1], None),
}
plain = {"encoding": "none", "filter": "none", "compression": "none"}
for name, (array, expected) in arrays.items():
    head = {"type": "ntensor", "shape": list(array.shape), "dtype": "float64", **plain}
    try:
        message = tensogram.encode({"base": [{}]}, [(head, array)])
    except Exception as error:
        print(f"{name:17} refused")
        assert expected is None and "not contiguous" in str(error)
        continue
    found = np.asarray(tensogram.decode(message).objects[0][1])
    print(f"{name:17} {array.astype(int).tolist()} reads {found.astype(int).tolist()}")
    np.testing.assert_array_equal(found, expected)
PYTHON
