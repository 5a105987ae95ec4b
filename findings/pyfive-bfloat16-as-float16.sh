#!/usr/bin/env bash
# pyfive and jsfive read bfloat16 data of HDF5 as float16: 1, -2, 3 become 1.875, -2, 2.125.
#
# Versions: pyfive 1.3.0, h5netcdf 1.8.2, h5py 3.16.0, numpy 2.4.6; jsfive 0.4.2, h5wasm 0.10.3
# (npm; seen with Node.js 20).
# Behaviour: HDF5 states where the sign, exponent and mantissa of a float lie. A type of 16 bits with
# eight bits of exponent is bfloat16, which HDF5 2 has among its predefined types. pyfive and jsfive
# look at the size only and take it for NumPy's float16; so does xarray's and h5netcdf's pyfive
# backend. HDF5 itself (h5py) converts it to float32, and h5wasm refuses it.
# One would expect: pyfive refuses the type, as it refuses bit fields and times by name.
# Output seen:
#   h5py      float32 [1.0, -2.0, 3.0, 0.5]
#   pyfive    float16 [1.875, -2.0, 2.125, 1.75]
#   h5netcdf  float16 [1.875, -2.0, 2.125, 1.75]
#   jsfive    [1.875,-2,2.125,1.75]
#   h5wasm    Float16 not supported
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyfive==1.3.0 h5netcdf==1.8.2 h5py==3.16.0 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit jsfive@0.4.2 h5wasm@0.10.3 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import h5netcdf
import h5py
import numpy as np
import pyfive
from h5py import h5d, h5s, h5t

values = np.array([1, -2, 3, 0.5], "f4")
bfloat16 = h5t.IEEE_F32LE.copy()
bfloat16.set_fields(15, 7, 8, 0, 7)
bfloat16.set_precision(16)
bfloat16.set_size(2)
with h5py.File("a.h5", "w") as file:
    space = h5s.create_simple((4,))
    h5d.create(file.id, b"x", bfloat16, space).write(h5s.ALL, h5s.ALL, values)
with h5py.File("a.h5") as file:
    right = file["x"][:]
pure = pyfive.File("a.h5")["x"][:]
with h5netcdf.File("a.h5", "r", backend="pyfive", phony_dims="sort") as file:
    netcdf = np.asarray(file["x"][:])
print("h5py     ", right.dtype, right.tolist())
print("pyfive   ", pure.dtype, pure.tolist())
print("h5netcdf ", netcdf.dtype, netcdf.tolist())
assert (right == values).all()
assert pure.dtype == netcdf.dtype == np.float16
assert pure.tolist() == netcdf.tolist() == [1.875, -2, 2.125, 1.75]
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import h5wasm from "h5wasm/node";
import * as jsfive from "jsfive";

const bytes = new Uint8Array(fs.readFileSync("a.h5")).buffer;
const found = JSON.stringify(Array.from(new jsfive.File(bytes, "a.h5").get("x").value));
console.log("jsfive   ", found);
assert.equal(found, "[1.875,-2,2.125,1.75]");
await h5wasm.ready;
assert.throws(
  () => new h5wasm.File("a.h5", "r").get("x").value,
  (error) => (console.log("h5wasm   ", error.message), /Float16 not supported/.test(error.message)),
);
JAVASCRIPT
node read.mjs
