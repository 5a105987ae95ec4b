#!/usr/bin/env bash
# The tiff package of image-js reads tiled colour images to pixels of which two thirds are 0.
#
# Versions: tiff 7.1.3 (npm; seen with Node.js 20), tifffile 2026.11.8, imagecodecs 2026.10.10, numpy 2.5.5.
# Behaviour: of a tiled image of three colours, decode returns an array of the right length that holds a third of each
# tile's numbers, at every third place, and 0 between them. In tiled grey images with a predictor (zlib or LZW) half of
# the pixels are wrong. Signed integers come without their sign: -100 of int8 is 156, in tiles and in strips. Unsigned
# images in strips are right, with and without a predictor. There is no error.
# Expected before the run: the pixels, or an error for what the package does not know.
# Output seen (the first numbers, and how many of all are right):
#   grey, strips            0 1 2 3: 512 of 512 right
#   grey, tiles             0 1 2 3: 512 of 512 right
#   grey, predictor, strips 0 1 2 3: 512 of 512 right
#   grey, predictor, tiles  0 1 2 3: 256 of 512 right
#   colours, strips         0 1 2 3: 1536 of 1536 right
#   colours, tiles          0 0 0 1: 13 of 1536 right
#   signed, strips          156 157 158 159: 212 of 512 right
#   signed, tiles           156 157 158 159: 212 of 512 right
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.11.8 imagecodecs==2026.10.10 \
    numpy==2.5.5
cd "$folder"
npm install --silent --no-fund --no-audit tiff@7.1.3 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import json

import numpy as np
import tifffile

grey = np.arange(16 * 32).reshape(16, 32) % 200
colours = np.arange(16 * 32 * 3).reshape(16, 32, 3) % 200
cases = []
for name, array, kind in (
    ("grey", grey.astype("uint8"), {}),
    ("grey, predictor", grey.astype("uint8"), {"compression": "zlib", "predictor": True}),
    ("colours", colours.astype("uint8"), {"photometric": "rgb"}),
    ("signed", (grey - 100).astype("int8"), {}),
):
    for tile in (None, (16, 16)):
        file = f"{len(cases)}.tif"
        tifffile.imwrite(file, array, tile=tile, **kind)
        assert np.array_equal(tifffile.imread(file), array)
        cases.append([f"{name}, {'tiles' if tile else 'strips'}", file, array.ravel().tolist()])
with open("cases.json", "w") as file:
    json.dump(cases, file)
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { decode } from "tiff";

const right = {};
for (const [name, file, pixels] of JSON.parse(fs.readFileSync("cases.json"))) {
  const found = Array.from(decode(fs.readFileSync(file))[0].data);
  assert.equal(found.length, pixels.length);
  right[name] = found.filter((pixel, index) => pixel === pixels[index]).length;
  console.log(`${name.padEnd(23)} ${found.slice(0, 4).join(" ")}: ${right[name]} of ${pixels.length} right`);
}
assert.deepEqual(right, {
  "grey, strips": 512,
  "grey, tiles": 512,
  "grey, predictor, strips": 512,
  "grey, predictor, tiles": 256,
  "colours, strips": 1536,
  "colours, tiles": 13,
  "signed, strips": 212,
  "signed, tiles": 212,
});
JAVASCRIPT
node read.mjs
