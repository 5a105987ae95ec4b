#!/usr/bin/env bash
# fiff, which shows TIFF files as Zarr, shows the red channel of a colour image as the whole image.
#
# Versions: @fideus-labs/fiff 0.7.0, geotiff 3.0.5, zarrita 0.7.5 (npm; seen with Node.js 20);
# tifffile 2026.3.3, numpy 2.4.6.
# Behaviour: an RGB file without OME-XML becomes an array of two axes, y and x. It has the red
# samples; green and blue are nowhere in the hierarchy, and nothing says that they are left out. The
# layout of the samples makes no difference. geotiff.js, which fiff reads with, has all three.
# Expected before the run: an axis of three channels, or an error.
# Output seen:
#   planes    geotiff.js  fiff
#   contig    10, 20, 30  10 in 4 x 6, axes y, x
#   separate  10, 20, 30  10 in 4 x 6, axes y, x
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.3.3 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit geotiff@3.0.5 @fideus-labs/fiff@0.7.0 zarrita@0.7.5 \
    >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import tifffile

pixels = np.broadcast_to(np.array([10, 20, 30], "u1"), (4, 6, 3))
tifffile.imwrite("contig.tif", pixels, photometric="rgb")
planes = np.moveaxis(pixels, 2, 0)
tifffile.imwrite("separate.tif", planes, photometric="rgb", planarconfig="separate")
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { TiffStore } from "@fideus-labs/fiff";
import { fromArrayBuffer } from "geotiff";
import * as zarr from "zarrita";

console.log("planes    geotiff.js  fiff");
for (const name of ["contig", "separate"]) {
  const bytes = new Uint8Array(fs.readFileSync(`${name}.tif`)).buffer;
  const rasters = await (await (await fromArrayBuffer(bytes)).getImage()).readRasters();
  const samples = Array.from(rasters, (plane) => plane[0]);
  const group = await zarr.open(await TiffStore.fromArrayBuffer(bytes), { kind: "group" });
  const { axes, datasets } = group.attrs.ome.multiscales[0];
  const names = axes.map((axis) => axis.name);
  const { data, shape } = await zarr.get(await zarr.open(group.resolve("0"), { kind: "array" }));
  const found = `${data[0]} in ${shape.join(" x ")}, axes ${names.join(", ")}`;
  console.log(`${name.padEnd(8)}  ${samples.join(", ")}  ${found}`);
  assert.deepEqual(samples, [10, 20, 30]);
  assert.equal(datasets.length, 1);
  assert.deepEqual([shape, names], [[4, 6], ["y", "x"]]);
  assert.ok(data.every((value) => value === 10));
}
JAVASCRIPT
node read.mjs
