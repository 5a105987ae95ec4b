#!/usr/bin/env bash
# zarr-python drops a chunk of complex negative zeros, though it keeps one of real negative zeros.
#
# Versions: zarr 3.1.6, numpy 2.4.6, numcodecs 0.16.5.
# Behaviour: by default zarr-python does not store a chunk that equals the fill value. For float32
# it tells -0.0 from 0.0 and stores the chunk. For complex64 it does not: the chunk is not stored,
# and reads as +0.0. The sign decides on which side of a branch cut a number lies, so that
# sqrt(-1 - 0j) is -1j and after the round trip of its parts +1j. The setting
# write_empty_chunks=True keeps the sign.
# One would expect: both types keep the sign, because the float type does.
# Output seen:
#   float32   signs kept: True
#   complex64 signs kept: False
#   complex64 with write_empty_chunks, signs kept: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import zarr


def kept(name, values, **config):
    array = zarr.create_array(
        name, shape=values.shape, chunks=values.shape, dtype=values.dtype, fill_value=0, config=config
    )
    array[...] = values
    return bool(np.signbit(zarr.open_array(name, mode="r")[...].view("f4")).all())


real = np.full(4, -0.0, "f4")
both = np.full(4, complex(-0.0, -0.0), "c8")
found = [kept("f", real), kept("c", both), kept("w", both, write_empty_chunks=True)]
print("float32   signs kept:", found[0])
print("complex64 signs kept:", found[1])
print("complex64 with write_empty_chunks, signs kept:", found[2])
assert found == [True, False, True]
PYTHON
