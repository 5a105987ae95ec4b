#!/usr/bin/env bash
# laspy writes a point whose coordinate is NaN at -2147483.648, where it refuses places out of range.
#
# Versions: laspy 2.7.0, numpy 2.5.5.
# Behaviour: LAS files hold coordinates as 32-bit integers with a scale. laspy checks that they fit, and raises
# OverflowError for 2147484 with a scale of 0.001. NaN passes that check, and what the conversion to integers
# makes of it on x86 is written: the smallest place that the file can hold, which also is the minimum in its header. An
# intensity of 70000 becomes 4464, and a class of 300 becomes 44, without an error, while a return number of 16
# is refused.
# Expected before the run: NaN is refused as other numbers are that do not fit.
# Output seen:
#   x of [2147484, 1, 2]  OverflowError
#   x of [nan, 1, 2]      reads [-2147483.648, 1.0, 2.0], minimum in the header -2147483.648
#   intensity [70000, 1, 2] reads [4464, 1, 2], classification [300, 1, 2] reads [44, 1, 2]
#   return_number [16, 1, 2] OverflowError
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install laspy==2.7.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import laspy
import numpy as np


def read(**dimensions):
    """What the file holds after these dimensions of three points were set, and its header."""
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [0.001] * 3, [0] * 3
    cloud = laspy.LasData(header)
    cloud.x = cloud.y = cloud.z = np.zeros(3)
    for name, numbers in dimensions.items():
        setattr(cloud, name, np.array(numbers))
    cloud.write("a.las")
    return laspy.read("a.las")


def refused(**dimensions):
    try:
        read(**dimensions)
    except OverflowError:
        return True
    return False


assert refused(x=[2147484.0, 1, 2])
print("x of [2147484, 1, 2]  OverflowError")
cloud = read(x=[np.nan, 1, 2])
found, least = np.asarray(cloud.x).tolist(), float(cloud.header.mins[0])
print(f"x of [nan, 1, 2]      reads {found}, minimum in the header {least}")
assert found == [-2147483.648, 1, 2] and least == found[0]
cloud = read(intensity=[70000, 1, 2], classification=[300, 1, 2])
found = np.asarray(cloud.intensity).tolist(), np.asarray(cloud.classification).tolist()
print("intensity [70000, 1, 2] reads {}, classification [300, 1, 2] reads {}".format(*found))
assert found == ([4464, 1, 2], [44, 1, 2])
assert refused(return_number=[16, 1, 2])
print("return_number [16, 1, 2] OverflowError")
PYTHON
