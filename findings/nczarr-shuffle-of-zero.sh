#!/usr/bin/env bash
# netCDF-C writes compressed Zarr that other readers misread without an error.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1), zarr 3.1.6, numcodecs 0.16.5, numpy 2.4.6,
# tensorstore 0.1.86.
# Behaviour: `createVariable(..., zlib=True)` in a Dataset of `#mode=zarr,file` shuffles the bytes
# of each 4-byte element before it compresses them, and writes the filter as
# {"id": "shuffle", "elementsize": 0}. netCDF-C takes the item size of the array when it reads; in
# numcodecs, an element size of 0 means that nothing is shuffled. So zarr-python returns other
# numbers and reports nothing; TensorStore refuses filters of Zarr v2.
# Expected before the run: the element size is 4, or zarr-python refuses 0.
# Output seen:
#   filters [{'id': 'shuffle', 'elementsize': 0}]
#   netCDF4 [1.25, 2.0, 3.0]
#   zarr-python [0.0, 1.4693679385278594e-38, 3.0038604736328125]
#   tensorstore refuses: filters are not supported
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 zarr==3.1.6 numcodecs==0.16.5 \
    numpy==2.4.6 tensorstore==0.1.86
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import json
import os

import netCDF4
import tensorstore
import zarr

with netCDF4.Dataset(f"file://{os.getcwd()}/store#mode=zarr,file", "w") as file:
    file.createDimension("x", 3)
    file.createVariable("v", "f4", ("x",), zlib=True)[:] = [1.25, 2, 3]
filters = json.load(open("store/v/.zarray"))["filters"]
print("filters", filters)
assert filters == [{"id": "shuffle", "elementsize": 0}]
with netCDF4.Dataset(f"file://{os.getcwd()}/store#mode=zarr,file") as file:
    own = file["v"][:].tolist()
print("netCDF4", own)
assert own == [1.25, 2, 3]
other = zarr.open_array("store/v", mode="r")[:].tolist()
print("zarr-python", other)
assert other != own
spec = {"driver": "zarr", "kvstore": f"file://{os.getcwd()}/store/v/"}
try:
    tensorstore.open(spec).result()
except ValueError as error:
    assert "filters are not supported" in str(error)
    print("tensorstore refuses: filters are not supported")
else:
    raise SystemExit("tensorstore opens the array")
PYTHON
