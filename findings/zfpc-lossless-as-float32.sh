#!/usr/bin/env bash
# The lossless mode of zfpc returns float64 and integers as float32.
#
# Versions: zfpc 0.1.2, zfpy 1.0.1, numpy 2.5.5.
# Behaviour: zfpc splits an array into several streams of zfp, which Neuroglancer's volumes of vectors use. By its
# documentation its default is "reversible (lossless compression) mode". decompress returns float32 whatever
# the type of the array was, so that a third has 8 right digits and integers lose what 24 bits do not hold. zfpy, which it
# calls, gives the same arrays back as they were. Nothing warns.
# Expected before the run: the array that was compressed.
# Output seen (the first element of an array of 4 x 4 x 4):
#   float32 0.33333334         zfpy right, zfpc float32 0.33333334
#   float64 0.3333333333333333 zfpy right, zfpc float32 0.33333334
#   int32   16777217           zfpy right, zfpc float32 1.6777216e+07
#   int64   9007199254740993   zfpy right, zfpc float32 9.007199e+15
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zfpc==0.1.2 zfpy==1.0.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import zfpc
import zfpy

for first in (np.float32(1 / 3), np.float64(1 / 3), np.int32(16777217), np.int64(2**53 + 1)):
    array = np.full((4, 4, 4), first)
    own = zfpc.decompress(zfpc.compress(array))
    plain = zfpy.decompress_numpy(zfpy.compress_numpy(array))
    assert own.shape == array.shape and plain.dtype == array.dtype and (plain == array).all()
    assert own.dtype == np.float32
    assert (own.astype(array.dtype) == array).all() == (array.dtype == np.float32)
    print(f"{array.dtype!s:7} {first!s:18} zfpy right, zfpc {own.dtype} {own.ravel()[0]!s}")
PYTHON
