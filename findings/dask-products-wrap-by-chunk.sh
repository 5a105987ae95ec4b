#!/usr/bin/env bash
# Products of matrices of small integers in dask depend on the chunks, in a type that seems wide enough.
#
# Versions: dask 2026.8.0, numpy 2.4.6.
# Behaviour: the dot product of two arrays of uint8 has the type uint64 in dask, where NumPy keeps uint8.
# Yet dask multiplies and adds each chunk in uint8, which wraps, and only adds up the chunks in
# uint64. So each chunk size gives another number, with "@", matmul and tensordot too. The
# "@" of booleans is True in NumPy, and the count of chunks that have a match in dask.
# Expected before the run: the number of NumPy, or the true one, whatever the chunks.
# Output seen:
#   15 * 15, eight times   1800
#   NumPy                    8  uint8
#   dask, chunks of 8        8  uint64
#   dask, chunks of 4      264  uint64
#   dask, chunks of 2      776  uint64
#   dask, chunks of 1     1800  uint64
#   booleans: NumPy True, dask 2 in chunks of 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install "dask[array]==2026.8.0" numpy==2.4.6
"$folder/venv/bin/python" -I - <<'PYTHON'
import dask.array as da
import numpy as np

print("15 * 15, eight times   1800")
values = np.full(8, 15, "u1")
right = np.dot(values, values)
print(f"NumPy             {right:8}  {right.dtype}")
assert right == 8 and right.dtype == "u1"
for chunks, expected in {8: 8, 4: 264, 2: 776, 1: 1800}.items():
    lazy = da.from_array(values, chunks=chunks)
    for product in da.dot(lazy, lazy), lazy @ lazy, da.tensordot(lazy, lazy, axes=1):
        found = product.compute()
        assert found == expected
    found = da.dot(lazy, lazy).compute()
    print(f"dask, chunks of {chunks} {found:8}  {found.dtype}")
    assert found.dtype == da.dot(lazy, lazy).dtype == "u8"
flags = np.ones(8, "?")
lazy = da.from_array(flags, chunks=4)
right, found = flags @ flags, (lazy @ lazy).compute()
print(f"booleans: NumPy {right}, dask {found} in chunks of 4")
assert right is np.True_ and found == 2
PYTHON
