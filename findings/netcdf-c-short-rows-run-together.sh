#!/usr/bin/env bash
# netCDF4, and xarray by way of it, read the rain of station 1 as that of station 0, if another variable has more times.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1, HDF5 2.2.0), h5py 3.16.0, h5netcdf 1.8.2, xarray 2026.9.0, numpy 2.5.5.
# Behaviour: in NetCDF-4 each variable grows along an unlimited dimension by itself, and the shorter ones are to be filled up
# with the fill value when they are read. If the unlimited dimension is not the first one, netCDF-C puts all elements that
# are stored one after the other, and all fill values behind them: the rows of a short variable run together. The file is
# right, as h5py and h5netcdf show. A row alone, and a part that lies within what is stored, are read right, so that a
# value depends on how much else is asked for. Nothing warns. A report of 2023 takes it for a fault of the writing
# (https://github.com/Unidata/netcdf-c/issues/2694).
# Expected before the run: each row followed by its own fill values, as h5netcdf has it.
# Output seen:
#   h5py                   [[0, 1], [10, 11], [20, 21]]
#   netCDF4 [:]            [[0, 1, 10, 11], [20, 21, -1, -1], [-1, -1, -1, -1]]
#   netCDF4 row by row     [[0, 1, -1, -1], [10, 11, -1, -1], [20, 21, -1, -1]]
#   netCDF4 [:, :2]        [[0, 1], [10, 11], [20, 21]]
#   netCDF4 [:, 1:3]       [[1, 11], [21, -1], [-1, -1]]
#   xarray, netcdf4        [[0, 1, 10, 11], [20, 21, -1, -1], [-1, -1, -1, -1]]
#   xarray, h5netcdf       [[0, 1, -1, -1], [10, 11, -1, -1], [20, 21, -1, -1]]
#   netCDF4, time first    [[0, 10, 20], [1, 11, 21], [-1, -1, -1], [-1, -1, -1]]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 h5py==3.16.0 h5netcdf==1.8.2 xarray==2026.9.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import h5py
import netCDF4
import numpy as np
import xarray

stored = np.array([[0, 1], [10, 11], [20, 21]])
with netCDF4.Dataset("stations.nc", "w") as file:
    file.createDimension("station", 3)
    file.createDimension("time", None)
    file.createVariable("time", "i4", ("time",))[:] = np.arange(4)
    file.createVariable("rain", "i4", ("station", "time"), fill_value=-1)[:, :2] = stored
    file.createVariable("turned", "i4", ("time", "station"), fill_value=-1)[:2] = stored.T


def show(name, array, expected):
    print(f"{name:22} {np.asarray(array).tolist()}")
    assert np.asarray(array).tolist() == expected


full = [[*row, -1, -1] for row in stored.tolist()]
run_together = [[0, 1, 10, 11], [20, 21, -1, -1], [-1, -1, -1, -1]]
with h5py.File("stations.nc") as file:
    show("h5py", file["rain"], stored.tolist())
with netCDF4.Dataset("stations.nc") as file:
    file.set_auto_mask(False)
    rain = file["rain"]
    assert rain.shape == (3, 4)
    show("netCDF4 [:]", rain[:], run_together)
    show("netCDF4 row by row", [rain[row] for row in range(3)], full)
    show("netCDF4 [:, :2]", rain[:, :2], stored.tolist())
    show("netCDF4 [:, 1:3]", rain[:, 1:3], [[1, 11], [21, -1], [-1, -1]])
for engine, expected in (("netcdf4", run_together), ("h5netcdf", full)):
    with xarray.open_dataset("stations.nc", engine=engine, mask_and_scale=False) as dataset:
        show(f"xarray, {engine}", dataset["rain"], expected)
with netCDF4.Dataset("stations.nc") as file:
    file.set_auto_mask(False)
    show("netCDF4, time first", file["turned"][:], np.transpose(full).tolist())
PYTHON
