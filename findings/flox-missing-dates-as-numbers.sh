#!/usr/bin/env bash
# With flox installed, xarray's mean of a group of dates near 2000 that lacks one is in 1838.
#
# Versions: xarray 2026.9.0, flox 0.11.2, numpy 2.4.6, pandas 2.3.3.
# Behaviour: xarray hands grouped reductions to flox when it is installed. flox takes NaT, the missing
# date, for its bit pattern -2**63: it counts it, and its mean lies between that and the
# dates. Durations are the same. Without flox xarray leaves NaT out, as pandas does.
# `resample` does the same as `groupby`. Nothing is reported.
# Expected before the run: the same values with and without flox.
# Output seen:
#   group: 2000-01-02, NaT
#   pandas   mean 2000-01-02  count 1
#   no flox  mean 2000-01-02  count 1
#   flox     mean 1838-11-12  count 2
#   group: 1 day, NaT
#   no flox  mean 1 days
#   flox     mean -53376 days
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray==2026.9.0 flox==0.11.2 numpy==2.4.6 pandas==2.3.3
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import numpy as np
import pandas as pd
import xarray

dates = np.array(["2000-01-02", "NaT", "2000-01-04", "2000-01-06"], "M8[ns]")
names = ["a", "a", "b", "b"]
array = xarray.DataArray(dates, dims="t", coords={"name": ("t", names)})
days = np.arange("2000-01-01", "2000-01-05", dtype="M8[D]").astype("M8[ns]")
print("group: 2000-01-02, NaT")
groups = pd.Series(dates).groupby(names)
mean, count = groups.mean().iloc[0], groups.count().iloc[0]
print(f"pandas   mean {mean:%Y-%m-%d}  count {count}")
assert (mean, count) == (pd.Timestamp("2000-01-02"), 1)
for name, used, day, number in ("no flox", False, "2000-01-02", 1), ("flox", True, "1838-11-12", 2):
    with xarray.set_options(use_flox=used):
        means = array.groupby("name").mean().values.astype("M8[D]")
        counts = array.groupby("name").count().values
        again = array.assign_coords(t=days).resample(t="2D").mean().values.astype("M8[D]")
    print(f"{name:8} mean {means[0]}  count {counts[0]}")
    assert means[0] == again[0] == np.datetime64(day) and means[1] == np.datetime64("2000-01-05")
    assert counts.tolist() == [number, 2]
print("group: 1 day, NaT")
spans = array - np.datetime64("2000-01-01")
for name, used, number in ("no flox", False, 1), ("flox", True, -53376):
    with xarray.set_options(use_flox=used):
        mean = spans.groupby("name").mean().values.astype("m8[ns]").astype("m8[D]")[0]
    print(f"{name:8} mean {mean}")
    assert mean == np.timedelta64(number, "D")
PYTHON
