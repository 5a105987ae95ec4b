#!/usr/bin/env bash
# pyshtools reads a Gaussian grid from south to north upside down, and a map from 180 west turned by half the globe.
#
# Versions: pyshtools 4.14.1, xarray 2026.9.0, scipy 1.18.1, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `SHGrid.from_xarray` and `from_netcdf` look at one coordinate: rows are turned if the first is at -90 exactly. Models
# that store latitudes from south to north often have none there, as on Gaussian grids ("GLQ") and in the copies
# that xarray sorts of pyshtools's own grids, which end before the south pole. Longitudes count as from 0 east. So harmonics of odd
# degree or order change their signs, and `to_xarray` gives other places to the values. Centres of cells are taken for a grid
# that begins at the pole. Sums of two grids of uint8 wrap, as NumPy's do; their expansion is right. No warning.
# Expected before the run: 10, 5 and 3 for each map, or a refusal of the last one, which is no grid of pyshtools.
# Output seen (harmonics 0,0 and 1,0 and 1,1 of 10 + 5 sin(latitude) + 3 cos(latitude) cos(longitude)):
#   GLQ, from north to south         [10.0, 5.0, 3.0]
#   GLQ, from south to north         [10.0, -5.0, 3.0]
#   the same by way of NetCDF        [10.0, -5.0, 3.0]
#   DH, from -90 to 90               [10.0, 5.0, 3.0]
#   DH, from 180 west                [10.0, 5.0, -3.0]
#   DH, from -81 to 90               [10.614, -4.938, 2.963]
#   centres, from 85.5 to -85.5      [9.692, 4.985, 2.982]
#   the DH grid at 81 north, 0 east: 15.408, and 6.172 behind from_xarray and to_xarray
#   200 + 200 of two grids in uint8: 144
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyshtools==4.14.1 xarray==2026.9.0 scipy==1.18.1 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import pyshtools
import xarray as xr
from pyshtools import SHGrid


def field(latitudes, longitudes):
    north, east = np.deg2rad(latitudes)[:, None], np.deg2rad(longitudes)
    values = 10 + 5 * np.sin(north) + 3 * np.cos(north) * np.cos(east)
    return xr.DataArray(values, coords={"lat": latitudes, "lon": longitudes}, name="field")


def report(name, grid, seen):
    coefficients = grid.expand(normalization="unnorm").coeffs[0]
    found = [round(float(coefficients[place]), 3) for place in ((0, 0), (1, 0), (1, 1))]
    print(f"{name:32} {found}")
    assert found == seen, found


gauss = SHGrid.from_zeros(lmax=9, grid="GLQ", extend=False)
falling, east = gauss.lats(), gauss.lons()
report("GLQ, from north to south", SHGrid.from_xarray(field(falling, east), grid="GLQ"), [10, 5, 3])
rising = field(falling[::-1], east)
report("GLQ, from south to north", SHGrid.from_xarray(rising, grid="GLQ"), [10, -5, 3])
rising.to_netcdf("rising.nc", engine="scipy")
report("the same by way of NetCDF", SHGrid.from_netcdf("rising.nc", grid="GLQ"), [10, -5, 3])
poles = field(np.linspace(-90, 90, 21), np.linspace(0, 360, 41))
report("DH, from -90 to 90", SHGrid.from_xarray(poles), [10, 5, 3])
west = field(np.linspace(90, -90, 21), np.linspace(-180, 180, 41))
report("DH, from 180 west", SHGrid.from_xarray(west), [10, 5, -3])
own = poles[1:, :-1]
report("DH, from -81 to 90", SHGrid.from_xarray(own), [10.614, -4.938, 2.963])
centres = field(np.arange(85.5, -90, -9), np.arange(4.5, 360, 9))
report("centres, from 85.5 to -85.5", SHGrid.from_xarray(centres), [9.692, 4.985, 2.982])
found = [round(float(array.sel(lat=81, lon=0)), 3) for array in (own, SHGrid.from_xarray(own).to_xarray())]
print(f"the DH grid at 81 north, 0 east: {found[0]}, and {found[1]} behind from_xarray and to_xarray")
assert found == [15.408, 6.172], found
bright = SHGrid.from_array(np.full((20, 40), 200, "u1"))
found = int((bright + bright).data[0, 0])
print(f"200 + 200 of two grids in uint8: {found}")
assert found == 144
PYTHON
