#!/usr/bin/env bash
# zarrita.js reads two valid chains of filters to other numbers, without an error.
#
# Versions: zarrita 0.7.5, @zarrita/storage 0.2.0 (npm; seen with Node.js 20); zarr 3.1.6,
# numcodecs 0.16.5, tensorstore 0.1.86, zarrs 0.2.3, numpy 2.4.6.
# Behaviour: numcodecs' delta filter may store differences in a smaller type ("astype"), as it is
# meant to. zarrita.js reads the stored bytes as if they had the type of the array, though there are
# half as many. The elements of a Zarr v3 array whose codecs transpose twice come back in another
# order, while TensorStore and zarrs agree with zarr-python.
# A single transposition, and delta without "astype", are right.
# Expected before the run: zarrita.js reads all four, or refuses "astype" by name.
# Output seen:
#   one transposition   right
#   two transpositions  wrong: 0,8,16,1,9,17, ...
#   delta               right
#   delta, astype       wrong: 65536,131073,196610,262147,327684,393221, ...
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 numcodecs==0.16.5 tensorstore==0.1.86 \
    zarrs==0.2.3 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit zarrita@0.7.5 @zarrita/storage@0.2.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import numcodecs
import numpy as np
import tensorstore
import zarr
import zarrs  # noqa: F401 - registers its pipeline
from zarr.codecs import TransposeCodec

values = np.arange(24, dtype="i4").reshape(2, 3, 4)
turn = TransposeCodec(order=(1, 2, 0))
delta = {"zarr_format": 2, "compressors": None}
for name, options in {
    "one transposition": {"filters": [turn]},
    "two transpositions": {"filters": [turn, turn]},
    "delta": {"filters": [numcodecs.Delta("i4")], **delta},
    "delta, astype": {"filters": [numcodecs.Delta("i4", astype="i2")], **delta},
}.items():
    array = zarr.create_array(name, shape=(2, 3, 4), chunks=(2, 3, 4), dtype="i4", **options)
    array[...] = values
    assert (zarr.open_array(name, mode="r")[...] == values).all()
path = f"{os.getcwd()}/two transpositions/"
spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
assert (tensorstore.open(spec).result().read().result() == values).all()
with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
    assert (zarr.open_array(path, mode="r")[...] == values).all()
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

for (const [name, right] of [
  ["one transposition", true],
  ["two transpositions", false],
  ["delta", true],
  ["delta, astype", false],
]) {
  const store = new FileSystemStore(`${process.cwd()}/${name}`);
  const array = await zarr.open(zarr.root(store), { kind: "array" });
  const { data, shape, stride } = await zarr.get(array);
  const found = [];
  for (let z = 0; z < shape[0]; z++)
    for (let y = 0; y < shape[1]; y++)
      for (let x = 0; x < shape[2]; x++)
        found.push(data[z * stride[0] + y * stride[1] + x * stride[2]]);
  const same = found.every((value, i) => value === i);
  console.log(`${name.padEnd(19)} ${same ? "right" : `wrong: ${found.slice(0, 6)}, ...`}`);
  assert.equal(same, right);
}
JAVASCRIPT
node read.mjs
