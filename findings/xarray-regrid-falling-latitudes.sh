#!/usr/bin/env bash
# xarray-regrid puts the mean of 3° N at 3° S, if the latitudes of the target fall from north to south.
#
# Versions: xarray-regrid 0.4.2, flox 0.11.2, xarray 2026.9.0, scipy 1.18.1, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `stat` and `most_common` sort the target, and then write its coordinates, as they came, beside the sorted results. Most
# weather grids fall from north to south; the map is then upside down, with no warning. `conservative`, `linear` and
# `nearest` are right. In `conservative`, skipna=False, which "can be disabled for optimal performance", adds NaN as 0,
# so that an empty cell is 0; one infinity makes NaN of the whole map. `least_common` finds a label that no cell has.
# Expected before the run: each value at its own latitude, NaN only in the cell that has it, and 4 as the rarest label.
# Output seen (a map whose values are its latitudes, at 3, 1, -1 and -3 degrees north):
#   stat mean, target rises    [3.0, 1.0, -1.0, -3.0]
#   stat mean, target falls    [-3.0, -1.0, 1.0, 3.0]
#   stat max, target falls     [-2.5, -0.5, 1.5, 3.5]
#   most_common, target falls  [-3.0, -1.0, 1.0, 3.0]
#   conservative, target falls [3.0, 1.0, -1.0, -3.0]
#   linear, target falls       [3.0, 1.0, -1.0, -3.0]
#   conservative of 10 with one cell empty, skipna=False [10.0, 10.0, 10.0, 0.0]
#   conservative of 10 with one infinity: 15 of 16 are NaN
#   least_common of 4 once, 10 thrice, among [3, 4, 10]: 3
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray-regrid==0.4.2 flox==0.11.2 xarray==2026.9.0 scipy==1.18.1 \
    pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import xarray as xr
import xarray_regrid  # noqa: F401

axes = {"latitude": np.arange(-3.5, 4), "longitude": np.arange(0.5, 8)}
field = xr.DataArray(np.repeat(axes["latitude"], 8).reshape(8, 8), coords=axes, name="field")
rising = xr.Dataset(coords={"latitude": np.arange(-3.0, 4, 2), "longitude": np.arange(1.0, 8, 2)})
falling = rising.isel(latitude=slice(None, None, -1))
labels = (2 * np.ceil(field / 2) - 1).astype("i4")
right, mirrored = [3, 1, -1, -3], [-3, -1, 1, 3]


def show(name, result, seen):
    found = [round(float(result.isel(longitude=0).sel(latitude=at)), 3) for at in right]
    print(f"{name:26} {found}")
    assert found == seen, found


show("stat mean, target rises", field.regrid.stat(rising, "mean"), right)
show("stat mean, target falls", field.regrid.stat(falling, "mean"), mirrored)
show("stat max, target falls", field.regrid.stat(falling, "max"), [-2.5, -0.5, 1.5, 3.5])
seen = [-3, -1, 1, 3]
show("most_common, target falls", labels.regrid.most_common(falling, values=np.arange(-3, 4, 2)), seen)
show("conservative, target falls", field.regrid.conservative(falling), right)
show("linear, target falls", field.regrid.linear(falling), right)

tens = xr.full_like(field, 10)
tens[:2, :2] = np.nan
found = tens.regrid.conservative(rising, skipna=False)
show("conservative of 10 with one cell empty, skipna=False", found, [10, 10, 10, 0])
tens[:2, :2] = [[np.inf, 10], [10, 10]]
found = int(tens.regrid.conservative(rising).isnull().sum())
print(f"conservative of 10 with one infinity: {found} of 16 are NaN")
assert found == 15
covers = xr.full_like(field, 10, dtype="i4")
covers[::2, ::2] = 4
found = int(covers.regrid.least_common(rising, values=np.array([3, 4, 10]))[0, 0])
print(f"least_common of 4 once, 10 thrice, among [3, 4, 10]: {found}")
assert found == 3
PYTHON
