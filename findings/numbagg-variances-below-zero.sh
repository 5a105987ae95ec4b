#!/usr/bin/env bash
# The moving variance of numbagg is below zero after two large numbers, and stays so.
#
# Versions: numbagg 0.9.6, bottleneck 1.6.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `move_var` and `move_std` add what enters the window to sums of numbers and of squares, and subtract what
# leaves it. After a large number has left, its rounding error stays in the sums. numbagg then
# gives -1 as the variance of (3, 3), and NaN as the deviation, up to the end of the series. Bottleneck,
# which xarray takes if numbagg is not there, and pandas update the mean instead, and are right here.
# Infinity leaves numbagg and Bottleneck with NaN up to the end of the series; pandas gets over it.
# Expected before the run: the three agree to some digits.
# Output seen (of 100000000, 100000001, 3, 3, 3, 3.1 in windows of two):
#   variance   numbagg [nan, 0.0, 5000000000000000.0, -1.0, -1.0, -0.995]
#              Bottleneck, pandas [nan, 0.5, 5000000000000000.0, 0.0, 0.0, 0.005]
#   deviation  numbagg [nan, 0.0, 70700000.0, nan, nan, nan]
#   mean after infinity  numbagg nan, Bottleneck nan, pandas 4.5
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install numbagg==0.9.6 bottleneck==1.6.0 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import bottleneck
import numbagg
import numpy as np
import pandas

values = np.array([1e8, 1e8 + 1, 3, 3, 3, 3.1])
right = pandas.Series(values).rolling(2).var().to_numpy()
variance, deviation = numbagg.move_var(values, window=2), numbagg.move_std(values, window=2)


def shown(numbers):
    return [float(f"{number:.3g}") for number in numbers]


print(f"variance   numbagg {shown(variance)}\n           Bottleneck, pandas {shown(right)}")
print(f"deviation  numbagg {shown(deviation)}")
np.testing.assert_allclose(bottleneck.move_var(values, 2, ddof=1), right, rtol=1e-6)
np.testing.assert_allclose(right[3:], [0, 0, 0.005], atol=1e-9)
np.testing.assert_allclose(variance[3:], [-1, -1, -0.995])
assert np.isnan(deviation[3:]).all()
values = np.array([2, np.inf, 4, 5])
means = [
    numbagg.move_mean(values, window=2)[-1],
    bottleneck.move_mean(values, 2)[-1],
    pandas.Series(values).rolling(2).mean().iloc[-1],
]
print("mean after infinity  numbagg {}, Bottleneck {}, pandas {}".format(*means))
assert np.isnan(means[:2]).all() and means[2] == 4.5
PYTHON
