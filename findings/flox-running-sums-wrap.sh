#!/usr/bin/env bash
# With flox installed, xarray's running sum of six times 100 goes 100, 200, 300, 144 in chunks.
#
# Versions: xarray 2026.9.0, flox 0.11.2, dask 2026.8.0, numpy 2.4.6, pandas 2.3.3.
# Behaviour: xarray hands `groupby(...).cumsum()` to flox when it is installed. The sums of uint8 have the
# type uint64, yet flox keeps the total of the chunks before in uint8, where it wraps, and
# adds that to the next chunk. With one chunk, or without flox, the sums are right.
# `resample(...).cumsum()` does the same. Nothing is reported.
# Expected before the run: the same values with and without flox, whatever the chunks.
# Output seen:
#   chunks of 6, no flox  100, 200, 300, 400, 500, 600
#   chunks of 6, flox     100, 200, 300, 400, 500, 600
#   chunks of 3, no flox  100, 200, 300, 400, 500, 600
#   chunks of 3, flox     100, 200, 300, 144, 244, 344
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray==2026.9.0 flox==0.11.2 "dask[array]==2026.8.0" \
    numpy==2.4.6 pandas==2.3.3
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import numpy as np
import xarray

array = xarray.DataArray(np.full(6, 100, "u1"), dims="t")
times = np.arange("2000-01-01", "2000-01-07", dtype="M8[D]").astype("M8[ns]")
right = [100, 200, 300, 400, 500, 600]
for chunks, used, expected in (
    (6, False, right),
    (6, True, right),
    (3, False, right),
    (3, True, [100, 200, 300, 144, 244, 344]),
):
    lazy = array.chunk(t=chunks).assign_coords(name=("t", ["a"] * 6), t=times)
    with xarray.set_options(use_flox=used):
        sums = lazy.groupby("name").cumsum().values
        again = lazy.resample(t="6D").cumsum().values
    print(f"chunks of {chunks}, {'flox' if used else 'no flox':7}  {', '.join(map(str, sums))}")
    assert sums.dtype == "u8" and sums.tolist() == again.tolist() == expected
PYTHON
