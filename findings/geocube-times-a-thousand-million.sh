#!/usr/bin/env bash
# geocube writes times in nanoseconds under a unit of seconds: 2000 is beyond the age of the universe.
#
# Versions: geocube 0.7.1, geopandas 1.2.0, pandas 2.3.3, xarray 2026.9.0, rasterio 1.5.2, numpy 2.5.5.
# Behaviour: geocube says "seconds from 1970-01-01T00:00:00" of a column of times that it draws as an image, and stores the
# integers of pandas: nanoseconds for the usual column, and right for one in seconds only. With "from" in place of "since",
# the unit is none of CF, so xarray decodes nothing and shows the numbers. There is no warning.
# Expected before the run: 946684800 in each row, or a unit that says what is stored.
# Output seen (the time 2000-01-01):
#   pandas s   float64 946684800      "seconds from 1970-01-01T00:00:00"
#   pandas ms  float64 9.466848e+11   "seconds from 1970-01-01T00:00:00"
#   pandas us  float64 9.466848e+14   "seconds from 1970-01-01T00:00:00"
#   pandas ns  float64 9.466848e+17   "seconds from 1970-01-01T00:00:00"
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install geocube==0.7.1 geopandas==1.2.0 pandas==2.3.3 xarray==2026.9.0 rasterio==1.5.2 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import geopandas
import numpy as np
import pandas as pd
import shapely
import xarray as xr
from geocube.api.core import make_geocube

SECONDS = 946_684_800
squares = [shapely.box(0, 0, 10, 10), shapely.box(10, 0, 20, 10)]
for unit, seen in ("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9):
    times = pd.Series(np.array(["2000-01-01", "2000-01-02"], f"M8[{unit}]"))
    assert times.dtype == f"M8[{unit}]" and times[0].timestamp() == SECONDS
    table = geopandas.GeoDataFrame({"time": times}, geometry=squares, crs="EPSG:32632")
    image = xr.decode_cf(make_geocube(table, measurements=["time"], resolution=(-10, 10)))["time"]
    found = float(image.values[0, 0])
    print(f"pandas {unit:2}  {image.dtype} {found:<14.10g} \"{image.attrs['units']}\"")
    assert image.attrs["units"] == "seconds from 1970-01-01T00:00:00"
    assert found == seen * SECONDS
PYTHON
