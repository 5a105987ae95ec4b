#!/usr/bin/env bash
# geotiff.js writes the heights 0, 1, 2, 3, 8848 and -430 as 1, 515, -28590, 0, 0 and 0, if they are an Int16Array.
#
# Versions: geotiff 3.0.5 (npm; seen with Node.js 20), tifffile 2026.11.8, numpy 2.5.5.
# Behaviour: `writeArrayBuffer` takes the type of the pixels from the array. It has no entry for signed integers of 16 and 32
# bits: the header says int16 or int32, the lowest byte of each number is stored, and zeros fill the rest of the strip. In an
# array without a type, flat or nested, each number becomes one byte as well, so 0.5 is 0 and 300 is 44; the request that
# gave it other types says that such arrays are written as float64 (https://github.com/geotiffjs/geotiff.js/pull/463), and
# reserves the place for them. The other types are right. Nothing warns.
# Expected before the run: the numbers of the array in each type, and float64 for an array without one.
# Output seen:
#   Int8Array      int8     0 1 2 3 88 -43
#   Int16Array     int16    1 515 -28590 0 0 0
#   Int32Array     int32    66051 -1873674240 0 0 0 0
#   Uint16Array    uint16   0 1 2 3 8848 430
#   Float32Array   float32  0.0 1.0 2.0 3.0 8848.0 -430.5
#   Array          uint8    0 1 2 3 144 82
#   nested Array   uint8    0 1 2 3 144 82
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.11.8 numpy==2.5.5
cd "$folder"
npm install --silent --no-fund --no-audit geotiff@3.0.5 >/dev/null
cat > write.mjs <<'JAVASCRIPT'
import fs from "node:fs";
import { writeArrayBuffer } from "geotiff";

const heights = [0, 1, 2, 3, 8848, -430.5];
const arrays = {
  Int8Array: Int8Array.from([0, 1, 2, 3, 88, -43]),
  Int16Array: Int16Array.from(heights),
  Int32Array: Int32Array.from(heights),
  Uint16Array: Uint16Array.from(heights.map(Math.abs)),
  Float32Array: Float32Array.from(heights),
  Array: heights,
  "nested Array": [[heights.slice(0, 3), heights.slice(3)]],
};
for (const [name, pixels] of Object.entries(arrays)) {
  const file = await writeArrayBuffer(pixels, name.startsWith("nested") ? {} : { width: 3, height: 2 });
  fs.writeFileSync(`${name}.tif`, Buffer.from(file));
}
JAVASCRIPT
node write.mjs
venv/bin/python -I -W ignore - <<'PYTHON'
import tifffile

for name, dtype, seen in (
    ("Int8Array", "int8", "0 1 2 3 88 -43"),
    ("Int16Array", "int16", "1 515 -28590 0 0 0"),
    ("Int32Array", "int32", "66051 -1873674240 0 0 0 0"),
    ("Uint16Array", "uint16", "0 1 2 3 8848 430"),
    ("Float32Array", "float32", "0.0 1.0 2.0 3.0 8848.0 -430.5"),
    ("Array", "uint8", "0 1 2 3 144 82"),
    ("nested Array", "uint8", "0 1 2 3 144 82"),
):
    pixels = tifffile.imread(f"{name}.tif")
    found = " ".join(map(str, pixels.ravel().tolist()))
    print(f"{name:14} {pixels.dtype!s:8} {found}")
    assert pixels.shape == (2, 3) and pixels.dtype == dtype and found == seen
PYTHON
