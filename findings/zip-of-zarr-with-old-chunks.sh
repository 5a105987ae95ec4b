#!/usr/bin/env bash
# A chunk that zarr-python overwrites in a zip has three answers in three readers.
#
# Versions: zarr 3.1.6, numcodecs 0.16.5, numpy 2.4.6, tensorstore 0.1.86, rasterio 1.4.4
# (GDAL 3.10.3).
# Behaviour: `ZipStore` cannot replace a member, so the second write of a chunk appends a second
# member of the same name (Python warns). zarr-python reads the newer one. GDAL, through
# /vsizip/, reads the older one and says nothing. TensorStore refuses the whole zip.
# Expected before the run: all three read the last member.
# Output seen:
#   zarr-python [2, 2, 2, 2]
#   GDAL [1, 1, 1, 1]
#   tensorstore refuses: Duplicate filename in ZIP
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 numcodecs==0.16.5 numpy==2.4.6 \
    tensorstore==0.1.86 rasterio==1.4.4
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import rasterio
import tensorstore
import zarr

store = zarr.storage.ZipStore("a.zip", mode="w")
array = zarr.create_array(
    store, shape=(1, 4), chunks=(1, 4), dtype="i4", compressors=None, zarr_format=2
)
array[:] = 1
array[:] = 2
store.close()
python = zarr.open_array(zarr.storage.ZipStore("a.zip", mode="r"))[0].tolist()
print("zarr-python", python)
assert python == [2, 2, 2, 2]
with rasterio.open(f'ZARR:"/vsizip/{os.getcwd()}/a.zip"') as dataset:
    gdal = dataset.read(1)[0].tolist()
print("GDAL", gdal)
assert gdal == [1, 1, 1, 1]
base = {"driver": "file", "path": f"{os.getcwd()}/a.zip"}
try:
    tensorstore.open({"driver": "zarr", "kvstore": {"driver": "zip", "base": base}}).result()
except ValueError as error:
    assert "Duplicate filename in ZIP" in str(error)
    print("tensorstore refuses: Duplicate filename in ZIP")
else:
    raise SystemExit("tensorstore opens the zip")
PYTHON
