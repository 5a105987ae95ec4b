#!/usr/bin/env bash
# zarrita.js ignores where a shard has its index, and transpositions around the shard.
#
# Versions: zarrita 0.7.5, @zarrita/storage 0.2.0 (npm; seen with Node.js 20); zarr 3.1.6,
# numcodecs 0.16.5, tensorstore 0.1.86, zarrs 0.2.3, numpy 2.4.6.
# Behaviour: the codec "sharding_indexed" of Zarr v3 may store its index at the start of the file
# ("index_location"). zarrita.js takes the last bytes of the file for the index in any case, and does not
# compare the checksum of the index, which would tell. Here these bytes are -1, the mark of a
# chunk that was never written, so the whole array reads as the fill value. In front of
# "sharding_indexed" it skips a transposition: rows and columns are swapped.
# zarr-python, TensorStore and zarrs agree. Other data than these -1 make zarrita.js stop with errors.
# Expected before the run: zarrita.js reads all three, or refuses them by name.
# Output seen:
#   index at the end    right
#   index at the start  wrong: 0,0,0,0,0,0,0,0, ...
#   transposed shard    wrong: 0,8,16,24,-1,-1,-1,-1, ...
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

import numpy as np
import tensorstore
import zarr
import zarrs  # noqa: F401 - registers its pipeline

values = np.arange(64, dtype="i4").reshape(8, 8)
values[4:] = -1
numbers = {"name": "bytes", "configuration": {"endian": "little"}}
turn = {"name": "transpose", "configuration": {"order": [1, 0]}}


def shard(place):
    index = {"index_codecs": [numbers, {"name": "crc32c"}], "index_location": place}
    chunks = {"chunk_shape": [4, 4], "codecs": [numbers]}
    return {"name": "sharding_indexed", "configuration": chunks | index}


for name, codecs in {
    "index at the end": [shard("end")],
    "index at the start": [shard("start")],
    "transposed shard": [turn, shard("end")],
}.items():
    metadata = {
        "shape": [8, 8],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": codecs,
    }
    path = f"{os.getcwd()}/{name}/"
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
    tensorstore.open(spec | {"metadata": metadata}, create=True).result().write(values).result()
    assert (tensorstore.open(spec).result().read().result() == values).all()
    assert (zarr.open_array(path, mode="r")[...] == values).all()
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        assert (zarr.open_array(path, mode="r")[...] == values).all()
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

const values = Array.from({ length: 64 }, (_, i) => (i < 32 ? i : -1));
for (const [name, expected] of [
  ["index at the end", values],
  ["index at the start", values.map(() => 0)],
  ["transposed shard", values.map((_, i) => values[(i % 8) * 8 + Math.floor(i / 8)])],
]) {
  const store = new FileSystemStore(`${process.cwd()}/${name}`);
  const array = await zarr.open(zarr.root(store), { kind: "array" });
  const { data, shape, stride } = await zarr.get(array);
  assert.deepEqual([shape, stride], [[8, 8], [8, 1]]);
  const found = Array.from(data);
  const shown = expected === values ? "right" : `wrong: ${found.slice(0, 8)}, ...`;
  console.log(`${name.padEnd(18)}  ${shown}`);
  assert.deepEqual(found, expected);
}
JAVASCRIPT
node read.mjs
