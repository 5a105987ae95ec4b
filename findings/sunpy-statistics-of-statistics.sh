#!/usr/bin/env bash
# sunpy finds 0 as the deviation of 0, 0, 10 and 10 in a superpixel, and forgets the mask of a map that is turned or doubled.
#
# Versions: sunpy 8.0.1, astropy 8.0.2, reproject 0.21.0, scipy 1.18.1, numpy 2.5.5.
# Behaviour: `superpixel` makes one pixel of each block of a map by a function that is given. It applies the function to
# the rows of a block, and then once more to the results: a deviation is that of the rows' deviations, a median that of
# medians, and a mean that skips NaN or masked pixels weighs a row of one pixel like a row of many. The same block turned by
# 90 degrees may have another value. Its documentation says that the function is applied to the data. Sums,
# maxima, and means of complete blocks are right. `resample`, `rotate`, `shift_reference_coord` and arithmetic return maps
# without the mask that the map had, and the numbers below it come to light; `submap` keeps it. Nothing warns.
# Expected before the run: NumPy's value of the block, and masks that stay.
# Output seen:
#   std                     0 0 / 10 10             superpixel 0.0     NumPy 5.0
#   var                     0 0 / 10 10             superpixel 0.0     NumPy 25.0
#   std, turned             10 0 / 10 0             superpixel 0.0     NumPy 5.0
#   median                  0 9 9 / 0 9 9 / 0 0 0   superpixel 9.0     NumPy 0.0
#   nanmean                 nan 1 / 4 5             superpixel 2.75    NumPy 3.3333
#   mean, masked            -- 1 / 4 5              superpixel 2.75    NumPy 3.3333
#   max                     0 0 / 10 10             superpixel 10.0    NumPy 10.0
#   submap                  mask True    largest number that shows 5
#   resample                mask False   largest number that shows 999
#   rotate                  mask False   largest number that shows 999
#   shift_reference_coord   mask False   largest number that shows 999
#   times 2                 mask False   largest number that shows 1998
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install 'sunpy[map]==8.0.1' astropy==8.0.2 reproject==0.21.0 scipy==1.18.1 numpy==2.5.5
cd "$folder"
SUNPY_CONFIGDIR=$folder venv/bin/python -I -W ignore - <<'PYTHON'
import astropy.units as u
import numpy as np
import sunpy
import sunpy.map
from astropy.coordinates import SkyCoord
from sunpy.coordinates import frames

sunpy.log.setLevel("ERROR")


def make_map(pixels):
    here = SkyCoord(0 * u.arcsec, 0 * u.arcsec, obstime="2020-01-01", observer="earth", frame=frames.Helioprojective)
    header = sunpy.map.make_fitswcs_header(pixels, here, scale=[1, 1] * u.arcsec / u.pix)
    return sunpy.map.Map(np.ma.getdata(pixels), header, mask=np.ma.getmaskarray(pixels))


def compare(name, function, pixels, found, true):
    size = [pixels.shape[1], pixels.shape[0]] * u.pix
    given = make_map(pixels)
    if not np.ma.isMaskedArray(pixels):
        given = sunpy.map.Map(given.data, given.meta)
    mine = given.superpixel(size, func=function).data.item()
    block = " / ".join(" ".join(f"{pixel:g}" if pixel is not np.ma.masked else "--" for pixel in row) for row in pixels)
    print(f"{name:23} {block:23} superpixel {mine:<7.5} NumPy {function(pixels):.5}")
    assert np.isclose(mine, found) and np.isclose(function(pixels), true)


halves = np.array([[0.0, 0], [10, 10]])
compare("std", np.std, halves, 0, 5)
compare("var", np.var, halves, 0, 25)
compare("std, turned", np.std, np.rot90(halves, -1), 0, 5)
compare("median", np.median, np.array([[0.0, 9, 9], [0, 9, 9], [0, 0, 0]]), 9, 0)
compare("nanmean", np.nanmean, np.array([[np.nan, 1], [4, 5]]), 2.75, 10 / 3)
masked = np.ma.array([[999.0, 1], [4, 5]], mask=[[True, False], [False, False]])
compare("mean, masked", np.mean, masked, 2.75, 10 / 3)
compare("max", np.max, halves, 10, 10)

given = make_map(masked)
for name, made, largest in (
    ("submap", given.submap([0, 0] * u.pix, top_right=[1, 1] * u.pix), 5),
    ("resample", given.resample([2, 2] * u.pix), 999),
    ("rotate", given.rotate(90 * u.deg), 999),
    ("shift_reference_coord", given.shift_reference_coord(1 * u.arcsec, 1 * u.arcsec), 999),
    ("times 2", given * 2, 1998),
):
    shown = np.ma.array(made.data, mask=made.mask if made.mask is not None else False).max()
    print(f"{name:23} mask {made.mask is not None!s:7} largest number that shows {shown:.0f}")
    assert (made.mask is not None) == (name == "submap") and np.isclose(shown, largest)
PYTHON
