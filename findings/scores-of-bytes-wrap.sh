#!/usr/bin/env bash
# Two libraries that verify forecasts find smaller errors for worse ones if both are uint8.
#
# Versions: xskillscore 0.0.29, scores 2.7.0, xarray 2026.9.0, numba 0.68.1, numpy 2.5.5.
# Behaviour: both subtract in the type of the data, where 10 - 20 is 246: the larger error has the smaller root mean square
# error, and smape is above 1, its bound. The correlation is right for the same numbers. So is the CRPS of xskillscore once
# numba is installed, which it does not need; without, it is another. Neither library warns.
# Expected before the run: the scores of the same numbers as floats, or a refusal.
# Output seen:
#   xskillscore crps, no numba       float64 13.94    uint8 83.5
#   xskillscore rmse, error of 10    float64 10       uint8 10
#   xskillscore rmse, error of 250   float64 250      uint8 6
#   xskillscore smape                float64 0.4261   uint8 3.339
#   xskillscore r2                   float64 -0.511   uint8 0.9913
#   xskillscore pearson_r            float64 -0.5956  uint8 -0.5956
#   scores crps_for_ensemble         float64 13.94    uint8 98.61
#   scores mae                       float64 67.5     uint8 188
#   xskillscore crps, with numba     float64 13.94    uint8 13.94
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xskillscore==0.0.29 scores==2.7.0 xarray==2026.9.0 numpy==2.5.5
cd "$folder"
cat > crps.py <<'PYTHON'
import sys

import numpy as np
import xarray as xr
import xskillscore

observed = xr.DataArray(np.array([2, 5], "u1"), dims="time")
ensemble = xr.DataArray(np.array([[1, 2, 3], [4, 250, 6]], "u1"), dims=("time", "member"))
floats, found = (float(xskillscore.crps_ensemble(observed.astype(t), ensemble.astype(t))) for t in ("f8", "u1"))
print(f"{f'xskillscore crps, {sys.argv[1]}':32} float64 {floats:<8.4g} uint8 {found:.4g}")
assert np.allclose((floats, found), (13.94, float(sys.argv[2])), rtol=1e-3)
PYTHON
venv/bin/python -I -W ignore crps.py "no numba" 83.5
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import scores.continuous
import scores.probability
import xarray as xr
import xskillscore


def numbers(values):
    return xr.DataArray(np.array(values, "u1"), dims=("time", "member")[: np.ndim(values)])


def crps(observed, ensemble):
    return scores.probability.crps_for_ensemble(ensemble, observed, "member")


small, large = numbers([20, 20]), numbers([255, 255])
truth, forecast = numbers([10, 20, 30, 250]), numbers([20, 10, 35, 5])
observed, ensemble = numbers([2, 5]), numbers([[1, 2, 3], [4, 250, 6]])
for name, score, inputs, right, seen in (
    ("xskillscore rmse, error of 10", xskillscore.rmse, (numbers([10, 10]), small), 10, 10),
    ("xskillscore rmse, error of 250", xskillscore.rmse, (numbers([5, 5]), large), 250, 6),
    ("xskillscore smape", xskillscore.smape, (truth, forecast), 0.4261, 3.339),
    ("xskillscore r2", xskillscore.r2, (truth, forecast), -0.511, 0.9913),
    ("xskillscore pearson_r", xskillscore.pearson_r, (truth, forecast), -0.5956, -0.5956),
    ("scores crps_for_ensemble", crps, (observed, ensemble), 13.94, 98.61),
    ("scores mae", scores.continuous.mae, (truth, forecast), 67.5, 188),
):
    floats, found = float(score(*(array.astype("f8") for array in inputs))), float(score(*inputs))
    print(f"{name:32} float64 {floats:<8.4g} uint8 {found:.4g}")
    assert np.allclose((floats, found), (right, seen), rtol=1e-3)
PYTHON
venv/bin/pip --quiet install numba==0.68.1
venv/bin/python -I -W ignore crps.py "with numba" 13.94
