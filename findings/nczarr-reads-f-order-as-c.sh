#!/usr/bin/env bash
# netCDF-C reads Zarr v2 arrays of order F as if their order were C.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1), zarr 3.1.6, numcodecs 0.16.5, numpy 2.4.6.
# Behaviour: a 4 x 6 array that zarr-python wrote with order="F" in chunks of 2 x 3 opens without
# an error or a warning; within each chunk the elements stand in other places.
# Expected before the run: netCDF-C refuses the array, as it refuses codecs and data types that
# it does not know.
# Output seen:
#   zarr-python [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], ...]
#   netCDF4     [[0, 6, 1, 3, 9, 4], [7, 2, 8, 10, 5, 11], ...]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 zarr==3.1.6 numcodecs==0.16.5 \
    numpy==2.4.6
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import os

import netCDF4
import numpy as np
import zarr

group = zarr.open_group("store", mode="w", zarr_format=2)
array = group.create_array(
    "v", shape=(4, 6), chunks=(2, 3), dtype="i4", order="F", compressors=None
)
array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
array[:] = np.arange(24).reshape(4, 6)
right = zarr.open_array("store/v", mode="r")[:]
print("zarr-python", right.tolist())
assert right.tolist() == np.arange(24).reshape(4, 6).tolist()
with netCDF4.Dataset(f"file://{os.getcwd()}/store#mode=zarr,file") as file:
    read = np.asarray(file["v"][:])
print("netCDF4    ", read.tolist())
assert read[0].tolist() == [0, 6, 1, 3, 9, 4]
assert sorted(read.ravel()) == list(range(24))
PYTHON
