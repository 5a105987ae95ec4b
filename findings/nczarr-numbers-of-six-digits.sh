#!/usr/bin/env bash
# netCDF-C rounds the numbers of attributes and of _FillValue to six digits when it writes Zarr.
#
# Versions: netCDF4 1.7.5.1.post1 (netCDF-C 4.10.1), numpy 2.4.6.
# Behaviour: in a Dataset of `#mode=zarr,file` a float64 attribute of 1/3 comes back as 0.333333,
# and a text attribute "1.50" as the number 1.5. The elements keep all their bits. So an element
# that was never written, and which holds the fill value given to createVariable, is not equal to
# the `_FillValue` that is read back: netCDF4 shows it as a number, not as missing.
# Expected before the run: JSON keeps 17 digits, as in all other writers of Zarr; text stays text.
# Output seen:
#   in the file that is written: [7.0, --]
#   read back: [7.0, 3.333333333333333e+19] with _FillValue 3.33333e+19
#   attribute of 1/3: 0.333333
#   attribute "1.50": np.float64(1.5)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 numpy==2.4.6
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import os

import netCDF4
import numpy as np

url = f"file://{os.getcwd()}/store#mode=zarr,file"
with netCDF4.Dataset(url, "w") as file:
    file.createDimension("x", 2)
    variable = file.createVariable("v", "f8", ("x",), fill_value=1e20 / 3)
    variable.third = 1 / 3
    variable.version = "1.50"
    variable[0] = 7
    print("in the file that is written:", variable[:])
    assert variable[:].mask.tolist() == [False, True]
with netCDF4.Dataset(url) as file:
    variable = file["v"]
    values = variable[:]
    print("read back:", values.tolist(), "with _FillValue", variable._FillValue)
    print("attribute of 1/3:", variable.third)
    print('attribute "1.50":', repr(variable.version))
    assert not np.ma.getmaskarray(values).any()
    assert values[1] == 1e20 / 3 != variable._FillValue
    assert variable.third == 0.333333
    assert variable.version == 1.5
PYTHON
