#!/usr/bin/env bash
# netCDF-C shows the missing values of a Zarr v2 store of xarray as numbers: NaN becomes -489.5.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1), xarray 2026.9.0, zarr 3.1.6, numcodecs 0.16.5,
# rasterio 1.4.4 (GDAL 3.10.3), numpy 2.4.6.
# Behaviour: xarray keeps `_FillValue`, the mark of a missing value, in the key "fill_value" of Zarr v2 only,
# and makes it an attribute again when it reads. GDAL does so too: it is the nodata value. netCDF-C
# uses "fill_value" for chunks that were never written, but lists no attribute `_FillValue`. So
# netCDF4 masks nothing, and scales the mark as if it were data.
# Expected before the run: the three agree on which values are missing.
# Output seen:
#   xarray   nan, 0.5, 1.0, 1.5
#   GDAL     nodata -999
#   netCDF4  -489.5, 0.5, 1.0, 1.5  attributes add_offset, scale_factor
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 xarray==2026.9.0 zarr==3.1.6 \
    numcodecs==0.16.5 rasterio==1.4.4 numpy==2.4.6
cd "$folder"
cat > write.py <<'PYTHON'
import os

import numpy as np
import rasterio
import xarray

values = np.array([[np.nan, 0.5, 1, 1.5]])
packing = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -999}
dataset = xarray.Dataset({"rain": (("y", "x"), values)})
dataset.to_zarr("rain.zarr", zarr_format=2, encoding={"rain": packing | {"compressors": None}})
found = xarray.open_zarr("rain.zarr").rain.values
np.testing.assert_array_equal(found, values)
print("xarray  ", ", ".join(map(str, found.ravel())))
with rasterio.open(f'ZARR:"{os.getcwd()}/rain.zarr":/rain') as file:
    print(f"GDAL     nodata {file.nodata:g}")
    assert file.nodata == -999
PYTHON
cat > read.py <<'PYTHON'
import os

import netCDF4
import numpy as np

with netCDF4.Dataset(f"file://{os.getcwd()}/rain.zarr#mode=zarr,file") as file:
    variable = file["rain"]
    found, names = variable[0], variable.ncattrs()
    shown = ", ".join(map(str, np.ma.getdata(found)))
    print(f"netCDF4  {shown}  attributes {', '.join(names)}")
    assert not np.ma.is_masked(found) and found.tolist() == [-489.5, 0.5, 1, 1.5]
    assert names == ["add_offset", "scale_factor"]
PYTHON
venv/bin/python -I -W ignore write.py
venv/bin/python -I -W ignore read.py
