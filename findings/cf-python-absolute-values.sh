#!/usr/bin/env bash
# cf-python finds -61.5 as the mean of the absolute values of -128 and 5, and a negative sum of squares.
#
# Versions: cf-python 3.21.0, cfdm 1.13.3.0, dask 2026.8.0, numpy 2.5.5; UDUNITS 2 of the system (libudunits2-0 of Debian 12).
# Behaviour: collapses to absolute values and squares compute these in the type of the data. -128 has no absolute value in
# int8 and stays negative: the largest absolute value is then 5. Squares of int16 wrap. Mean, sum and root mean square of the
# same data are right, as they compute in 64 bits. Nothing is reported.
# Expected before the run: what NumPy computes for the same numbers as floats.
# Output seen:
#   [-128, 5] int8   sum                     right -123     cf-python -123
#   [-128, 5] int8   maximum_absolute_value  right 128      cf-python 5
#   [-128, 5] int8   mean_absolute_value     right 66.5     cf-python -61.5
#   [-128, 5] int16  mean_absolute_value     right 66.5     cf-python 66.5
#   [100, 200] int16 root_mean_square        right 158.114  cf-python 158.114
#   [100, 200] int16 sum_of_squares          right 50000    cf-python -15536
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
ldconfig -p | grep -q libudunits2 || { echo "libudunits2 is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install cf-python==3.21.0 cfdm==1.13.3.0 dask==2026.8.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import cf
import numpy as np

for dtype, values, method, seen in (
    ("int8", [-128, 5], "sum", -123),
    ("int8", [-128, 5], "maximum_absolute_value", 5),
    ("int8", [-128, 5], "mean_absolute_value", -61.5),
    ("int16", [-128, 5], "mean_absolute_value", 66.5),
    ("int16", [100, 200], "root_mean_square", 158.114),
    ("int16", [100, 200], "sum_of_squares", -15536),
):
    data = np.array(values, dtype)
    wide = data.astype("f8")
    right = {
        "sum": wide.sum(),
        "maximum_absolute_value": abs(wide).max(),
        "mean_absolute_value": abs(wide).mean(),
        "root_mean_square": np.sqrt((wide**2).mean()),
        "sum_of_squares": (wide**2).sum(),
    }[method]
    found = getattr(cf.Data(data), method)().array.item()
    print(f"{f'{values} {dtype}':16} {method:22}  right {right:<8.6g} cf-python {found:.6g}")
    np.testing.assert_allclose(found, seen, rtol=1e-5)
PYTHON
