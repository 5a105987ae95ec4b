#!/usr/bin/env bash
# MetPy cools a map of 290 K by 3.6 K when it smooths it 20 times, if its temperatures are integers.
#
# Versions: metpy 1.7.1, pint 0.26.2, numpy 2.5.5.
# Behaviour: all functions `smooth_...` return the type of the input. Each pass of each of them cuts the mean to an integer,
# toward zero, so that all temperatures fall, pass by pass, and values below zero rise. 8-bit
# integers, as packed reports have them, wrap in the squares of the formula for the heat index, although other functions,
# as wind chill and wind speed, compute in floats: 100 °F at 50 % feels like 91 °F instead of 118. Nothing warns.
# Expected before the run: the results for the same numbers as floats.
# Output seen:
#   float64 means after 0, 1, 5, 20 passes  289.9 289.89 289.85 289.79
#   int16   means after 0, 1, 5, 20 passes  289.9 289.63 288.06 286.26
#   float64 heat index  [118.3, 99.7] wind chill [1.3, -14.9]
#   int16   heat index  [118.3, 99.7] wind chill [1.3, -14.9]
#   uint8   heat index  [94.0, 78.8] wind chill [1.3, -14.9]
#   int8    heat index  [91.3, 78.8] wind chill [1.3, -14.9]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install metpy==1.7.1 pint==0.26.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W error::RuntimeWarning - <<'PYTHON'
import metpy.calc
import numpy as np
from metpy.units import units

rows, columns = np.mgrid[:40, :40]
temperatures = 280 + (13 * rows + 7 * columns + rows * columns) % 20
means = {"float64": [], "int16": []}
for dtype, found in means.items():
    for passes in (1, 5, 20):
        smooth = metpy.calc.smooth_n_point(temperatures.astype(dtype) * units.kelvin, 9, passes)
        found.append(round(float(smooth.magnitude.mean()), 2))
    first = round(float(temperatures.mean()), 2)
    print(f"{dtype:7} means after 0, 1, 5, 20 passes  {first}", *found)
assert means == {"float64": [289.89, 289.85, 289.79], "int16": [289.63, 288.06, 286.26]}

indices = {}
for dtype in ("float64", "int16", "uint8", "int8"):
    warm = np.array([100, 90], dtype) * units.degF
    humid = np.array([50, 60], dtype) * units.percent
    cold = np.array([20, 10], dtype) * units.degF
    windy = np.array([30, 40], dtype) * units.mph
    indices[dtype] = metpy.calc.heat_index(warm, humid).to("degF").magnitude.round(1).tolist()
    chill = metpy.calc.windchill(cold, windy).magnitude.round(1).tolist()
    print(f"{dtype:7} heat index  {indices[dtype]} wind chill {chill}")
    assert chill == [1.3, -14.9]
assert indices["int16"] == indices["float64"] == [118.3, 99.7]
assert indices["uint8"] == [94.0, 78.8] and indices["int8"] == [91.3, 78.8]
PYTHON
