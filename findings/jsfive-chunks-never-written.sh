#!/usr/bin/env bash
# jsfive gives `undefined` for elements of HDF5 datasets that were never written.
#
# Versions: jsfive 0.4.2, h5wasm 0.10.3 (npm; seen with Node.js 20); h5py 3.16.0, numpy 2.4.6.
# Behaviour: chunks that were never written read as the fill value of the dataset in HDF5, which
# h5wasm uses. jsfive leaves holes in the array that it returns: an Int32Array made of it
# holds 0 there. The length is right and nothing is reported.
# Expected before the run: 0 in place of the fill value.
# Output seen:
#   h5wasm [0,1,2,3,7,7,7,7]
#   jsfive [0,1,2,3,undefined,undefined,undefined,undefined]
#   jsfive as Int32Array [0,1,2,3,0,0,0,0]
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install h5py==3.16.0 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit jsfive@0.4.2 h5wasm@0.10.3 >/dev/null
venv/bin/python -I - <<'PYTHON'
import h5py

with h5py.File("part.h5", "w") as file:
    dataset = file.create_dataset("d", shape=(8,), dtype="i4", chunks=(4,), fillvalue=7)
    dataset[:4] = range(4)
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import h5wasm from "h5wasm/node";
import * as jsfive from "jsfive";

const show = (values) => `[${values.map(String).join(",")}]`;
await h5wasm.ready;
const right = Array.from(new h5wasm.File("part.h5", "r").get("d").value);
console.log(`h5wasm ${show(right)}`);
assert.deepEqual(right, [0, 1, 2, 3, 7, 7, 7, 7]);
const bytes = new Uint8Array(fs.readFileSync("part.h5")).buffer;
const found = Array.from(new jsfive.File(bytes, "part.h5").get("d").value);
console.log(`jsfive ${show(found)}`);
assert.deepEqual(found, [0, 1, 2, 3, undefined, undefined, undefined, undefined]);
const typed = Array.from(Int32Array.from(found));
console.log(`jsfive as Int32Array ${show(typed)}`);
assert.deepEqual(typed, [0, 1, 2, 3, 0, 0, 0, 0]);
JAVASCRIPT
node read.mjs
