#!/usr/bin/env bash
# GDAL writes 1969-07-20 20:17:59.500 as 20:18:00.000, if it gets it through Arrow; 20:17:39.500 is right.
#
# Versions: pyogrio 0.13.0 (GDAL 3.12.4), geopandas 1.2.0, pyarrow 26.0.1, pandas 3.1.1, shapely 2.2.0, numpy 2.5.5.
# Behaviour: `use_arrow=True` hands whole columns to GDAL, and is recommended because it is fast. Of times before 1970 with a
# fraction of a second, those in the last second of a minute are stored as the full minute that follows, in every format:
# of ten samples a second nine become equal once a minute, and 31 December 1899 moves to the next century. Other
# seconds, times since 1970, and times that go to GDAL one by one are right to the millisecond. Nothing warns.
# Expected before the run: the same times with Arrow and without.
# Output seen:
#   GPKG         without Arrow   20:17:39.500 20:17:59.500 23:59:59.999 20:17:59.500
#   GPKG         with Arrow      20:17:39.500 20:18:00.000 00:00:00.000 20:17:59.500
#   FlatGeobuf   without Arrow   20:17:39.500 20:17:59.500 23:59:59.999 20:17:59.500
#   FlatGeobuf   with Arrow      20:17:39.500 20:18:00.000 00:00:00.000 20:17:59.500
#   GeoJSON      without Arrow   20:17:39.500 20:17:59.500 23:59:59.999 20:17:59.500
#   GeoJSON      with Arrow      20:17:39.500 20:18:00.000 00:00:00.000 20:17:59.500
#   an hour of 10 samples a second: 540 of 36000 changed
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyogrio==0.13.0 geopandas==1.2.0 pyarrow==26.0.1 pandas==3.1.1 shapely==2.2.0 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import geopandas
import numpy as np
import pandas as pd
import pyogrio
import shapely


def write_and_read(times, driver, use_arrow):
    places = shapely.points(np.arange(len(times)), 0)
    frame = geopandas.GeoDataFrame({"row": range(len(times)), "time": times}, geometry=places, crs=4326)
    name = f"times-{len(times)}-{driver}-{use_arrow}"
    pyogrio.write_dataframe(frame, name, driver=driver, use_arrow=use_arrow)
    return pyogrio.read_dataframe(name).sort_values("row")["time"].to_numpy("M8[ms]")


words = "1969-07-20T20:17:39.500 1969-07-20T20:17:59.500 1899-12-31T23:59:59.999 2000-07-20T20:17:59.500".split()
times = np.array(words, "M8[ms]")
moved = times.copy()
moved[1:3] = np.array(["1969-07-20T20:18", "1900-01-01"], "M8[ms]")
for driver in ("GPKG", "FlatGeobuf", "GeoJSON"):
    for use_arrow, expected in ((False, times), (True, moved)):
        found = write_and_read(times, driver, use_arrow)
        print(f"{driver:12} {'with' if use_arrow else 'without'} Arrow".ljust(28), *(str(time)[11:] for time in found))
        assert (found == expected).all()

hour = np.datetime64("1965-01-01", "ms") + 100 * np.arange(36000)
changed = write_and_read(hour, "GPKG", True) != hour
print(f"an hour of 10 samples a second: {changed.sum()} of {len(hour)} changed")
assert (changed == (pd.DatetimeIndex(hour).second == 59) & (np.arange(36000) % 10 > 0)).all() and changed.sum() == 540
PYTHON
