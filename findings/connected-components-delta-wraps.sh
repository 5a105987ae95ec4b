#!/usr/bin/env bash
# connected-components-3d joins -100 and 100 if values that differ by at most 60 belong together.
#
# Versions: connected-components-3d 4.1.1 (cc3d), numpy 2.5.5.
# Behaviour: with delta=D, cc3d "connects together values whose difference in value is <= delta". It computes the
# difference of signed integers in their own type, where 200 is -56 for int8. So far values count as near,
# and even the least and the largest int32 are one component for a difference of 1. The same values as float32, which
# cc3d also takes, are two components. Nothing warns.
# Expected before the run: two components in all types.
# Output seen:
#   -100 and 100, delta=60: int8 [1, 1], float32 [1, 2]
#   -30000 and 30000, delta=6000: int16 [1, 1], float32 [1, 2]
#   -2147483648 and 2147483647, delta=1: int32 [1, 1], float32 [1, 2]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install connected-components-3d==4.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import cc3d
import numpy as np

CASES = (("int8", -100, 100, 60), ("int16", -30000, 30000, 6000), ("int32", -(2**31), 2**31 - 1, 1))
for dtype, low, high, delta in CASES:
    found = {}
    for kind in (dtype, "float32"):
        labels = cc3d.connected_components(np.array([[[low, high]]], dtype=kind), delta=delta)
        found[kind] = labels.ravel().tolist()
    print(f"{low} and {high}, delta={delta}: {dtype} {found[dtype]}, float32 {found['float32']}")
    assert found == {dtype: [1, 1], "float32": [1, 2]}
PYTHON
