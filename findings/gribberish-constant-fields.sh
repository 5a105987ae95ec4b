#!/usr/bin/env bash
# gribberish shows GRIB fields that are the same everywhere as zeros.
#
# Versions: gribberish 0.30.3 (the last for Python 3.11), eccodes 2.50.0, numpy 2.4.6.
# Behaviour: a field whose values are all equal has a reference value and no bits for its points, such
# as sea ice in the tropics, or a constant of 5.5. gribberish gives 0.0 for all points in simple, JPEG
# 2000 and CCSDS packing; with spatial differences 5.5 is right, and so are fields that vary. In
# complex packing without differences fields that vary are wrong, too: here the reference value
# is missing from each number. There is no error or warning.
# One would expect: the values of ecCodes, or a refusal, as for IEEE packing.
# Output seen (the first two values):
#   grid_simple                        ecCodes [5.5, 5.5]   gribberish [0.0, 0.0]
#   grid_jpeg                          ecCodes [5.5, 5.5]   gribberish [0.0, 0.0]
#   grid_ccsds                         ecCodes [5.5, 5.5]   gribberish [0.0, 0.0]
#   grid_complex_spatial_differencing  ecCodes [5.5, 5.5]   gribberish [5.5, 5.5]
#   grid_simple                        ecCodes [-8.0, -7.0] gribberish [-8.0, -7.0]
#   grid_complex                       ecCodes [-8.0, -7.0] gribberish [0.0, 0.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install gribberish==0.30.3 eccodes==2.50.0 \
    numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import eccodes
import gribberish
import numpy as np


def show(packing, pattern, expected):
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    size = eccodes.codes_get_size(handle, "values")
    eccodes.codes_set(handle, "packingType", packing)
    eccodes.codes_set(handle, "bitsPerValue", 16)
    eccodes.codes_set_values(handle, np.resize(pattern, size))
    truth = eccodes.codes_get_values(handle)[:2].round(2).tolist()
    message = eccodes.codes_get_message(handle)
    found = np.asarray(gribberish.parse_grib_message(message, 0).data()).ravel()
    print(f"{packing:<34} ecCodes {truth!s:<12} gribberish {found[:2].round(2).tolist()}")
    assert truth == pattern[:2].tolist(), truth
    assert found.size == size and found[:2].round(2).tolist() == expected
    if len(set(pattern.tolist())) == 1:
        assert len(set(found.tolist())) == 1


constant, rising = np.array([5.5, 5.5]), np.arange(-8.0, 488.0)
show("grid_simple", constant, [0.0, 0.0])
show("grid_jpeg", constant, [0.0, 0.0])
show("grid_ccsds", constant, [0.0, 0.0])
show("grid_complex_spatial_differencing", constant, [5.5, 5.5])
show("grid_simple", rising, [-8.0, -7.0])
show("grid_complex", rising, [0.0, 0.0])
PYTHON
