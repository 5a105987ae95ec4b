#!/usr/bin/env bash
# dask counts NaN zero times among the unique values, and puts the least value in its places.
#
# Versions: dask 2026.8.0, numpy 2.4.6.
# Behaviour: dask.array.unique lists NaN among the values. Its count is 0, and the inverse has 0, the
# index of the least value, wherever the array has NaN: the array that is built back from
# values and inverse has no NaN any more. The same with NaT, and with one chunk or many.
# The counts add up to fewer elements than there are. NumPy counts NaN and builds back the array.
# Expected before the run: the same as numpy.unique, which dask's documentation refers to.
# Output seen:
#   array           3, nan, -1, nan, 5
#   values          -1, 3, 5, nan
#   NumPy counts    1, 1, 1, 2  built back 3, nan, -1, nan, 5
#   dask counts     1, 1, 1, 0  built back 3, -1, -1, -1, 5
#   dask, dates     NaT counted 0 times, built back as 1999-01-01
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install "dask[array]==2026.8.0" numpy==2.4.6
"$folder/venv/bin/python" -I - <<'PYTHON'
import dask
import dask.array as da
import numpy as np


def show(values):
    return ", ".join(f"{value:g}" for value in values)


array = np.array([3, np.nan, -1, np.nan, 5])
options = {"return_inverse": True, "return_counts": True}
values, inverse, counts = np.unique(array, **options)
print("array          ", show(array))
print("values         ", show(values))
print("NumPy counts   ", show(counts), " built back", show(values[inverse]))
np.testing.assert_array_equal(values[inverse], array)
assert counts.tolist() == [1, 1, 1, 2]
for chunks in 5, 2:
    lazy = da.unique(da.from_array(array, chunks=chunks), **options)
    found, inverse, counts = dask.compute(*lazy)
    np.testing.assert_array_equal(found, values)
    assert counts.tolist() == [1, 1, 1, 0]
    assert found[inverse].tolist() == [3, -1, -1, -1, 5]
print("dask counts    ", show(counts), " built back", show(found[inverse]))
dates = np.array(["2000-01-01", "NaT", "1999-01-01"], dtype="M8[D]")
found, inverse, counts = dask.compute(*da.unique(da.from_array(dates, chunks=2), **options))
back = found[inverse][1]
print("dask, dates     NaT counted", counts[2], "times, built back as", back)
assert np.isnat(found[2]) and counts[2] == 0 and back == np.datetime64("1999-01-01")
PYTHON
