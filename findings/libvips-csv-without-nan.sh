#!/usr/bin/env bash
# libvips reads the NaN and the infinities of a CSV file that it wrote itself as 0.
#
# Versions: pyvips 3.2.0, libvips 8.18.7 (the package pyvips-binary), numpy 2.5.5.
# Behaviour: libvips saves images as CSV files with all their types. It writes NaN and infinities as "nan", "inf" and
# "-inf", and reads each of them as 0, without an error or a warning. Of unsigned 32-bit integers it writes those above
# 2147483647 as negative ones. NumPy reads all of the floats right.
# Expected before the run: the numbers that were written.
# Output seen:
#   float64 [1.5, nan, inf, -inf]: file 1.5 nan inf -inf
#           libvips [1.5, 0.0, 0.0, 0.0]
#   uint32  [1, 2147483647, 2147483648, 4294967295]: file 1 2147483647 -2147483648 -1
#           libvips [1.0, 2147483647.0, -2147483648.0, -1.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyvips==3.2.0 pyvips-binary==8.18.7 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import pyvips

for number, array in enumerate(
    (np.array([[1.5, np.nan, np.inf, -np.inf]]), np.array([[1, 2**31 - 1, 2**31, 2**32 - 1]], dtype="uint32"))
):
    name = f"{number}.csv"
    image = pyvips.Image.new_from_array(array)
    assert np.array_equal(image.numpy(), array, equal_nan=array.dtype.kind == "f")
    image.write_to_file(name)
    with open(name) as file:
        words = file.read().split()
    found = pyvips.Image.new_from_file(name).numpy()[0]
    print(f"{array.dtype!s:7} {array[0].tolist()}: file {' '.join(words)}")
    print(f"        libvips {found.tolist()}")
    if number == 0:
        assert np.array_equal(np.loadtxt(name), array[0], equal_nan=True)
        assert found.tolist() == [1.5, 0, 0, 0]
    else:
        assert found.tolist() == [1, 2**31 - 1, -(2**31), -1]
PYTHON
