#!/usr/bin/env bash
# grib-js shows a GRIB 2 field of 278.5 to 291 as 278.5 everywhere, and moves all values behind a missing one.
#
# Versions: grib-js 1.0.0 (npm; seen with Node.js 20), eccodes 2.50.0 (ecCodes), eccodeslib 2.50.0.33.
# Behaviour: GRIB stores negative scale factors as a sign bit and a magnitude. grib-js reads a binary scale of -8 as a two's
# complement, -32760, so that all differences are multiplied by 0: each field whose values need a fraction is its
# smallest number everywhere. It does not read bitmaps: of a field with missing points it returns the other values in one row,
# so that those behind the first missing point stand beside their place. It reports no error in either case.
# Packing without spatial differences gives `undefined`.
# Expected before the run: the values that ecCodes reads.
# Output seen (the ends of each field):
#   integers        ecCodes 96 values 200 202 208 ... 258 248   grib-js 96 values 200 202 208 ... 258 248
#   fractions       ecCodes 12 values 280 280.5 281 ... 280 280   grib-js 12 values 278.5 278.5 278.5 ... 278.5 278.5
#   missing points  ecCodes 96 values 200 missing 208 ... 258 248   grib-js 95 values 200 208 258 ... 258 248
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install eccodes==2.50.0 eccodeslib==2.50.0.33
cd "$folder"
npm install --silent --no-fund --no-audit grib-js@1.0.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import json

import eccodes

temperatures = [280.0, 280.5, 281.0, 283.2, 279.0, 278.5, 281.0, 285.0, 290.0, 291.0, 280.0, 280.0]
waves = [float(200 + 40 * (k % 7 > 2) + k * k % 97 * 2) for k in range(96)]
waves[50] = 4095.0 + min(waves)
for name, values, scale in (
    ("integers", waves, 0),
    ("fractions", temperatures, -8),
    ("missing points", [9999.0 if k == 1 else value for k, value in enumerate(waves)], 0),
):
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    keys = {"Ni": 4, "Nj": len(values) // 4, "packingType": "grid_complex_spatial_differencing"}
    keys |= {"orderOfSpatialDifferencing": 2, "bitsPerValue": 12, "bitmapPresent": int(9999 in values)}
    for key, value in keys.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, values)
    assert eccodes.codes_get(message, "binaryScaleFactor") == scale
    with open(f"{name}.grib2", "wb") as file:
        eccodes.codes_write(message, file)
    found = [round(float(value), 1) for value in eccodes.codes_get_values(message)]
    assert found == values
    with open(f"{name}.json", "w") as file:
        json.dump(["missing" if value == 9999 else value for value in found], file)
PYTHON
cat > read.cjs <<'JAVASCRIPT'
const assert = require("node:assert");
const fs = require("node:fs");
const grib = require("grib-js");

const shown = (row) => `${row.length} values ${row.slice(0, 3).join(" ")} ... ${row.slice(-2).join(" ")}`;

for (const [name, seen] of [
  ["integers", (values) => values],
  ["fractions", (values) => values.map(() => Math.min(...values))],
  ["missing points", (values) => values.filter((value) => value !== "missing")],
]) {
  const values = JSON.parse(fs.readFileSync(`${name}.json`));
  grib.readData(fs.readFileSync(`${name}.grib2`), (error, messages) => {
    assert.equal(error, null);
    const found = messages[0].fields[0].data;
    console.log(`${name.padEnd(15)} ecCodes ${shown(values)}   grib-js ${shown(found)}`);
    assert.deepEqual(found, seen(values));
  });
}
JAVASCRIPT
node read.cjs
