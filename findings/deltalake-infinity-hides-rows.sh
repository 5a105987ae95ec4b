#!/usr/bin/env bash
# One infinity in a file of a Delta table, and every filtered read through pyarrow leaves the whole file out.
#
# Versions: deltalake 1.6.6, pyarrow 26.0.1.
# Behaviour: the log of a Delta table has the smallest and the largest number of each file. JSON has no infinity, so deltalake
# writes null for it. `to_pyarrow_dataset` and `to_pyarrow_table` make a condition of these numbers, in which the null
# is never true, and a filter then finds no row of that file, whatever it asks for. NaN is left out of both numbers: the filter
# x >= 1.5 returns the NaN of a file in which all other numbers are larger, and `is_nan` does not find it where there is one
# other number. deltalake's own SQL finds the infinity, and takes NaN as equal to 50. Without a filter all rows are there.
# Expected before the run: the rows that the same filter finds in the same table in memory.
# Output seen (the rows that are found, by their place):
#   [1, 2, inf]   x >= 1.5   in memory [1, 2]  to_pyarrow_dataset []      to_pyarrow_table []
#   [1, 2, inf]   x < 1.5    in memory [0]     to_pyarrow_dataset []      to_pyarrow_table []
#   [-inf, 1, 2]  x < 1.5    in memory [0, 1]  to_pyarrow_dataset []      to_pyarrow_table []
#   [nan, 50]     x >= 1.5   in memory [1]     to_pyarrow_dataset [0, 1]  to_pyarrow_table [0, 1]
#   [nan, 50]     x == nan   in memory [0]     to_pyarrow_dataset []
#   [1, 2, 3]     x >= 1.5   in memory [1, 2]  to_pyarrow_dataset [1, 2]  to_pyarrow_table [1, 2]
#   SQL, where x = 50, of [nan, 50]: [0, 1]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
from math import inf, nan

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder, write_deltalake

x = pc.field("x")
least = "x >= 1.5", x >= 1.5, [("x", ">=", 1.5)]
most = "x < 1.5", x < 1.5, [("x", "<", 1.5)]
missing = "x == nan", pc.is_nan(x), None
for number, (values, (name, expression, filters), true, seen) in enumerate(
    (
        ([1, 2, inf], least, [1, 2], []),
        ([1, 2, inf], most, [0], []),
        ([-inf, 1, 2], most, [0, 1], []),
        ([nan, 50], least, [1], [0, 1]),
        ([nan, 50], missing, [0], []),
        ([1, 2, 3], least, [1, 2], [1, 2]),
    )
):
    rows = pa.table({"x": pa.array(values, pa.float64()), "row": range(len(values))})
    write_deltalake(f"table-{number}", rows)
    table = DeltaTable(f"table-{number}")
    assert table.to_pyarrow_table().num_rows == len(values)
    memory, dataset = (
        part["row"].to_pylist() for part in (rows.filter(expression), table.to_pyarrow_dataset().to_table(filter=expression))
    )
    line = f"{values!s:12}  {name:9}  in memory {memory!s:6}  to_pyarrow_dataset {dataset!s:6}"
    assert (memory, dataset) == (true, seen)
    if filters:
        found = table.to_pyarrow_table(filters=filters)["row"].to_pylist()
        line += f"  to_pyarrow_table {found}"
        assert found == seen
    print(line)
    if filters and values[-1] == 50:
        answer = QueryBuilder().register("t", table).execute("select row from t where x = 50 order by row")
        equal = pa.table(answer)["row"].to_pylist()
print(f"SQL, where x = 50, of [nan, 50]: {equal}")
assert equal == [0, 1]
PYTHON
