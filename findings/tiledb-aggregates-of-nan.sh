#!/usr/bin/env bash
# TileDB finds 5 as the minimum of -1, 3, NaN, 5, and halves the mean of large unsigned integers.
#
# Versions: tiledb 0.36.1 (TileDB 2.30.0), numpy 2.4.6.
# Behaviour: `query().agg` lets TileDB compute while it reads. Its minimum and maximum begin anew after a NaN: the answer is
# that of the numbers behind the last NaN of a tile, or NaN if none follow, in dense and sparse arrays. The sum of
# integers stops at the largest number of 64 bits, and the mean is made of that sum: the mean of 2**64 - 1
# twice is 2**63.
# Expected before the run: NaN is left out or returned whatever its place, and a mean lies between the numbers.
# Output seen (minimum, maximum; dense and sparse alike):
#   [nan, -1, 3, 5]  -1, 5
#   [-1, nan, 3, 5]  3, 5
#   [-1, 3, nan, 5]  5, 5
#   [-1, 3, 5, nan]  nan, nan
#   [18446744073709551615, 18446744073709551615]  mean 9223372036854775808
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tiledb==0.36.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import tiledb


def aggregates(values, sparse, name):
    """Minimum, maximum and mean, of an array of one tile."""
    size = len(values)
    domain = tiledb.Domain(tiledb.Dim("i", domain=(0, size - 1), tile=size, dtype="i4"))
    attributes = [tiledb.Attr("v", dtype=values.dtype)]
    tiledb.Array.create(name, tiledb.ArraySchema(domain=domain, attrs=attributes, sparse=sparse))
    with tiledb.open(name, "w") as array:
        array[np.arange(size) if sparse else slice(None)] = values
    with tiledb.open(name) as array:
        return [array.query().agg({"v": [one]})[:] for one in ("min", "max", "mean")]


nan = np.nan
seen = [
    ([nan, -1, 3, 5], [-1, 5]),
    ([-1, nan, 3, 5], [3, 5]),
    ([-1, 3, nan, 5], [5, 5]),
    ([-1, 3, 5, nan], [nan, nan]),
]
for values, expected in seen:
    for sparse in (False, True):
        found = aggregates(np.array(values, "f8"), sparse, f"{values}-{sparse}")[:2]
        np.testing.assert_array_equal(found, expected)
    print(f"{values}  {found[0]:g}, {found[1]:g}")
large = np.full(2, 2**64 - 1, "u8")
mean = aggregates(large, False, "large")[2]
print(f"{large.tolist()}  mean {mean:.0f}")
assert mean == 2**63
PYTHON
