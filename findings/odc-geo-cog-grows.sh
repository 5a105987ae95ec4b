#!/usr/bin/env bash
# odc-geo writes an image of 513 rows as one of 520, if it is a dask array; the new rows are zeros.
#
# Versions: odc-geo 0.5.3, dask 2026.8.0, rasterio 1.4.4 (GDAL 3.10.3), tifffile 2026.3.3,
# imagecodecs 2026.3.6, xarray 2026.9.0, scipy 1.17.1, numpy 2.4.6.
# Behaviour: save_cog_with_dask pads the image to a multiple of its largest overview, in the file too. If
# the image has no nodata value, nothing tells the zeros there from data; they enter the
# statistics in the file, and the means at the edges of the overviews. Its docstring does
# not name it. to_cog, for arrays in memory, keeps the size.
# Expected before the run: both functions write the size and the pixels of the array.
# Output seen: of 513 x 300 pixels, each 7
#   memory  513 x 300 pixels, 0 zeros
#   dask    520 x 304 pixels, 4180 zeros
#   dask    mean in the file 6.831984, values in its overview [1, 2, 3, 7]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install odc-geo==0.5.3 "dask[array]==2026.8.0" rasterio==1.4.4 \
    tifffile==2026.3.3 imagecodecs==2026.3.6 xarray==2026.9.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import dask.array as da
import numpy as np
import rasterio
from odc.geo.cog import save_cog_with_dask, to_cog
from odc.geo.geobox import GeoBox
from odc.geo.xr import wrap_xr

values = np.full((513, 300), 7, "u1")
place = rasterio.transform.from_origin(500000, 5000000, 10, 10)
geobox = GeoBox(values.shape, place, "EPSG:32631")
options = {"blocksize": 64, "overview_resampling": "average"}
with open("memory.tif", "wb") as file:
    file.write(to_cog(wrap_xr(values, geobox), **options))
lazy = wrap_xr(da.from_array(values, chunks=64), geobox)
save_cog_with_dask(lazy, "dask.tif", **options).compute()
for name, shape, zeros in ("memory", (513, 300), 0), ("dask", (520, 304), 4180):
    with rasterio.open(f"{name}.tif") as file:
        found, mean = file.read(1), file.tags(1).get("STATISTICS_MEAN")
        assert file.nodata is None
    count = (found == 0).sum()
    print(f"{name:7} {found.shape[0]} x {found.shape[1]} pixels, {count} zeros")
    assert found.shape == shape and count == zeros
    assert (found[:513, :300] == 7).all()
with rasterio.open("dask.tif", overview_level=2) as file:
    edges = np.unique(file.read(1)).tolist()
print(f"dask    mean in the file {mean}, values in its overview {edges}")
assert float(mean) < 6.9 and edges == [1, 2, 3, 7]
PYTHON
