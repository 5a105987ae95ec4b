#!/usr/bin/env bash
# PyVista swaps the bytes of a big-endian array in place: also those of a file that is mapped for writing.
#
# Versions: pyvista 0.49.1, vtk 9.7.2, numpy 2.4.6.
# Behaviour: to give a mesh an array of '>i2' swaps the bytes of the caller's own array, and leaves its type as it was. The
# mesh shows the right numbers, the array others. If the array is a memory map of mode "r+", such as heights of SRTM, the
# file changes. Points of '>f4' and '>f8' are not swapped, but read as if they were little-endian. Nothing is reported.
# Expected before the run: the mesh has a copy in the order of the machine, and the array and its file stay as they are.
# Output seen:
#   the mesh 200 201 202, the array -14336 -14080 -13824, the file -14336 -14080 -13824
#   mode "r": ValueError
#   points of >f4 from 0.0 to 7.75772842834862e-41 in place of 0.0 to 27.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyvista==0.49.1 vtk==9.7.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import numpy as np
import pyvista

heights = np.arange(200, 236, dtype=">i2")
swapped = [-14336, -14080, -13824]
heights.tofile("heights.hgt")
mapped = np.memmap("heights.hgt", ">i2", "r+")
grid = pyvista.ImageData(dimensions=(6, 6, 1))
grid["heights"] = mapped
mapped.flush()
shown = np.asarray(grid["heights"])[:3].tolist()
stored = np.fromfile("heights.hgt", ">i2")[:3].tolist()
print("the mesh", *shown, end="")
print(", the array", *mapped[:3], end="")
print(", the file", *stored)
assert shown == [200, 201, 202]
assert mapped.dtype == ">i2"
assert mapped[:3].tolist() == stored == swapped

try:
    grid["again"] = np.memmap("heights.hgt", ">i2", "r")
except ValueError:
    print('mode "r": ValueError')
else:
    raise AssertionError("an array that cannot be written to was taken")

places = np.arange(30, dtype=">f4").reshape(10, 3)
misread = places.view("<f4")[:, 0]
bounds = pyvista.PolyData(places).bounds
print("points of >f4 from", bounds[0], "to", bounds[1], "in place of 0.0 to 27.0")
assert tuple(bounds[:2]) == (misread.min(), misread.max()) and bounds[1] < 1e-30
PYTHON
