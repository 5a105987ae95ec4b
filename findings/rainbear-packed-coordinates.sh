#!/usr/bin/env bash
# Rainbear, which shows Zarr to Polars, loses rows of packed coordinates and makes 1970 of most times.
#
# Versions: rainbear 3.1.1 (it needs Python 3.12), polars 2.1.0, xarray 2026.9.0, zarr 3.4.2,
# numpy 2.5.5.
# Behaviour: coordinates that are stored as integers with a scale are right in a table. A filter on them
# compares with the stored integers to choose what to read: `lat < 5` finds 1 of 5 rows, `lat == 3`
# none, and the same filter after collect() finds all. Times count from a date in the units; int64
# and float64 are right, and int32, which many files have, becomes a second around 1970, because
# the nanoseconds are computed in 32 bits. float32 is seconds off. Nothing warns.
# One would expect: a filter finds the same before and after collect(), and the times of xarray.
# Output seen:
#   plain   lat < 5: 5 rows, after collect() 5; lat == 3: 1 rows, after collect() 1
#   packed  lat < 5: 1 rows, after collect() 5; lat == 3: 0 rows, after collect() 1
#   int64   xarray 2000-01-02T00:00:00.000000 rainbear 2000-01-02T00:00:00
#   float64 xarray 2000-01-02T00:00:00.000000 rainbear 2000-01-02T00:00:00
#   int32   xarray 2000-01-02T00:00:00.000000 rainbear 1969-12-31T23:59:59.523028
#   float32 xarray 2000-01-02T00:00:00.000000 rainbear 2000-01-01T23:59:43.297101
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rainbear==3.1.1 polars==2.1.0 xarray==2026.9.0 \
    zarr==3.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import polars
import rainbear
import xarray

new = {"zarr_format": 3, "consolidated": False}
latitudes = np.arange(10.0)
rows = xarray.Dataset({"v": ("lat", np.arange(10.0))}, {"lat": latitudes})
packed = {"dtype": "int16", "scale_factor": 0.01}
seen = {"plain": ({}, (5, 1)), "packed": (packed, (1, 0))}
for name, (encoding, expected) in seen.items():
    rows.to_zarr(name, encoding={"lat": encoding}, **new)
    table = rainbear.scan_zarr(name)
    assert table.collect()["lat"].to_list() == latitudes.tolist()
    filters = polars.col("lat") < 5, polars.col("lat") == 3
    before = tuple(table.filter(one).collect().height for one in filters)
    after = tuple(table.collect().filter(one).height for one in filters)
    words = [f"{b} rows, after collect() {a}" for b, a in zip(before, after, strict=True)]
    print(f"{name:7} lat < 5: {words[0]}; lat == 3: {words[1]}")
    assert before == expected and after == (5, 1)

years = {"int64": 2000, "float64": 2000, "int32": 1969, "float32": 2000}
for dtype, year in years.items():
    days = np.array([1, 9000], dtype)
    times = {"time": ("time", days, {"units": "days since 2000-01-01"})}
    xarray.Dataset({"v": ("time", [0.0, 1.0])}, times).to_zarr(dtype, **new)
    right = xarray.open_zarr(dtype, consolidated=False).time.values.astype("M8[us]")
    found = rainbear.scan_zarr(dtype).collect()["time"].to_list()
    print(f"{dtype:7} xarray {right[0]} rainbear {found[0].isoformat()}")
    assert str(right[0]) == "2000-01-02T00:00:00.000000"
    assert (found == right.tolist()) == (dtype in ("int64", "float64"))
    assert found[0].year == year
PYTHON
