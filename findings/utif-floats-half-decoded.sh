#!/usr/bin/env bash
# UTIF.js returns floats of TIFF files half decoded: 0, 1, 2, 3 are 1.14e-40, 0, 1.4e-45, 0.
#
# Versions: utif2 4.1.0 (npm; seen with Node.js 20), tifffile 2026.11.8, imagecodecs 2026.10.10, numpy 2.5.5.
# Behaviour: `decodeImage` undoes the compression and the predictor of a TIFF, and puts the bytes of 16-bit samples into
# the order of the processor. It leaves 32-bit samples of big-endian files as they are, and does nothing about predictor 3,
# which GIS programs write for floats: what is in `data` is then the mixed bytes of differences. Predictor 2 of
# integers, and floats without a predictor, are right. There is no error.
# Expected before the run: the same pixels in all four files, or an error for predictor 3.
# Output seen (the first four of 0, 1, 2, ...):
#   uint16, big-endian                 0 1 2 3
#   float32                            0 1 2 3
#   float32, predictor 3               1.1443563779062186e-40 0 1.401298464324817e-45 0
#   int32, big-endian                  0 16777216 33554432 50331648
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.11.8 imagecodecs==2026.10.10 numpy==2.5.5
cd "$folder"
npm install --silent --no-fund --no-audit utif2@4.1.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import tifffile

pixels = np.arange(64 * 64).reshape(64, 64)
for name, dtype, options in (
    ("uint16, big-endian", "u2", {"byteorder": ">"}),
    ("float32", "f4", {"compression": "lzw"}),
    ("float32, predictor 3", "f4", {"compression": "lzw", "predictor": 3}),
    ("int32, big-endian", "i4", {"byteorder": ">"}),
):
    tifffile.imwrite(f"{name}.tif", pixels.astype(dtype), photometric="minisblack", **options)
    assert (tifffile.imread(f"{name}.tif") == pixels).all()
PYTHON
cat > read.cjs <<'JAVASCRIPT'
const assert = require("node:assert");
const fs = require("node:fs");
const UTIF = require("utif2");

for (const [name, type, seen] of [
  ["uint16, big-endian", Uint16Array, "0 1 2 3"],
  ["float32", Float32Array, "0 1 2 3"],
  ["float32, predictor 3", Float32Array, "1.1443563779062186e-40 0 1.401298464324817e-45 0"],
  ["int32, big-endian", Int32Array, "0 16777216 33554432 50331648"],
]) {
  const file = new Uint8Array(fs.readFileSync(`${name}.tif`)).buffer;
  const [image] = UTIF.decode(file);
  UTIF.decodeImage(file, image);
  const found = Array.from(new type(image.data.slice(0, 4 * type.BYTES_PER_ELEMENT).buffer)).join(" ");
  console.log(`${name.padEnd(34)} ${found}`);
  assert.equal(found, seen);
}
JAVASCRIPT
node read.cjs
