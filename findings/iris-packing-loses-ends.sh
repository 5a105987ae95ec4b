#!/usr/bin/env bash
# Iris packs the largest number as a missing value, or the smallest, and all numbers beside one NaN as NaN.
#
# Versions: scitools-iris 3.16.2, netCDF4 1.7.5.1.post1, numpy 2.5.5.
# Behaviour: `iris.save(..., packing="u1")` fits scale and offset to the numbers. The largest gets the code 255 (65535
# with "u2"), which also is the default fill value of netCDF; if other elements are masked, the smallest gets
# the code -127 or -32767 with "i1" and "i2", the fill value of signed types. These numbers are masked when the file is
# read; saving gives no warning of Iris. One NaN makes scale and offset NaN, and with them the whole array. Where
# a user gives the scale, numbers that do not fit wrap around: 3500 as "i2" with 0.1 becomes -3053.6.
# Expected before the run: the numbers to within one step, NaN as NaN or a missing value, and an error for 3500.
# Output seen (what Iris loads):
#   u1 [0.0, 25.0, 75.0, 100.0]      reads [0.0, 25.1, 74.9, '--']
#   u2 [0.0, 25.0, 75.0, 100.0]      reads [0.0, 25.0, 75.0, '--']
#   i2 [0.0, 25.0, 75.0, 100.0]      reads [0.0, 25.0, 75.0, 100.0]
#   i2 [0.0, 25.0, '--', 100.0]      reads ['--', 25.0, '--', 100.0]
#   i2 [0.0, 25.0, nan, 100.0]       reads [nan, nan, nan, nan]
#   i2 with 0.1 [0.0, 25.0, 3500.0]  reads [0.0, 25.0, -3053.6]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install scitools-iris==3.16.2 netCDF4==1.7.5.1.post1 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import warnings

import iris
import iris.cube
import numpy as np

iris.FUTURE.save_split_attrs = True


def shown(numbers):
    return ["--" if number is None else round(number, 1) for number in np.ma.asarray(numbers).tolist()]


def check(packing, numbers, seen, quiet=True):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        iris.save(iris.cube.Cube(numbers, var_name="a"), "a.nc", packing=packing)
    found = shown(iris.load_cube("a.nc").data)
    name = packing if isinstance(packing, str) else "{dtype} with {scale_factor}".format(**packing)
    print(f"{f'{name} {shown(numbers)}':32} reads {found}")
    assert str(found) == seen
    assert not quiet or not any(issubclass(one.category, iris.warnings.IrisUserWarning) for one in warned)


numbers = np.array([0.0, 25.0, 75.0, 100.0])
check("u1", numbers, "[0.0, 25.1, 74.9, '--']")
check("u2", numbers, "[0.0, 25.0, 75.0, '--']")
check("i2", numbers, "[0.0, 25.0, 75.0, 100.0]")
check("i2", np.ma.masked_equal(numbers, 75), "['--', 25.0, '--', 100.0]")
check("i2", np.where(numbers == 75, np.nan, numbers), "[nan, nan, nan, nan]", quiet=False)
given = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 0.0}
check(given, np.array([0, 25, 3500.0]), "[0.0, 25.0, -3053.6]", quiet=False)
PYTHON
