#!/usr/bin/env bash
# TensorStore finds 1 as the most frequent of 2, NaN, 2, 1, and 2 if the same numbers have another order.
#
# Versions: tensorstore 0.1.86, dyna-zarr 0.1.1, zarr 3.4.2, numpy 2.5.5.
# Behaviour: TensorStore makes smaller levels of an image with `tensorstore.downsample`. The methods min and max leave
# NaN out, mean passes it on. median and mode sort the elements of a block, which NaN upsets: what they return depends
# on the order of the elements, and is neither the answer with NaN nor the one without it. The most frequent number may
# lose against one that is there once. dyna-zarr, whose blocks are meant to be the same, leaves NaN out.
# Expected before the run: median and mode do with NaN what one of the other methods does, in each order.
# Output seen (a block of four elements):
#   [2, 2, 1, nan] mode 2.0  median nan  dyna-zarr mode 2.0  median 2.0
#   [2, nan, 2, 1] mode 1.0  median 2.0  dyna-zarr mode 2.0  median 2.0
#   [2, 2, nan, 1] mode 2.0  median 1.0  dyna-zarr mode 2.0  median 2.0
#   [3, 2, 1, nan] mode 1.0  median nan  dyna-zarr mode 1.0  median 2.0
#   [nan, 1, 2, 3] mode nan  median 2.0  dyna-zarr mode 1.0  median 2.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tensorstore==0.1.86 dyna-zarr==0.1.1 zarr==3.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import dyna_zarr
import numpy as np
import tensorstore
from dyna_zarr import operations

nan = np.nan


def reduced(numbers, method):
    block = np.array(numbers, "f4")
    whole = tensorstore.downsample(tensorstore.array(block), [block.size], method)
    peer = operations.coarsen(dyna_zarr.from_array(block), (block.size,), method)
    return [str(one) for one in (*whole.read().result(), *peer.compute())]


seen = {
    (2, 2, 1, nan): ["2.0", "nan"],
    (2, nan, 2, 1): ["1.0", "2.0"],
    (2, 2, nan, 1): ["2.0", "1.0"],
    (3, 2, 1, nan): ["1.0", "nan"],
    (nan, 1, 2, 3): ["nan", "2.0"],
}
for numbers, expected in seen.items():
    mode, peers_mode = reduced(numbers, "mode")
    median, peers_median = reduced(numbers, "median")
    print(f"{list(numbers)} mode {mode}  median {median}  dyna-zarr mode {peers_mode}  median {peers_median}")
    assert [mode, median] == expected
    assert peers_mode == ("2.0" if numbers.count(2) == 2 else "1.0") and peers_median == "2.0"
    assert reduced(numbers, "max")[0] == str(float(np.nanmax(numbers)))
    assert reduced(numbers, "mean")[0] == "nan"
assert reduced((2, 2, 2, 1), "mode")[0] == "2.0"
PYTHON
