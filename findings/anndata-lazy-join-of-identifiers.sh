#!/usr/bin/env bash
# anndata makes 9007199254740992 of the identifier 9007199254740993, if it joins lazily and one identifier is missing.
#
# Versions: anndata 0.13.4, zarr 3.4.2, xarray 2026.9.0, dask 2026.8.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `read_lazy` of one Zarr store, and `concat` of stores that are in memory, keep a column of Int64 or UInt64 in
# which a number is missing. `concat` of two stores that are read lazily turns such a column to float64 on its way to
# memory: identifiers beyond 2**53 change, and may become equal. A column in which none is missing is right.
# The error on writing the joined object says that types may be lost, and not that numbers change. Nothing warns.
# Expected before the run: Int64 and the same numbers in all cases, or a note that they are lost.
# Output seen (the first number of both stores, beside a missing one):
#   in memory      Int64    [9007199254740993, <NA>, 9007199254740995, <NA>]
#   one, lazily    Int64    [9007199254740993, <NA>]
#   both, lazily   float64  [9007199254740992.0, nan, 9007199254740996.0, nan]
#   none missing   int64    [9007199254740993, 2, 9007199254740995, 2]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install anndata==0.13.4 zarr==3.4.2 xarray==2026.9.0 dask==2026.8.0 pandas==3.1.1 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import anndata
import numpy as np
import pandas as pd
from anndata.experimental import read_lazy

for path, number in ("a.zarr", 2**53 + 1), ("b.zarr", 2**53 + 3):
    columns = {
        "number": pd.array([number, None], dtype="Int64"),
        "complete": pd.array([number, 2], dtype="Int64"),
    }
    cells = pd.DataFrame(columns, index=[f"{path}-1", f"{path}-2"])
    genes = pd.DataFrame(index=["gene"])
    anndata.AnnData(X=np.zeros((2, 1), "f4"), obs=cells, var=genes).write_zarr(path)
paths = ["a.zarr", "b.zarr"]
joined = anndata.concat([read_lazy(path) for path in paths]).to_memory().obs
seen = {
    "in memory": anndata.concat([anndata.read_zarr(path) for path in paths]).obs["number"],
    "one, lazily": read_lazy("a.zarr").to_memory().obs["number"],
    "both, lazily": joined["number"],
    "none missing": joined["complete"],
}
for name, column in seen.items():
    print(f"{name:13}  {column.dtype!s:7}  {column.tolist()}")
assert seen["in memory"].dtype == seen["one, lazily"].dtype == "Int64"
assert seen["in memory"].dropna().tolist() == [2**53 + 1, 2**53 + 3]
assert seen["one, lazily"].dropna().tolist() == [2**53 + 1]
assert seen["both, lazily"].dtype == "float64"
assert seen["both, lazily"].dropna().tolist() == [2**53, 2**53 + 4]
assert seen["none missing"].tolist() == [2**53 + 1, 2, 2**53 + 3, 2]
PYTHON
