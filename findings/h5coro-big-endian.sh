#!/usr/bin/env bash
# H5Coro reads big-endian numbers of HDF5 as little-endian ones, and part of an integer as all of it.
#
# Versions: h5coro 1.0.7 (a reader for HDF5 in the cloud, made for ICESat-2), h5py 3.16.0, numpy 2.4.6.
# Behaviour: HDF5 states the byte order of each type. H5Coro takes all numbers for little-endian: a
# big-endian int16 of 1 is 256, a float32 of 1 is 4.6e-41. An integer that has 12 of 32 bits, from bit
# 4 on, as instruments write it, comes back as all 32 bits. H5Coro logs an error for types that it
# does not know, such as booleans, and nothing here. Little-endian data with shuffle and gzip are right.
# One would expect: the right numbers, or an error as for booleans.
# Output seen (h5py reads 1, 2, 3 from each):
#   little_int16   [1, 2, 3]
#   shuffle_gzip   [1, 2, 3]
#   big_int16      [256, 512, 768]
#   big_float32    [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41]
#   bits_12_of_32  [16, 32, 48]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install h5coro==1.0.7 aiobotocore==3.10.0 boto3==1.43.117 \
    earthaccess==0.17.0 h5py==3.16.0 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import logging

import h5py
import numpy as np
from h5coro import filedriver, h5coro

logging.disable(logging.CRITICAL)
VALUES = np.array([1, 2, 3], "<i4")

with h5py.File("a.h5", "w") as file:
    file["little_int16"] = VALUES.astype("<i2")
    file["big_int16"] = VALUES.astype(">i2")
    file["big_float32"] = VALUES.astype(">f4")
    file.create_dataset("shuffle_gzip", data=VALUES, chunks=(3,), shuffle=True, compression="gzip")
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(12)
    kind.set_offset(4)
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(file.id, b"bits_12_of_32", kind, space).write(space, space, VALUES)

EXPECTED = {
    "little_int16": [1, 2, 3],
    "shuffle_gzip": [1, 2, 3],
    "big_int16": [256, 512, 768],
    "big_float32": VALUES.astype(">f4").view("<f4").tolist(),
    "bits_12_of_32": [16, 32, 48],
}
source = h5coro.H5Coro("a.h5", filedriver.FileDriver)
for name, expected in EXPECTED.items():
    found = source.readDatasets([f"/{name}"], block=True)[f"/{name}"].tolist()
    print(f"{name:<14} {found}")
    with h5py.File("a.h5") as file:
        assert file[name][:].tolist() == [1, 2, 3]
    assert found == expected
PYTHON
