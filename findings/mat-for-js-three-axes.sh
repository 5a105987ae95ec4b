#!/usr/bin/env bash
# mat-for-js mixes up MATLAB arrays of three axes: of 0 to 7 it shows 2 and 6 twice, and 3 and 7 never.
#
# Versions: mat-for-js 1.1.0 (npm; seen with Node.js 20), scipy 1.18.1, numpy 2.5.5.
# Behaviour: MAT files store arrays column by column. To find an element, mat-for-js multiplies each index with the length
# of the axis before it, not with the product of all lengths before it. That is right for matrices, and for arrays whose
# first axis has one element. Of other arrays with three axes or more, such as images over time, it shows
# elements in the place of others, and leaves some out; the shape is right. Cells and texts take the same way. There is no
# error.
# Expected before the run: the array that SciPy wrote.
# Output seen:
#   2 x 3      written [[0,1,2],[3,4,5]]               read [[0,1,2],[3,4,5]]
#   1 x 2 x 3  written [[[0,1,2],[3,4,5]]]             read [[[0,1,2],[3,4,5]]]
#   2 x 2 x 2  written [[[0,1],[2,3]],[[4,5],[6,7]]]   read [[[0,2],[2,1]],[[4,6],[6,5]]]
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install scipy==1.18.1 numpy==2.5.5
cd "$folder"
npm install --silent --no-fund --no-audit mat-for-js@1.1.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import math

import numpy as np
import scipy.io

for shape in ((2, 3), (1, 2, 3), (2, 2, 2)):
    array = np.arange(float(math.prod(shape))).reshape(shape)
    name = " x ".join(map(str, shape))
    scipy.io.savemat(f"{name}.mat", {"a": array})
    assert (scipy.io.loadmat(f"{name}.mat")["a"] == array).all()
    with open(f"{name}.json", "w") as file:
        file.write(str(array.astype(int).tolist()))
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { read } from "mat-for-js";

for (const [name, seen] of [
  ["2 x 3", "[[0,1,2],[3,4,5]]"],
  ["1 x 2 x 3", "[[[0,1,2],[3,4,5]]]"],
  ["2 x 2 x 2", "[[[0,2],[2,1]],[[4,6],[6,5]]]"],
]) {
  const written = JSON.stringify(JSON.parse(fs.readFileSync(`${name}.json`)));
  const found = JSON.stringify(read(new Uint8Array(fs.readFileSync(`${name}.mat`)).buffer).data.a);
  console.log(`${name.padEnd(10)} written ${written.padEnd(29)}   read ${found}`);
  assert.equal(found, seen);
}
JAVASCRIPT
node read.mjs
