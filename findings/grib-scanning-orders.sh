#!/usr/bin/env bash
# The order in which a GRIB file lists its points moves the values to other places.
#
# Versions: eccodes 2.50.0 (ecCodes), cfgrib 0.9.15.1, xarray 2026.9.0, rasterio 1.4.4 (GDAL 3.10.3),
# numpy 2.4.6.
# Behaviour: the scanning mode of GRIB says where a row begins, whether columns come one after the
# other instead of rows, and whether adjacent rows run in opposite directions. cfgrib always makes rows
# of ascending longitudes: with columns in sequence, or rows from east to west, values and coordinates no
# longer belong together, and no error says so. GDAL does the same to rows from east to west. ecCodes
# pairs the values with its own keys "latitudes" and "longitudes" right in these, and not
# where rows alternate, which GDAL and cfgrib do right. North to south or back is right everywhere.
# One would expect: all put each value where the file says, or refuse the order.
# Output seen (values of 20 that stand at another place):
#                           cfgrib  GDAL  ecCodes
#   rows, west to east       0       0     0
#   rows, south to north     0       0     0
#   rows, east to west      16      20     0
#   columns                 18       0     0
#   rows alternate           0       0     8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install eccodes==2.50.0 cfgrib==0.9.15.1 xarray==2026.9.0 \
    rasterio==1.4.4 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import eccodes
import numpy as np
import rasterio
import xarray

NORTH, WEST, STEP, ROWS, COLUMNS = 30.0, 0.0, 10.0, 4, 5
FIRST, LAST = "OfFirstGridPointInDegrees", "OfLastGridPointInDegrees"
LATITUDES = NORTH - STEP * np.arange(ROWS)
LONGITUDES = WEST + STEP * np.arange(COLUMNS)
VALUES = np.arange(20.0).reshape(ROWS, COLUMNS)  # by rows from the north, from the west


def write(stored, flag=None, **keys):
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    grid = {
        "parameterCategory": 2, "parameterNumber": 2,  # a wind, which has one unit in all readers
        "Ni": COLUMNS, "Nj": ROWS, "iDirectionIncrementInDegrees": STEP, "jDirectionIncrementInDegrees": STEP,
        f"latitude{FIRST}": NORTH, f"latitude{LAST}": LATITUDES[-1],
        f"longitude{FIRST}": WEST, f"longitude{LAST}": LONGITUDES[-1],
    }
    for key, value in {**grid, **keys, **({flag: 1} if flag else {})}.items():
        eccodes.codes_set(handle, key, value)
    eccodes.codes_set_values(handle, stored.ravel())
    with open("a.grib2", "wb") as file:
        eccodes.codes_write(handle, file)
    return handle


def misplaced(latitudes, longitudes, values):
    row, column = np.rint((NORTH - latitudes) / STEP), np.rint((longitudes - WEST) / STEP)
    outside = np.isin(column, range(COLUMNS), invert=True) | np.isin(row, range(ROWS), invert=True)
    there = VALUES[np.where(outside, 0, row).astype(int), np.where(outside, 0, column).astype(int)]
    return int((outside | (there != values)).sum())


def show(name, expected, *written, **keys):
    handle = write(*written, **keys)
    with xarray.open_dataset("a.grib2", engine="cfgrib", indexpath="") as dataset:
        (variable,) = dataset.data_vars.values()
        found = [misplaced(*np.broadcast_arrays(*xarray.broadcast(variable.latitude, variable.longitude)), variable)]
    with rasterio.open("a.grib2") as file:
        across = file.transform.c + file.transform.a * (np.arange(file.width) + 0.5)
        down = file.transform.f + file.transform.e * (np.arange(file.height) + 0.5)
        found.append(misplaced(*np.meshgrid(down, across, indexing="ij"), file.read(1)))
    found.append(misplaced(*(eccodes.codes_get_array(handle, key) for key in ("latitudes", "longitudes", "values"))))
    eccodes.codes_release(handle)
    print(f"{name:<22}" + "".join(f"{number:>6}" for number in found))
    assert found == expected, found


print(" " * 22 + "cfgrib  GDAL ecCodes")
alternating = VALUES.copy()
alternating[1::2] = VALUES[1::2, ::-1]
show("rows, west to east", [0, 0, 0], VALUES)
show("rows, south to north", [0, 0, 0], VALUES[::-1], "jScansPositively",
     **{f"latitude{FIRST}": LATITUDES[-1], f"latitude{LAST}": NORTH})
show("rows, east to west", [16, 20, 0], VALUES[:, ::-1], "iScansNegatively",
     **{f"longitude{FIRST}": LONGITUDES[-1], f"longitude{LAST}": WEST})
show("columns", [18, 0, 0], VALUES.T, "jPointsAreConsecutive")
show("rows alternate", [0, 0, 8], alternating, "alternativeRowScanning")
PYTHON
