#!/usr/bin/env bash
# geotiff.js returns zeros for any box of an image whose rows go from south to north.
#
# Versions: geotiff 3.0.5 (npm; seen with Node.js 20); rasterio 1.4.4 (GDAL 3.10.3), async-geotiff
# 0.5.1, obstore 0.12.1, numpy 2.4.6.
# Behaviour: models and climate data often have rows from south to north; GeoTIFF states it with a matrix
# (ModelTransformation). geotiff.js knows the bounding box of such a file and returns zeros, not the fill
# value, for each box inside of it, even for the box itself. The second fault: where a file says that its
# positions are those of points (PixelIsPoint), geotiff.js takes the centre of the first pixel for its corner,
# so that the image lies half a pixel to the south-east of where GDAL and async-geotiff have it.
# One would expect: the pixels of the box, in whatever order of rows, or an error.
# Output seen:
#   north up: bounding box [100,34,124,50], first pixels of its box 1,2,3; all of 48 x 64: right
#   south up: bounding box [100,34,124,50], first pixels of its box 0,0,0; all of 48 x 64: 0
#   points:   bounding box [100.25,33.875,124.25,49.875], first pixels of its box 1,2,3; all of 48 x 64: right
#   GDAL, async-geotiff: [100.0, 34.0, 124.0, 50.0] in the three
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterio==1.4.4 async-geotiff==0.5.1 obstore==0.12.1 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit geotiff@3.0.5 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON' > others.txt
import asyncio
import os

import numpy as np
import rasterio
from async_geotiff import GeoTIFF
from obstore.store import LocalStore

values = np.arange(1, 64 * 48 + 1, dtype="f4").reshape(64, 48)
north = rasterio.Affine(0.5, 0, 100, 0, -0.25, 50)
south = rasterio.Affine(0.5, 0, 100, 0, 0.25, 34)
kinds = {"north": (north, "Area"), "south": (south, "Area"), "point": (north, "Point")}
for name, (transform, registration) in kinds.items():
    kind = {"driver": "GTiff", "dtype": "float32", "count": 1, "height": 64, "width": 48}
    tiles = {"tiled": True, "blockxsize": 16, "blockysize": 16}
    with rasterio.open(
        f"{name}.tif", "w", crs="EPSG:4326", transform=transform, **kind, **tiles
    ) as file:
        file.write(values, 1)
        file.update_tags(AREA_OR_POINT=registration)


async def transform(name):
    return (await GeoTIFF.open(f"{name}.tif", store=LocalStore(os.getcwd()))).transform


for name in kinds:
    with rasterio.open(f"{name}.tif") as file:
        assert (file.read(1) == values).all()
        left, bottom, right, top = file.bounds
        assert tuple(asyncio.run(transform(name))[:6]) == tuple(file.transform[:6])
        assert [left, min(bottom, top), right, max(bottom, top)] == [100, 34, 124, 50]
print("GDAL, async-geotiff: [100.0, 34.0, 124.0, 50.0] in the three")
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { fromFile } from "geotiff";

const seen = {
  north: ["north up:", [100, 34, 124, 50], "right"],
  south: ["south up:", [100, 34, 124, 50], "0"],
  point: ["points:  ", [100.25, 33.875, 124.25, 49.875], "right"],
};
for (const [name, [title, box, expected]] of Object.entries(seen)) {
  const file = await fromFile(`${name}.tif`);
  const bbox = (await file.getImage()).getBoundingBox();
  const [pixels] = await file.readRasters({ bbox, width: 48, height: 64 });
  const all = pixels.every((value) => value === 0) ? "0"
    : pixels.every((value, index) => value === index + 1) ? "right" : "wrong";
  console.log(
    title, "bounding box", JSON.stringify(bbox) + ", first pixels of its box",
    Array.from(pixels.slice(0, 3)).join() + "; all of 48 x 64:", all,
  );
  assert.deepEqual(bbox, box);
  assert.equal(all, expected);
}
JAVASCRIPT
node read.mjs
cat others.txt
