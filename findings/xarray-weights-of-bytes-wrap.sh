#!/usr/bin/env bash
# xarray finds 1019.3 as the mean of 0 to 299, each weighted with 1, if the weights are bytes.
#
# Versions: xarray 2026.9.0, dask 2026.8.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `weighted` adds the weights in their own type: 300 weights of 1 in uint8, such as a mask of land that was read
# from a file, make 44, and the sum of the data is divided by that. In chunks of 100, dask adds them to 300. If the data are
# bytes and the weights bytes or a boolean mask, the weighted sum wraps, too, and with it mean and deviation. `integrate` adds
# neighbours in the type of the data: a steady 100 in int8 has a negative integral. The sum and mean without weights
# are right, as xarray widens integers there. Nothing warns.
# Expected before the run: what the same numbers give as float64.
# Output seen:
#   0 to 299 float64, weight 1 uint8             sum of weights   right 300     xarray 44
#   0 to 299 float64, weight 1 uint8             mean             right 149.5   xarray 1019.32
#   0 to 299 float64, weight 1 uint8, in chunks  mean             right 149.5   xarray 149.5
#   0 to 299 float64, weight 1 bool              mean             right 149.5   xarray 149.5
#   [100, 120, 140] uint8, weight 1 bool         mean             right 120     xarray 34.6667
#   [100, 120, 140] uint8, weight 1 bool         deviation        right 16.3299 xarray 86.8818
#   [100, 120, 140] uint8                        mean             right 120     xarray 120
#   [100, 100, 100] int8                         integral         right 200     xarray -56
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray==2026.9.0 dask==2026.8.0 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import warnings

import numpy as np
import xarray

warnings.simplefilter("error")
methods = {
    "sum of weights": lambda data, weights: data.weighted(weights).sum_of_weights(),
    "mean": lambda data, weights: data.mean() if weights is None else data.weighted(weights).mean(),
    "deviation": lambda data, weights: data.weighted(weights).std(),
    "integral": lambda data, weights: data.integrate("x"),
}


def check(data, weights, method, seen, chunks=None):
    data = xarray.DataArray(data, dims="x", coords={"x": np.arange(len(data))})
    name = f"0 to 299 {data.dtype}" if len(data) == 300 else f"{data.values.tolist()} {data.dtype}"
    wide = None
    if weights is not None:
        name += f", weight 1 {weights}" + ", in chunks" * bool(chunks)
        weights = xarray.DataArray(np.ones(len(data), weights), dims="x")
        wide = weights.astype("f8")
        weights = weights.chunk(chunks) if chunks else weights
    right = methods[method](data.astype("f8"), wide).item()
    found = methods[method](data, weights).compute().item()
    print(f"{name:44} {method:16} right {right:<7.6g} xarray {found:.6g}")
    np.testing.assert_allclose(found, right if seen is None else seen, rtol=1e-5)


check(np.arange(300.0), "uint8", "sum of weights", 44)
check(np.arange(300.0), "uint8", "mean", 1019.318)
check(np.arange(300.0), "uint8", "mean", None, {"x": 100})
check(np.arange(300.0), "bool", "mean", None)
check(np.array([100, 120, 140], "u1"), "bool", "mean", 34.66667)
check(np.array([100, 120, 140], "u1"), "bool", "deviation", 86.8818)
check(np.array([100, 120, 140], "u1"), None, "mean", None)
check(np.array([100, 100, 100], "i1"), None, "integral", -56)
PYTHON
