#!/usr/bin/env bash
# zarr-js reads arrays of order F with rows and columns mixed, and differences in place of the numbers.
#
# Versions: zarr-js 3.3.0 (npm; seen with Node.js 20), zarr 3.1.6, numcodecs 0.16.5, numpy 2.4.6.
# Behaviour: zarr-js, which the maps of CarbonPlan use, looks at four entries of the metadata of Zarr v2: shape,
# chunks, dtype and compressor. It does not look at "order" or at "filters", so elements of Fortran's order are put
# down in C's, chunk by chunk, and the delta filter's differences and the integers of a scale filter are shown as the numbers.
# A type or a compressor that it does not know is an error. Nothing warns.
# Expected before the run: it reads all four, or refuses the order and the filters by name.
# Output seen (the first rows of 0 to 34 in rows of seven, in chunks of 2 x 3):
#   as written          0 1 2 3 4 5 6 / 7 8 9 10 11 12 13
#   order C             0 1 2 3 4 5 6 / 7 8 9 10 11 12 13
#   order F             0 7 1 3 10 4 6 / 8 2 9 11 5 12 0
#   delta               0 1 1 3 1 1 6 / 5 1 1 5 1 1 13
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 numcodecs==0.16.5 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit zarr-js@3.3.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import numcodecs
import numpy as np
import zarr

numbers = np.arange(35, dtype="i4").reshape(5, 7)
for name, options in (
    ("order C", {}),
    ("order F", {"order": "F"}),
    ("delta", {"filters": [numcodecs.Delta("i4")]}),
):
    array = zarr.create_array(
        name, shape=(5, 7), chunks=(2, 3), dtype="i4", zarr_format=2, compressors=numcodecs.Zlib(), **options
    )
    array[:] = numbers
    assert (zarr.open_array(name)[:] == numbers).all()
PYTHON
cat > read.cjs <<'JAVASCRIPT'
const assert = require("node:assert");
const fs = require("node:fs");
const zarr = require("zarr-js")(async (path) => fs.readFileSync(path), "v2");

const right = "0 1 2 3 4 5 6 / 7 8 9 10 11 12 13";
const seen = { "order C": right, "order F": "0 7 1 3 10 4 6 / 8 2 9 11 5 12 0", delta: "0 1 1 3 1 1 6 / 5 1 1 5 1 1 13" };
console.log(`as written          ${right}`);
let read = 0;
for (const [name, expected] of Object.entries(seen)) {
  zarr.load(`${process.cwd()}/${name}`, (error, array) => {
    assert.ifError(error);
    const row = (y) => [0, 1, 2, 3, 4, 5, 6].map((x) => array.get(y, x)).join(" ");
    const found = `${row(0)} / ${row(1)}`;
    console.log(`${name.padEnd(20)}${found}`);
    assert.equal(found, expected);
    read += 1;
  });
}
process.on("exit", (status) => status || assert.equal(read, 3));
JAVASCRIPT
node read.cjs
