#!/usr/bin/env bash
# geotiff.js shows zeros in tiles that were never written, if the nodata value is NaN.
#
# Versions: geotiff 3.0.5, @fideus-labs/fiff 0.7.0, zarrita 0.7.5 (npm; seen with Node.js 20);
# rasterio 1.4.4 (GDAL 3.10.3), tifffile 2026.3.3, numpy 2.4.6.
# Behaviour: GDAL leaves tiles out of sparse TIFF files (SPARSE_OK), which then have the nodata value.
# geotiff.js follows that for -9999, and puts 0 in place of NaN. fiff, which shows TIFF files as Zarr,
# takes the pixels from geotiff.js. The option `fillValue`, for the part of a window beyond the
# image, has the same gap: NaN becomes 0. GDAL and tifffile show NaN.
# Expected before the run: all four show the nodata value, as GDAL does.
# Output seen:
#   nodata -9999   GDAL -9999  tifffile -9999  geotiff.js -9999  fiff -9999
#   nodata NaN     GDAL NaN    tifffile NaN    geotiff.js 0      fiff 0
#   fillValue -9999  beyond the image -9999
#   fillValue NaN    beyond the image 0
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install rasterio==1.4.4 tifffile==2026.3.3 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit geotiff@3.0.5 @fideus-labs/fiff@0.7.0 zarrita@0.7.5 \
    >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import tifffile
from rasterio.windows import Window

shape = {"height": 32, "width": 32, "count": 1, "dtype": "float32"}
tiles = {"tiled": True, "blockxsize": 16, "blockysize": 16, "sparse_ok": True}
for name, nodata in {"-9999": -9999.0, "NaN": float("nan")}.items():
    with rasterio.open(f"{name}.tif", "w", driver="GTiff", nodata=nodata, **shape, **tiles) as file:
        file.write(np.full((1, 16, 16), 5, "f4"), window=Window(0, 0, 16, 16))
    with rasterio.open(f"{name}.tif") as file:
        right = file.read(1)
    assert (right[:16, :16] == 5).all()
    np.testing.assert_array_equal(right[16:], np.full((16, 32), nodata, "f4"))
    np.testing.assert_array_equal(tifffile.imread(f"{name}.tif"), right)
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { TiffStore } from "@fideus-labs/fiff";
import { fromArrayBuffer } from "geotiff";
import * as zarr from "zarrita";

const images = {};
for (const [name, nodata, shown] of [["-9999", -9999, -9999], ["NaN", NaN, 0]]) {
  const bytes = new Uint8Array(fs.readFileSync(`${name}.tif`)).buffer;
  const image = await (await fromArrayBuffer(bytes)).getImage();
  assert.ok(Object.is(image.getGDALNoData(), nodata));
  const [pixels] = await image.readRasters();
  const group = await zarr.open(await TiffStore.fromArrayBuffer(bytes), { kind: "group" });
  const { data } = await zarr.get(await zarr.open(group.resolve("0"), { kind: "array" }));
  assert.deepEqual([pixels[0], data[0]], [5, 5]);
  const others = `GDAL ${name.padEnd(5)}  tifffile ${name.padEnd(5)}`;
  const found = `geotiff.js ${String(pixels[1023]).padEnd(5)}  fiff ${data[1023]}`;
  console.log(`nodata ${name.padEnd(6)}  ${others}  ${found}`);
  assert.deepEqual([pixels[1023], data[1023]], [shown, shown]);
  images[name] = image;
}
for (const [fillValue, shown] of [[-9999, -9999], [NaN, 0]]) {
  const [pixels] = await images["NaN"].readRasters({ window: [0, 0, 40, 16], fillValue });
  console.log(`fillValue ${String(fillValue).padEnd(5)}  beyond the image ${pixels[39]}`);
  assert.equal(pixels[39], shown);
}
JAVASCRIPT
node read.mjs
