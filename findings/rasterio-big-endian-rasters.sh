#!/usr/bin/env bash
# rasterio and rioxarray reproject and merge big-endian heights to others: 200 m becomes -14336 m.
#
# Versions: rasterio 1.5.2 with its GDAL 3.12.2, rioxarray 0.23.0, xarray 2026.9.0, numpy 2.5.5.
# Behaviour: `reproject`, `merge_arrays` and the `shapes` of polygons read the elements of a big-endian array as if they were
# little-endian; `fillnodata` fills gaps with such numbers. Arrays of '>i2' come from `numpy.fromfile` of SRTM heights, '>f4'
# from astropy and from memory maps. `sieve` and `clip` are right. `to_raster` refuses the type. Nothing is reported.
# Expected before the run: 200, 201, 202 for each type, as for the little-endian ones.
# Output seen (a raster onto itself; `fillnodata` is to fill in the second number from its neighbours 200, 202 and 207):
#   <i2  reproject 200 201 202  fillnodata 200 204 202
#   >i2  reproject -14336 -14080 -13824  fillnodata 200 -2869 202
#   >i4  reproject -939524096 -922746880 -905969664  fillnodata 200 -1071188789 202
#   >f4  reproject 2.592262029154479e-41 2.6281352698411944e-41 2.6640085105279097e-41  fillnodata 200.0 1.2159347534179688e-05 202.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterio==1.5.2 rioxarray==0.23.0 xarray==2026.9.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import numpy as np
import rasterio
import rioxarray  # noqa: F401
import xarray
from rasterio import features, fill
from rioxarray.merge import merge_arrays

assert rasterio.__gdal_version__ == "3.12.2"
heights = np.arange(200, 236).reshape(6, 6)
middles = {"y": np.arange(5.5, 0, -1), "x": np.arange(0.5, 6)}
for dtype in ("<i2", ">i2", ">i4", ">f4"):
    raster = xarray.DataArray(heights.astype(dtype), dims=("y", "x"), coords=middles).rio.write_crs(32633)
    # The same elements, whose bytes are taken in the order of this machine.
    misread = raster.values.view(np.dtype(dtype).newbyteorder("<"))[0, :3].tolist()
    found = {
        "reproject": raster.rio.reproject(32633, resolution=1).values[0, :3].tolist(),
        "merge": merge_arrays([raster, raster.assign_coords(x=raster.x + 6)]).values[0, :3].tolist(),
        "shapes": [value for _, value in features.shapes(raster.values[:1, :3])],
    }
    filled = fill.fillnodata(raster.values.copy(), mask=heights != 201)[0, :3].tolist()
    print(f"{dtype}  reproject", *found["reproject"], " fillnodata", *filled)
    for function, values in found.items():
        np.testing.assert_equal((function, values), (function, misread))
    assert (filled[0], filled[2]) == (200, 202)
    assert (200 < filled[1] < 210) == (dtype == "<i2")
    if dtype != "<i2":
        assert raster.rio.clip_box(0, 0, 6, 6).values[0, :3].tolist() == [200, 201, 202]
PYTHON
