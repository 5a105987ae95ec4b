#!/usr/bin/env bash
# The filter of TileDB that packs floats stores 100000.4 as 1696.4, and NaN as 0, without an error.
#
# Versions: tiledb 0.36.1 (TileDB 2.30.0), numpy 2.4.6.
# Behaviour: `FloatScaleFilter(factor, offset, bytewidth)` stores floats as integers of that many bytes, as
# scale_factor and add_offset of NetCDF do. What does not fit is cut to its lowest bits: with two bytes and a factor of 0.1,
# 3276.8 comes back as -3276.8. NaN and infinity become a number: 0 with two bytes, and the smallest
# integer with four. Nothing is said while it writes or reads.
# Expected before the run: an error, or the largest number that fits; NaN is refused.
# Output seen (factor 0.1, offset 0):
#   float32, 2 bytes  [0.2, 3276.8, 100000.4, nan, inf] reads [0.2, -3276.8, 1696.4, 0.0, 0.0]
#   float32, 4 bytes  [0.2, 3276.8, 100000.4, nan, inf] reads [0.200000003, 3276.80005, 100000.398, -214748368.0, -214748368.0]
#   float64, 2 bytes  [0.2, 3276.8, 100000.4, nan, inf] reads [0.2, -3276.8, 1696.4, 0.0, 0.0]
#   float64, 4 bytes  [0.2, 3276.8, 100000.4, nan, inf] reads [0.2, 3276.8, 100000.4, -214748365.0, -214748365.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tiledb==0.36.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W error - <<'PYTHON'
import numpy as np
import tiledb

values = [0.2, 3276.8, 100000.4, np.nan, np.inf]
domain = tiledb.Domain(tiledb.Dim("i", domain=(0, 4), tile=5, dtype="i4"))
for dtype in ("float32", "float64"):
    for width in (2, 4):
        name = f"{dtype}-{width}"
        packed = [tiledb.FloatScaleFilter(factor=0.1, offset=0, bytewidth=width)]
        attribute = tiledb.Attr("", dtype=dtype, filters=packed)
        tiledb.Array.create(name, tiledb.ArraySchema(domain=domain, attrs=[attribute]))
        with tiledb.open(name, "w") as array:
            array[:] = np.array(values, dtype)
        with tiledb.open(name) as array:
            found = array[:]
        lost = 0 if width == 2 else -(2**31) / 10
        wide = [-3276.8, 1696.4] if width == 2 else [3276.8, 100000.4]
        shown = [float(f"{number:.9g}" if width == 4 else f"{number:.6g}") for number in found]
        print(f"{dtype}, {width} bytes  {values} reads {shown}")
        np.testing.assert_allclose(found, [0.2, *wide, lost, lost], rtol=1e-6)
PYTHON
