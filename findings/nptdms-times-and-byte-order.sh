#!/usr/bin/env bash
# npTDMS reads 11702 of the million microseconds of a second as one earlier than it wrote them, and 1, 2, 300 as 256, 512, 11265.
#
# Versions: npTDMS 1.13.0, numpy 2.5.5.
# Behaviour: TDMS, the format of LabVIEW, stores times in parts of 2**-64 seconds, and npTDMS documents that it reads microseconds. It
# multiplies these by a float when it writes, and cuts to whole ones when it reads: 12:00:00.000001 comes back as
# 12:00:00. Each copy of a file moves some of the times again. Arrays of big-endian numbers are written as they lie in memory,
# into a file that says little-endian. The scale "Add" of two inputs in uint8 wraps, where "Linear" gives float64.
# Expected before the run: the times and numbers that were written, and 400.
# Output seen (first: how many of a million times are how many microseconds early):
#   copied 1 times: {0: 988298, 1: 11702}
#   copied 2 times: {0: 988298, 1: 9737, 2: 1965}
#   copied 3 times: {0: 988298, 1: 9737, 2: 614, 3: 1351}
#   2000-01-01T12:00:00.000001 -> 2000-01-01T12:00:00.000000
#   >i2 [1, 2, 300] -> [256, 512, 11265]
#   <i2 [1, 2, 300] -> [1, 2, 300]
#   200 + 200 by the scale Add: 144
#   200 by the scale Linear with slope 2: 400.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install npTDMS==1.13.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import io

import numpy as np
from nptdms import ChannelObject, TdmsFile, TdmsWriter


def copied(values, **properties):
    file = io.BytesIO()
    with TdmsWriter(file) as writer:
        writer.write_segment([ChannelObject("group", "channel", values, properties=properties)])
    file.seek(0)
    return TdmsFile.read(file)["group"]["channel"][:]


def report(name, found, seen):
    print(f"{name}{found}")
    assert str(found) == seen, found


second = np.datetime64("2000-01-01T12:00:00", "us") + np.arange(1_000_000).astype("m8[us]")
times = second
for turn, seen in (
    (1, {0: 988298, 1: 11702}),
    (2, {0: 988298, 1: 9737, 2: 1965}),
    (3, {0: 988298, 1: 9737, 2: 614, 3: 1351}),
):
    times = copied(times)
    early, counts = np.unique((second - times).astype("i8"), return_counts=True)
    report(f"copied {turn} times: ", dict(zip(early.tolist(), counts.tolist())), str(seen))
report(f"{second[1]} -> ", copied(second[:2])[1], "2000-01-01T12:00:00.000000")
numbers = [1, 2, 300]
for kind, seen in (
    (">i2", "[256, 512, 11265]"),
    ("<i2", "[1, 2, 300]"),
):
    report(f"{kind} {numbers} -> ", copied(np.array(numbers, kind)).tolist(), seen)


def scaled(kind, **options):
    properties = {f"NI_Scale[0]_{kind}_{name}": value for name, value in options.items()}
    properties |= {"NI_Number_Of_Scales": 1, "NI_Scale[0]_Scale_Type": kind, "NI_Scaling_Status": "unscaled"}
    return copied(np.array([200], "u1"), **properties)[0].item()


raw = 2**32 - 1
found = scaled("Add", Left_Operand_Input_Source=raw, Right_Operand_Input_Source=raw)
report("200 + 200 by the scale Add: ", found, "144")
found = scaled("Linear", Slope=2.0, Y_Intercept=0.0, Input_Source=raw)
report("200 by the scale Linear with slope 2: ", found, "400.0")
PYTHON
