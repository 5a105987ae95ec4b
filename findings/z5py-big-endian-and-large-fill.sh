#!/usr/bin/env bash
# z5py reads 1, 2, 3 of a big-endian Zarr v3 array as 16777216, 33554432, 50331648, and the fill value 2**64 - 1 as 0.
#
# Versions: z5py 3.0.2, zarr 3.4.2, numcodecs 0.17.1, tensorstore 0.1.86, numpy 2.5.5.
# Behaviour: z5py ignores "endian" of the codec "bytes" of Zarr v3 and takes big-endian numbers for little-endian ones. Of
# Zarr v2 it refuses them ("Unsupported zarr dtype: >i4"). It keeps fill values as floats: where nothing was written,
# 2**64 - 1, the usual mark for a missing identifier, is 0, and 2**53 + 1 loses its last digit. It refuses
# transpositions, checksums and filters by name. zarr-python and TensorStore agree on all. There is no error.
# Expected before the run: the numbers of zarr-python, or a refusal as for the codecs that z5py does not know.
# Output seen:
#   v3, little-endian         zarr [1, 2, 3, 7]              z5py [1, 2, 3, 7]
#   v3, big-endian            zarr [1, 2, 3, 7]              z5py [16777216, 33554432, 50331648, 7]
#   v3, shards of big-endian  zarr [1, 2, 3, 7]              z5py [16777216, 33554432, 50331648, 7]
#   v3, fill value 2**64 - 1  zarr [5, 18446744073709551615] z5py [5, 0]
#   v2, fill value 2**64 - 1  zarr [5, 18446744073709551615] z5py [5, 0]
#   v2, fill value 2**53 + 1  zarr [5, 9007199254740993]     z5py [5, 9007199254740992]
#   v2, big-endian            zarr [1, 2, 3, 7]              z5py: Unsupported zarr dtype: >i4
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install z5py==3.0.2 zarr==3.4.2 numcodecs==0.17.1 \
    tensorstore==0.1.86 numpy==2.5.5
cd "$folder"
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import os

import numpy as np
import tensorstore
import z5py
import zarr
from zarr.codecs import BytesCodec

numbers = np.array([1, 2, 3], "i4")
swapped = numbers.byteswap().tolist()
big = {"serializer": BytesCodec(endian="big")}
bigger = 2**64 - 1
cases = {
    "v3, little-endian": (3, numbers, 7, {}, [1, 2, 3, 7]),
    "v3, big-endian": (3, numbers, 7, big, [*swapped, 7]),
    "v3, shards of big-endian": (3, numbers, 7, big | {"shards": (6,)}, [*swapped, 7]),
    "v3, fill value 2**64 - 1": (3, np.array([5], "u8"), bigger, {}, [5, 0]),
    "v2, fill value 2**64 - 1": (2, np.array([5], "u8"), bigger, {}, [5, 0]),
    "v2, fill value 2**53 + 1": (2, np.array([5], "i8"), 2**53 + 1, {}, [5, 2**53]),
    "v2, big-endian": (2, numbers.astype(">i4"), 7, {}, ": Unsupported zarr dtype: >i4"),
}
for name, (version, values, fill, options, expected) in cases.items():
    group = zarr.open_group(f"{name}.zarr", mode="w", zarr_format=version)
    array = group.create_array(
        "a", shape=len(values) + 1, chunks=len(values), dtype=values.dtype, fill_value=fill, **options
    )
    array[: len(values)] = values
    right = array[...]
    assert right.tolist() == [*values, fill]
    kvstore = {"driver": "file", "path": f"{os.getcwd()}/{name}.zarr/a/"}
    driver = "zarr" if version == 2 else "zarr3"
    assert (tensorstore.open({"driver": driver, "kvstore": kvstore}).result().read().result() == right).all()
    try:
        found = z5py.File(f"{name}.zarr", "r")["a"][:].tolist()
    except RuntimeError as error:
        found = f": {error}"
    shown = found if isinstance(found, str) else f" {found}"
    print(f"{name:25} zarr {right.tolist()!s:25} z5py{shown}")
    assert found == expected
PYTHON
