#!/usr/bin/env bash
# topozarr finds 255 as the sum of four counts of 200, and a rounded maximum of int64 by one of its two ways.
#
# Versions: topozarr 0.2.1, topozarr-core 0.2.1, xarray 2026.9.0, xproj 0.2.1, dask 2026.8.0, zarr 3.4.2, numpy 2.5.5.
# Behaviour: a pyramid with method="sum" keeps the type of the data and stops at its largest number: 255 in uint8, 32767
# in int16. The maximum of int64 is right in what `write` stores, and rounded to 53 bits by `as_datatree` of the
# same pyramid; the mean of four equal int64 is another number by both. There is no warning.
# Expected before the run: 800 in a wider type, as xarray's coarsen(...).sum() gives it, or a refusal, and exact maxima.
# Output seen:
#   sum of uint8 200        right 800               write 255               as_datatree 255
#   sum of int16 20000      right 80000             write 32767             as_datatree 32767
#   max of int64 2**53 + 1  right 9007199254740993  write 9007199254740993  as_datatree 9007199254740992
#   mean of int64 2**53 + 1 right 9007199254740993  write 9007199254740992  as_datatree 9007199254740992
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install topozarr==0.2.1 topozarr-core==0.2.1 xarray==2026.9.0 \
    xproj==0.2.1 dask==2026.8.0 zarr==3.4.2 numpy==2.5.5
cd "$folder"
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import numpy as np
import xarray as xr
import xproj  # noqa: F401 - registers the accessor
import zarr
from topozarr import create_pyramid


def coarser(values, method):
    coordinates = {"y": [1.0, 0.0], "x": [0.0, 1.0]}
    data = xr.Dataset({"v": (("y", "x"), values)}, coords=coordinates).proj.assign_crs(spatial_ref="EPSG:32633")
    pyramid = create_pyramid(data, levels=2, method=method)
    pyramid.write("a.zarr")
    found = zarr.open_group("a.zarr", mode="r")["1/v"][...], pyramid.as_datatree()["1/v"].values
    assert all(part.dtype == values.dtype for part in found)
    return [int(part[0, 0]) for part in found]


large = 2**53 + 1
for method, name, number, kind, right, expected in (
    ("sum", "uint8 200", 200, "u1", 800, [255, 255]),
    ("sum", "int16 20000", 20000, "i2", 80000, [32767, 32767]),
    ("max", "int64 2**53 + 1", large, "i8", large, [large, large - 1]),
    ("mean", "int64 2**53 + 1", large, "i8", large, [large - 1, large - 1]),
):
    written, shown = coarser(np.full((2, 2), number, kind), method)
    print(f"{method + ' of ' + name:23} right {right:<17} write {written:<17} as_datatree {shown}")
    assert [written, shown] == expected
assert xr.DataArray(np.full((2, 2), 200, "u1"), dims=("y", "x")).coarsen(y=2, x=2).sum().item() == 800
PYTHON
