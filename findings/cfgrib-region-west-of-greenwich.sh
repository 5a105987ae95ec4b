#!/usr/bin/env bash
# cfgrib moves all values of a GRIB 2 region that ends at the Greenwich meridian, or one point east of it.
#
# Versions: eccodes 2.50.0 (ecCodes), eccodeslib 2.50.0.33, cfgrib 0.9.15.1, xarray 2026.9.0, numpy 2.5.5.
# Behaviour: rows run from west to east, the common order. If a region from -10 to 0 is read, ecCodes lists its longitudes
# as 0, 350, 351 to 359, in ascending order, and cfgrib puts them beside the values as they come: that of -10 stands at 0,
# that of 0 at 359. With two points east of the meridian, the list begins with -10, and all is right; so it is if the region
# ends before the meridian, and in GRIB 1, which has negative longitudes. The keys "longitudes" and "values" of
# ecCodes belong together in each case. No error and no warning.
# Expected before the run: each value at its longitude, as in the regions that are one point longer or shorter.
# Output seen (values that stand at another longitude, of all; each value is its longitude):
#   -10 to -1  GRIB 1: 0 of 20  GRIB 2: 0 of 20   longitudes 350 351 ... 359
#   -10 to 0   GRIB 1: 0 of 22  GRIB 2: 22 of 22  longitudes 0 350 ... 359
#   -10 to 1   GRIB 1: 0 of 24  GRIB 2: 24 of 24  longitudes 1 350 ... 360
#   -10 to 2   GRIB 1: 0 of 26  GRIB 2: 0 of 26   longitudes -10 -9 ... 2
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install eccodes==2.50.0 eccodeslib==2.50.0.33 cfgrib==0.9.15.1 xarray==2026.9.0 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import eccodes
import numpy as np
import xarray


def apart(values, longitudes):
    return int((np.abs((values - longitudes + 180) % 360 - 180) > 0.01).sum())


def read(edition, longitudes):
    message = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
    keys = {"Ni": len(longitudes), "Nj": 2}
    keys |= {f"latitudeOf{end}GridPointInDegrees": at for end, at in (("First", 50.0), ("Last", 40.0))}
    keys |= {f"longitudeOf{end}GridPointInDegrees": float(longitudes[at]) for end, at in (("First", 0), ("Last", -1))}
    keys |= {"iDirectionIncrementInDegrees": 1.0, "jDirectionIncrementInDegrees": 10.0}
    for key, value in keys.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, np.tile(longitudes, 2).astype("f8"))
    values = eccodes.codes_get_values(message)
    assert apart(values, eccodes.codes_get_array(message, "longitudes")) == 0
    name = f"{edition}-{len(longitudes)}.grib"
    with open(name, "wb") as file:
        eccodes.codes_write(message, file)
    dataset = xarray.open_dataset(name, engine="cfgrib", backend_kwargs={"indexpath": ""})
    (variable,) = dataset.data_vars.values()
    return apart(variable.values, variable.longitude.values), variable.longitude.values


for last, wrong in ((-1, 0), (0, 22), (1, 24), (2, 0)):
    longitudes = np.arange(-10, last + 1)
    of = 2 * len(longitudes)
    (first, _), (second, shown) = read(1, longitudes), read(2, longitudes)
    parts = f"-10 to {last}", f"GRIB 1: {first} of {of}", f"GRIB 2: {second} of {of}"
    print(f"{parts[0]:9}  {parts[1]}  {parts[2]:16}  longitudes {shown[0]:.0f} {shown[1]:.0f} ... {shown[-1]:.0f}")
    assert (first, second) == (0, wrong)
PYTHON
