#!/usr/bin/env bash
# geotiff.js decodes big-endian numbers with a predictor to other numbers.
#
# Versions: geotiff 3.0.5 (npm; seen with Node.js 20); tifffile 2026.3.3, imagecodecs 2026.3.6,
# numpy 2.4.6, rasterio 1.4.4 (GDAL 3.10.3).
# Behaviour: predictor 3 splits floats into planes of bytes, most significant first, whatever the
# byte order of the file. geotiff.js then reads the joined bytes in the byte order of the file, so
# that a big-endian float32 file gives numbers such as 4.6e-41 without an error. Integers with
# predictor 2 are added up in the byte order of the machine: rising ones below 256 are right, and
# falling ones are not. The same data in a little-endian file, and big-endian floats without
# a predictor, are right. GDAL reads all five.
# Expected before the run: geotiff.js reads all five, or refuses predictors of big-endian files.
# Output seen:
#   GDAL reads all five files
#   little-floats.tif  right
#   big-floats.tif     right
#   big-integers.tif   right
#   big-falling.tif    wrong: 23, 65302, 65046, ...
#   big-predictor.tif  wrong: 0, -1.2126478207002966e-12, -1.2090952154417134e-12, ...
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.3.3 imagecodecs==2026.3.6 numpy==2.4.6 \
    rasterio==1.4.4
cd "$folder"
npm install --silent --no-fund --no-audit geotiff@3.0.5 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import rasterio
import tifffile

floats = (np.arange(24).reshape(4, 6) / 3).astype("f4")
integers = np.arange(24, dtype="u2").reshape(4, 6)
packed = {"compression": "zlib", "predictor": True}
files = {
    "little-floats.tif": (floats, {"byteorder": "<", **packed}),
    "big-floats.tif": (floats, {"byteorder": ">"}),
    "big-integers.tif": (integers, {"byteorder": ">", **packed}),
    "big-falling.tif": (integers[::-1, ::-1], {"byteorder": ">", **packed}),
    "big-predictor.tif": (floats, {"byteorder": ">", **packed}),
}
for name, (values, options) in files.items():
    tifffile.imwrite(name, values, **options)
    with rasterio.open(name) as file:
        assert (file.read(1) == values).all(), name
print("GDAL reads all five files")
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { fromArrayBuffer } from "geotiff";

const floats = Array.from({ length: 24 }, (_, i) => Math.fround(i / 3));
const integers = Array.from({ length: 24 }, (_, i) => i);
const falling = integers.toReversed();
for (const [name, right, expected] of [
  ["little-floats", floats, true],
  ["big-floats", floats, true],
  ["big-integers", integers, true],
  ["big-falling", falling, false],
  ["big-predictor", floats, false],
]) {
  const bytes = new Uint8Array(fs.readFileSync(`${name}.tif`)).buffer;
  const image = await (await fromArrayBuffer(bytes)).getImage();
  const found = Array.from((await image.readRasters())[0]);
  const same = found.every((value, i) => value === right[i]);
  const shown = same ? "right" : `wrong: ${found.slice(0, 3).join(", ")}, ...`;
  console.log(`${`${name}.tif`.padEnd(18)} ${shown}`);
  assert.equal(same, expected);
}
JAVASCRIPT
node read.mjs
