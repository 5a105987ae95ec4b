#!/usr/bin/env bash
# Apache Arrow for JavaScript writes the decimal -1.23 as 18446744073709551493, and 123.45 as 5, by its width.
#
# Versions: apache-arrow 21.2.0 (npm; seen with Node.js 20), pyarrow 26.0.1.
# Behaviour: the text of a decimal is its digits without the point, so 123 for 1.23. Of decimals of 64 bits, which Arrow has
# since 2024, negative ones are written as if unsigned. Of those of 256 bits the text is the last digit, if the number
# fits in 128 bits. Tables, rows and JSON show the same. Widths of 32 and 128 bits are right, and so is
# `valueOf(scale)`, which gives a double, and for 32 bits an error. Nothing warns.
# Expected before the run: 123, -123, 12345 and -10000 in each width.
# Output seen:
#   decimal32   123, -123, 12345, -10000
#   decimal64   123, 18446744073709551493, 12345, 18446744073709541616
#   decimal128  123, -123, 12345, -10000
#   decimal256  3, -3, 5, -0
#   valueOf(2)  1.23, -1.23, 123.45, -100
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pyarrow==26.0.1
cd "$folder"
npm install --silent --no-fund --no-audit apache-arrow@21.2.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa

numbers = [Decimal("1.23"), Decimal("-1.23"), Decimal("123.45"), Decimal("-100")]
for name, make, digits in (
    ("decimal32", pa.decimal32, 9),
    ("decimal64", pa.decimal64, 18),
    ("decimal128", pa.decimal128, 38),
    ("decimal256", pa.decimal256, 76),
):
    table = pa.table({"x": pa.array(numbers, make(digits, 2))})
    with pa.ipc.new_file(f"{name}.arrow", table.schema) as file:
        file.write_table(table)
    assert pa.ipc.open_file(f"{name}.arrow").read_all()["x"].to_pylist() == numbers
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { tableFromIPC } from "apache-arrow";

const seen = {
  decimal32: "123, -123, 12345, -10000",
  decimal64: "123, 18446744073709551493, 12345, 18446744073709541616",
  decimal128: "123, -123, 12345, -10000",
  decimal256: "3, -3, 5, -0",
};
for (const [name, expected] of Object.entries(seen)) {
  const table = tableFromIPC(fs.readFileSync(`${name}.arrow`));
  const numbers = [...table.getChild("x")];
  const found = numbers.map(String).join(", ");
  console.log(`${name.padEnd(12)}${found}`);
  assert.equal(found, expected);
  assert.equal(table.get(1).toJSON().x.toString(), expected.split(", ")[1]);
  const values = () => numbers.map((number) => number.valueOf(2)).join(", ");
  if (name === "decimal32") assert.throws(values, TypeError);
  else assert.equal(values(), "1.23, -1.23, 123.45, -100");
}
console.log("valueOf(2)  1.23, -1.23, 123.45, -100");
JAVASCRIPT
node read.mjs
