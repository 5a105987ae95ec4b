#!/usr/bin/env bash
# netcdfjs returns the padding of NetCDF-3 files as data, with no error.
#
# Versions: netcdfjs 4.0.0 (npm; seen with Node.js 20); netCDF4 1.7.5.1.post1, scipy 1.17.1,
# numpy 2.4.6.
# Behaviour: NetCDF-3 pads variables of bytes and shorts, and each of their records, to four bytes.
# netcdfjs makes elements of the padding: five shorts come back as six, five bytes as eight, and
# each record of three has a fourth number. So all records after the first are shifted for those
# who use the declared shape. If the only record variable is of bytes, where the format has no
# padding, the numbers run on and zeros follow the last. Its bytes have no sign: -127 is 129.
# Expected before the run: the values of the declared shape, as in netCDF-C and scipy.
# Output seen:
#   five.short  netcdfjs [0,1,2,3,4,-32767]
#   five.byte   netcdfjs [[0],[1],[2],[3],[4],[129],[129],[129]]
#   five.int    netcdfjs [0,1,2,3,4]
#   two.short   netcdfjs [[0,1,2,3],[3,4,5,6],[6,7,8,9],[9,10,11,0]]
#   two.byte    netcdfjs [[0,1,2,129],[3,4,5,129],[6,7,8,129],[9,10,11,129]]
#   two.int     netcdfjs [[0,1,2],[3,4,5],[6,7,8],[9,10,11]]
#   one.byte    netcdfjs [[0,1,2,3],[4,5,6,7],[8,9,10,11],[0,0,0,0]]
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install netCDF4==1.7.5.1.post1 scipy==1.17.1 numpy==2.4.6
cd "$folder"
npm install --silent --no-fund --no-audit netcdfjs@4.0.0 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import netCDF4
import numpy as np
from scipy.io import netcdf_file

types = {"short": "i2", "byte": "i1", "int": "i4"}


def write(path, size, variables):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", size)
        file.createDimension("x", 3)
        dimensions = ("t", "x") if size is None else ("t",)
        values = np.arange(12).reshape(4, 3) if size is None else np.arange(5)
        for name in variables:
            file.createVariable(name, types[name], dimensions)[:] = values
    with netCDF4.Dataset(path) as one, netcdf_file(path, mmap=False) as other:
        for name in variables:
            assert (one[name][:] == values).all() and (other.variables[name][:] == values).all()


write("five.nc", 5, ["short", "byte", "int"])
write("two.nc", None, ["short", "byte", "int"])
write("one.nc", None, ["byte"])
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import fs from "node:fs";
import { NetCDFReader } from "netcdfjs";

const found = {};
for (const [path, names] of [
  ["five", ["short", "byte", "int"]],
  ["two", ["short", "byte", "int"]],
  ["one", ["byte"]],
]) {
  const reader = new NetCDFReader(fs.readFileSync(`${path}.nc`));
  for (const name of names) {
    const values = reader.getDataVariable(name).map((item) => (item.length ? [...item] : item));
    found[`${path}.${name}`] = JSON.stringify(values);
    console.log(`${path}.${name}`.padEnd(11), "netcdfjs", JSON.stringify(values));
  }
}
assert.equal(found["five.short"], "[0,1,2,3,4,-32767]");
assert.equal(found["five.byte"], "[[0],[1],[2],[3],[4],[129],[129],[129]]");
assert.equal(found["five.int"], "[0,1,2,3,4]");
for (const name of ["short", "byte"]) {
  const records = JSON.parse(found[`two.${name}`]);
  assert.deepEqual(records.map((record) => record.length), [4, 4, 4, 4]);
  assert.deepEqual(records.map((record) => record[0]), [0, 3, 6, 9]);
}
assert.equal(found["two.int"], "[[0,1,2],[3,4,5],[6,7,8],[9,10,11]]");
assert.equal(found["one.byte"], "[[0,1,2,3],[4,5,6,7],[8,9,10,11],[0,0,0,0]]");
JAVASCRIPT
node read.mjs
