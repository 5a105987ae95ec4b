#!/usr/bin/env bash
# kerchunk gives a NetCDF-3 file whose only record variable is int16 twice as many records.
#
# Versions: kerchunk 0.2.10, netCDF4 1.7.5.1.post1, scipy 1.17.1, numpy 2.4.6, zarr 3.1.6.
# Behaviour: in the classic format the records of a file are padded to four bytes, but not if there
# is only one record variable. kerchunk reckons the number of records from the padded size and the
# size of the file in a way that gives 200 for 100. With a second record variable it gives 100.
# scipy, whose reader kerchunk builds on, and netCDF-C read 100 in both cases.
# Expected before the run: 133 records, as if each took three bytes of the file.
# Output seen:
#   one variable:  netCDF4 100, scipy 100, kerchunk 200
#   two variables: netCDF4 100, scipy 100, kerchunk 100
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install kerchunk==0.2.10 netCDF4==1.7.5.1.post1 scipy==1.17.1 \
    numpy==2.4.6 zarr==3.1.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import json

import netCDF4
import numpy as np
from kerchunk.netCDF3 import NetCDF3ToZarr
from scipy.io import netcdf_file

counts = {}
for names in ("a", "ab"):
    path = f"{names}.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        for name in names:
            file.createVariable(name, "i2", ("time",))[:] = np.arange(100)
    with netCDF4.Dataset(path) as file:
        netcdf = len(file["a"][:])
    with netcdf_file(path, mmap=False) as file:
        scipy = len(file.variables["a"][:])
    refs = NetCDF3ToZarr(path).translate()
    refs = refs.get("refs", refs)
    counts[names] = netcdf, scipy, json.loads(refs["a/.zarray"])["shape"][0]
print("one variable:  netCDF4 %d, scipy %d, kerchunk %d" % counts["a"])
print("two variables: netCDF4 %d, scipy %d, kerchunk %d" % counts["ab"])
assert counts == {"a": (100, 100, 200), "ab": (100, 100, 100)}
PYTHON
