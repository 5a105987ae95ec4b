#!/usr/bin/env bash
# RosettaSciIO writes the largest height of a DigitalSurf surface as the smallest, and 7 for TVIPS as 1088421888.
#
# Versions: rosettasciio 0.15.0 (reads and writes files for HyperSpy), numpy 2.5.5, on x86-64.
# Behaviour: floats go into a .sur file as 32-bit integers with a scale. In float32 the scaled maximum is 2**31, which
# does not fit and becomes the smallest integer: the highest point of the surface is read as the lowest. float64 is right.
# NaN becomes the smallest number, one infinity makes all others NaN, and a surface that is 5 everywhere is
# -2147483648. NumPy warns of a cast. A .tvips file tells the width of a pixel alone: floats come
# back as their bits, negative integers as large ones, with no warning.
# Expected before the run: the heights within the precision of 32 bits, and an error for types that TVIPS lacks.
# Output seen:
#   .sur   float64 [1.0, 2.0, 3.0, 7.0] [1.0, 2.0, 3.0, 7.0]
#   .sur   float32 [1.0, 2.0, 3.0, 7.0] [1.0, 2.0, 3.0, 1.0]
#   .sur   float64 [1.0, nan, 3.0, 7.0] [1.0, 1.0, 3.0, 7.0]
#   .sur   float64 [1.0, inf, 3.0, 7.0] [nan, nan, nan, nan]
#   .sur   float64 [5.0, 5.0, 5.0, 5.0] [-2147483648.0, -2147483648.0, -2147483648.0, -2147483648.0]
#   .tvips uint16  [1.0, 2.0, 3.0, 7.0] [1.0, 2.0, 3.0, 7.0]
#   .tvips int16   [1.0, -2.0, 3.0, 7.0] [1.0, 65534.0, 3.0, 7.0]
#   .tvips float32 [1.0, 2.0, 3.0, 7.0] [1065353216.0, 1073741824.0, 1077936128.0, 1088421888.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rosettasciio==0.15.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - 2>log <<'PYTHON' || { cat log >&2; exit 1; }
from pathlib import Path

import numpy as np
from rsciio import digitalsurf, tvips

nan, inf = np.nan, np.inf


def signal(data):
    axes = [
        {"size": size, "name": name, "scale": 1.0, "offset": 0.0, "units": "nm", "navigate": name == "z"}
        for size, name in zip(data.shape, "zyx"[-data.ndim :], strict=True)
    ]
    for number, axis in enumerate(axes):
        axis.update(index_in_array=number, _type="UniformDataAxis", is_binned=False)
    metadata = {"General": {"title": "a"}, "Signal": {"signal_type": ""}}
    return {"data": data, "axes": axes, "metadata": metadata, "original_metadata": {}, "attributes": {"_lazy": False}}


def check(library, dtype, numbers, seen):
    data = np.array([numbers], dtype)
    if library is tvips:
        data = np.stack([data] * 3)
    name = {digitalsurf: "a.sur", tvips: "a_000.tvips"}[library]
    Path(name).unlink(missing_ok=True)
    library.file_writer(name, signal(data))
    found = np.asarray(library.file_reader(name)[0]["data"]).reshape(-1, 4)[0].astype("f8").round(4)
    print(f"{Path(name).suffix:6} {dtype:7} {data.ravel()[:4].astype('f8').tolist()} {found.tolist()}")
    assert str(found.tolist()) == str([float(one) for one in seen])


check(digitalsurf, "float64", [1, 2, 3, 7], [1, 2, 3, 7])
check(digitalsurf, "float32", [1, 2, 3, 7], [1, 2, 3, 1])
check(digitalsurf, "float64", [1, nan, 3, 7], [1, 1, 3, 7])
check(digitalsurf, "float64", [1, inf, 3, 7], [nan] * 4)
check(digitalsurf, "float64", [5, 5, 5, 5], [-(2**31)] * 4)
check(tvips, "uint16", [1, 2, 3, 7], [1, 2, 3, 7])
check(tvips, "int16", [1, -2, 3, 7], [1, 65534, 3, 7])
check(tvips, "float32", [1, 2, 3, 7], [1065353216, 1073741824, 1077936128, 1088421888])
PYTHON
