#!/usr/bin/env bash
# zarrita.js shows the fill value 2**64 - 1, the usual mark for missing identifiers, as 0.
#
# Versions: zarrita 0.7.5, @zarrita/storage and Node.js as npm and the system bring them (seen with
# Node.js 20); zarr 3.1.6, numpy 2.4.6 to write.
# Behaviour: the metadata document holds the fill value as a JSON number. JavaScript reads numbers
# as doubles: 18446744073709551615 becomes 2**64, which wraps to 0 in a BigUint64Array, and an
# int64 of 2**53 + 1 becomes 2**53. Stored chunks are right, and no error or warning says so.
# Expected before the run: both are rounded to the nearest double (the first as 2**64 - 1, which is
# the largest that fits).
# Output seen:
#   uint64 18446744073709551615 reads as 0, beside a stored 18446744073709551615
#   int64 9007199254740993 reads as 9007199254740992, beside a stored 9007199254740993
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
npm install --silent --no-fund --no-audit zarrita@0.7.5 @zarrita/storage@0.2.0 >/dev/null
venv/bin/python -I - <<'PYTHON'
import zarr

for dtype, fill in (("uint64", 2**64 - 1), ("int64", 2**53 + 1)):
    array = zarr.create_array(
        dtype, shape=(2,), chunks=(1,), dtype=dtype, fill_value=fill, config={"write_empty_chunks": True}
    )
    array[:1] = fill
    assert array[:].tolist() == [fill, fill]
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

const expected = { uint64: [2n ** 64n - 1n, 0n], int64: [2n ** 53n + 1n, 2n ** 53n] };
for (const [name, [fill, seen]] of Object.entries(expected)) {
  const store = new FileSystemStore(`${process.cwd()}/${name}`);
  const array = await zarr.open(zarr.root(store), { kind: "array" });
  const [stored, missing] = (await zarr.get(array)).data;
  console.log(`${name} ${fill} reads as ${missing}, beside a stored ${stored}`);
  assert.equal(stored, fill);
  assert.equal(missing, seen);
}
JAVASCRIPT
node read.mjs
