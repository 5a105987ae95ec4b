#!/usr/bin/env bash
# dascore integrates a steady 20000 for 4 s to 14516 instead of 79920, in the int16 that recorders write.
#
# Versions: dascore 0.1.24, numpy 2.5.5, pandas 3.1.1, scipy 1.18.1, xarray 2026.9.0.
# Behaviour: `Patch.integrate` adds pairs of samples in the type of the data, where 20000 + 20000 wraps. The running integral
# (definite=False) has that type too and cuts each value to an integer, also for int32; the definite one is float64, but its
# pairs wrap as well. `taper` and `gaussian_filter` cut toward zero, too.
# Other functions, such as `differentiate`, `detrend` and `decimate`, return floats. Nothing is reported.
# Expected before the run: the values of float64.
# Output seen (1000 samples, one each 4 ms; a wave of three counts):
#   float64  integral of 20000: 79920, definite 79920.0; of 200 after 1, 2, 999 steps: [0.8, 1.6, 799.2]
#   float64  wave of 3 counts: integral 0.286, gaussian_filter 2.297, taper 0.076
#   int16    integral of 20000: 14516, definite -51020.9; of 200 after 1, 2, 999 steps: [0, 1, 799]
#   int16    wave of 3 counts: integral 0.0, gaussian_filter 2.0, taper 0.0
#   int32    integral of 20000: 79920, definite 79920.0; of 200 after 1, 2, 999 steps: [0, 1, 799]
#   int32    wave of 3 counts: integral 0.0, gaussian_filter 2.0, taper 0.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install dascore==0.1.24 numpy==2.5.5 pandas==3.1.1 scipy==1.18.1 xarray==2026.9.0
cd "$folder"
venv/bin/python -I -W error::RuntimeWarning - <<'PYTHON'
import dascore
import numpy as np

times = np.datetime64("2026-01-01") + 4 * np.arange(1000) * np.timedelta64(1, "ms")
where = {"time": times, "distance": np.array([0.0, 1.0])}


def patch(values):
    return dascore.Patch(data=np.repeat(values[:, None], 2, 1), coords=where, dims=("time", "distance"))


steady = {}
wave = {}
for dtype in ("float64", "int16", "int32"):
    large = patch(np.full(1000, 20000, dtype))
    running = large.integrate("time", definite=False).data[999, 0]
    definite = round(float(large.integrate("time", definite=True).data.ravel()[0]), 1)
    small = patch(np.full(1000, 200, dtype)).integrate("time", definite=False).data[[1, 2, 999], 0]
    steady[dtype] = [round(running.item(), 1), definite, small.round(1).tolist()]
    print(f"{dtype:8} integral of 20000: {running:.6g}, definite {definite}; of 200 after 1, 2, 999 steps: {steady[dtype][2]}")

    counts = patch((3 * np.sin(np.arange(1000) / 10) + 0.5).round().astype(dtype))
    integral = counts.integrate("time", definite=False).data[30, 0].item()
    smooth = counts.gaussian_filter(time=3, samples=True).data[25, 0].item()
    taper = counts.taper(time=0.2).data[25, 0].item()
    wave[dtype] = [round(float(value), 3) for value in (integral, smooth, taper)]
    print(f"{dtype:8} wave of 3 counts: integral {wave[dtype][0]}, gaussian_filter {wave[dtype][1]}, taper {wave[dtype][2]}")

cut = [0, 1, 799]
assert steady == {
    "float64": [79920, 79920, [0.8, 1.6, 799.2]],
    "int16": [14516, -51020.9, cut],
    "int32": [79920, 79920, cut],
}
assert wave == {"float64": [0.286, 2.297, 0.076], "int16": [0, 2, 0], "int32": [0, 2, 0]}
PYTHON
