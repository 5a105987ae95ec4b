#!/usr/bin/env bash
# One int8 variable that netCDF-C writes keeps xarray from opening the whole Zarr store.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1), zarr 3.1.6, numcodecs 0.16.5, numpy 2.4.6,
# xarray 2026.9.0.
# Behaviour: netCDF-C gives int8 the data type "<i1"; NumPy's own form, and the one zarr-python
# writes, is "|i1". zarr-python refuses "<i1", though NumPy itself reads it as int8, and
# `xarray.open_zarr` fails for all variables of the store.
# Expected before the run: zarr-python reads whatever numpy.dtype() takes for int8.
# Output seen:
#   dtype <i1, which NumPy reads as int8
#   zarr-python refuses: No Zarr data type found that matches {'name': '<i1', 'object_codec_id': None}
#   xarray refuses: No Zarr data type found that matches {'name': '<i1', 'object_codec_id': None}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 zarr==3.1.6 numcodecs==0.16.5 \
    numpy==2.4.6 xarray==2026.9.0
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import json
import os

import netCDF4
import numpy as np
import xarray
import zarr

with netCDF4.Dataset(f"file://{os.getcwd()}/store#mode=zarr,file", "w") as file:
    file.createDimension("x", 3)
    file.createVariable("flag", "i1", ("x",))[:] = [1, 0, 1]
    file.createVariable("t", "f4", ("x",))[:] = [1, 2, 3]
dtype = json.load(open("store/flag/.zarray"))["dtype"]
print(f"dtype {dtype}, which NumPy reads as {np.dtype(dtype)}")
assert dtype == "<i1" and np.dtype(dtype) == np.int8
group = zarr.open_group("store", mode="r")
assert group["t"][:].tolist() == [1, 2, 3]
for name, work in (
    ("zarr-python", lambda: group["flag"]),
    ("xarray", lambda: xarray.open_zarr("store", consolidated=False)),
):
    try:
        work()
    except ValueError as error:
        assert "No Zarr data type found" in str(error)
        print(f"{name} refuses: {error}")
    else:
        raise SystemExit(f"{name} opens the store")
PYTHON
