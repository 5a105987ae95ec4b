#!/usr/bin/env bash
# cubed leaves an index out if it has as many entries as the axis: a sorted array stays unsorted.
#
# Versions: cubed 0.27.0, numpy 2.4.6, zarr 3.1.6.
# Behaviour: `x[[2, 0]]` and `x[[2, 0, 2]]` of six rows are right. An index of six entries, such as
# the result of argsort, or a reversed or repeated range, keeps the shape of the array; cubed then
# returns the array as it was, from `x[index]` and from `take`. There is no error or warning.
# One would expect: an index of integers selects what it selects in NumPy, at any length.
# Output seen:
#   [2, 0]              right
#   [5, 0, 3, 1, 4]     right
#   [5, 4, 3, 2, 1, 0]  not applied
#   [0, 0, 0, 0, 0, 0]  not applied
#   argsort             [40, 10, 30, 20], by NumPy [10, 20, 30, 40]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install cubed==0.27.0 numpy==2.4.6 zarr==3.1.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import cubed
import cubed.array_api as xp
import numpy as np

spec = cubed.Spec(work_dir="work", allowed_mem="200MB")
rows = np.arange(12).reshape(6, 2)
array = cubed.from_array(rows, chunks=(2, 2), spec=spec)
for index, applied in (
    ([2, 0], True),
    ([5, 0, 3, 1, 4], True),
    ([5, 4, 3, 2, 1, 0], False),
    ([0, 0, 0, 0, 0, 0], False),
):
    taken = xp.take(array, cubed.from_array(np.array(index), spec=spec), axis=0)
    for found in (array[index].compute(), taken.compute()):
        assert (found == (rows[index] if applied else rows)).all()
    print(f"{index!s:<19} {'right' if applied else 'not applied'}")

values = np.array([40, 10, 30, 20])
order = np.argsort(values)
found = cubed.from_array(values, chunks=2, spec=spec)[order].compute()
print(f"argsort             {found.tolist()}, by NumPy {values[order].tolist()}")
assert found.tolist() == values.tolist()
PYTHON
