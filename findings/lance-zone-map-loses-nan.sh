#!/usr/bin/env bash
# A filter of Lance finds fewer rows after a zone map was made for its column.
#
# Versions: pylance 14.0.2, pyarrow 26.0.1, numpy 2.4.6.
# Behaviour: for Lance's filters, as for DataFusion, NaN is larger than all numbers: `x > 1000`
# returns the rows whose x is NaN. An index of the kind ZONEMAP, which shall only make this faster, leaves
# out zones in which all values are NaN, such as pixels beyond the edge of a swath. NaN beside
# numbers is still found, so that the rows that are left depend on the layout of the file. BTREE and
# BITMAP indices keep the answer.
# One would expect: an index changes the time of an answer and not the answer.
# Output seen (rows for x > 1000; 999 rows have such a number, 3000 NaN):
#   no index  3999, of which 3000 NaN
#   BTREE     3999, of which 3000 NaN
#   BITMAP    3999, of which 3000 NaN
#   ZONEMAP   2999, of which 2000 NaN
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pylance==14.0.2 pyarrow==26.0.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import lance
import numpy as np
import pyarrow

x = np.arange(10000, dtype="f8") - 5000
x[7000:] = np.nan
table = pyarrow.table({"x": x})
seen = {None: 3000, "BTREE": 3000, "BITMAP": 3000, "ZONEMAP": 2000}
for kind, expected in seen.items():
    dataset = lance.write_dataset(table, f"{kind}.lance", max_rows_per_file=3000)
    if kind:
        dataset.create_scalar_index("x", kind)
    found = lance.dataset(f"{kind}.lance").to_table(filter="x > 1000")["x"].to_numpy()
    missing = int(np.isnan(found).sum())
    print(f"{kind or 'no index':9} {len(found)}, of which {missing} NaN")
    assert (found[~np.isnan(found)] > 1000).all()
    assert (len(found) - missing, missing) == (999, expected)
PYTHON
