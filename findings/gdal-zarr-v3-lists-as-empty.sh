#!/usr/bin/env bash
# A Zarr v3 group that GDAL writes is an empty group for zarr-python and xarray, without an error.
#
# Versions: rasterio 1.4.4 (GDAL 3.10.3), zarr 3.1.6, xarray 2026.9.0, numpy 2.4.6.
# Behaviour: with FORMAT=ZARR_V3, a nodata value and no compression GDAL leaves the key "codecs" out, which the
# specification requires. zarr-python drops each such array while it lists the group: the KeyError
# stays in a task that nobody asks ("Task exception was never retrieved" on stderr), so the list is
# empty and `xarray.open_zarr` gives a dataset of no variables. For other defects, such as an
# unknown data type, zarr-python raises an error. GDAL reads its own array.
# Expected before the run: zarr-python reads the array, or raises an error that names it.
# Output seen:
#   GDAL reads 6 elements
#   zarr-python lists []
#   xarray has the variables []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterio==1.4.4 zarr==3.1.6 numcodecs==0.16.5 \
    numpy==2.4.6 xarray==2026.9.0
cd "$folder"
venv/bin/python -I -W ignore - 2>/dev/null <<'PYTHON'
import os

import numpy as np
import rasterio
import xarray
import zarr

path = f"{os.getcwd()}/raster"
values = np.arange(6, dtype="u2").reshape(1, 2, 3)
shape = {"height": 2, "width": 3, "count": 1, "nodata": 7}
with rasterio.open(path, "w", driver="Zarr", dtype="uint16", FORMAT="ZARR_V3", **shape) as file:
    file.write(values)
with rasterio.open(path) as file:
    assert (file.read() == values).all()
print("GDAL reads 6 elements")
arrays = list(zarr.open_group(path, mode="r").array_keys())
print("zarr-python lists", arrays)
variables = list(xarray.open_zarr(path, consolidated=False).variables)
print("xarray has the variables", variables)
assert os.path.exists(f"{path}/raster/zarr.json")
assert arrays == variables == []
PYTHON
