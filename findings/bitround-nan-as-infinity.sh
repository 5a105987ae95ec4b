#!/usr/bin/env bash
# Rounding bits away turns the missing value of R into infinity, and NaN from a GPU into -0.0.
#
# Versions: numcodecs 0.16.5, zarr 3.1.6, zarrs 0.2.3, imagecodecs 2026.3.6, netCDF4 1.7.5.1.post1
# (netCDF-C 4.10.1), numpy 2.4.6.
# Behaviour: a float is NaN if all bits of its exponent are set and any of the mantissa is. BitRound of
# numcodecs, alone, in zarr-python and in the zarrs pipeline, and imagecodecs' "bitround" round NaN
# as if it were a number. R's NA_real_ has its payload, 1954, in the lowest bits: they are rounded
# away, and what is left is infinity. NVIDIA GPUs produce 0x7fffffff: it is rounded up, over the sign
# bit, to -0.0, which is a measured zero for whoever reads it. NumPy's own NaN survives. imagecodecs'
# "gbr" makes -0.0 of that one, too. netCDF-C, which has the same algorithms, keeps NaN.
# One would expect: NaN stays NaN, as rounding of numbers is all that is asked for.
# Output seen:
#             NumPy's NaN  of a GPU  R's NA
#   numcodecs [nan, -0.0, inf]
#   zarr      [nan, -0.0, inf]
#   zarrs     [nan, -0.0, inf]
#   bitround  [nan, -0.0, inf]
#   gbr       [-0.0, -0.0, -0.0]
#   netCDF-C  [nan, nan, nan]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install numcodecs==0.16.5 zarr==3.1.6 zarrs==0.2.3 \
    imagecodecs==2026.3.6 netCDF4==1.7.5.1.post1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import math

import imagecodecs
import netCDF4
import numcodecs
import numpy as np
import zarr
import zarrs  # noqa: F401 - names its pipeline
from zarr.codecs.numcodecs import BitRound

SINGLE = np.array([0x7FC00000, 0x7FFFFFFF], "u4").view("f4")
DOUBLE = np.array([0x7FF00000000007A2], "u8").view("f8")
assert np.isnan(SINGLE).all() and np.isnan(DOUBLE).all()


def show(name, store, *expected):
    found = [*store(SINGLE).tolist(), *store(DOUBLE).tolist()]
    print(f"{name:<9}", found)
    assert repr(found) == repr(list(expected))


def in_zarr(values):
    array = zarr.create_array(
        {}, shape=values.shape, dtype=values.dtype, filters=[BitRound(keepbits=10)], compressors=None
    )
    array[:] = values
    return array[:]


def in_netcdf(values):
    with netCDF4.Dataset("a.nc", "w", diskless=True) as file:
        file.createDimension("x", values.size)
        variable = file.createVariable(
            "v", values.dtype, ("x",), compression="zlib", fill_value=-1.0,
            significant_digits=3, quantize_mode="BitRound",
        )
        variable.set_auto_mask(False)
        variable[:] = values
        file.sync()
        return variable[:]


codec = numcodecs.BitRound(keepbits=10)
print("          NumPy's NaN  of a GPU  R's NA")
show("numcodecs", lambda values: codec.encode(values.copy()).view(values.dtype), math.nan, -0.0, math.inf)
show("zarr", in_zarr, math.nan, -0.0, math.inf)
with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
    show("zarrs", in_zarr, math.nan, -0.0, math.inf)
show("bitround", lambda values: imagecodecs.quantize_encode(values, "bitround", 3), math.nan, -0.0, math.inf)
show("gbr", lambda values: imagecodecs.quantize_encode(values, "gbr", 3), -0.0, -0.0, -0.0)
show("netCDF-C", in_netcdf, math.nan, math.nan, math.nan)
PYTHON
