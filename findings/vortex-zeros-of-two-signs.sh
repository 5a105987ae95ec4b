#!/usr/bin/env bash
# A filter of Vortex for x == 0 does not find -0.0, also where Polars or pyarrow asks Vortex.
#
# Versions: vortex-data 0.93.0, pyarrow 26.0.1, polars 2.1.0, duckdb 2.0.1, numpy 2.4.6.
# Behaviour: floats have two zeros, which are equal in IEEE 754, SQL, Polars and Arrow. Vortex orders floats by
# their bits: -0.0 is smaller than 0.0, and NaN is at the end that its sign bit says. 0.0 / 0.0 on an
# x86 processor has the sign bit, so `x < 0` returns it, and `x > 0` another NaN. The dataset and the
# LazyFrame that Vortex gives to pyarrow and Polars hand their filters to it: the same filter finds
# other rows than on the same table in memory.
# One would expect: a filter that is pushed down finds what it finds afterwards.
# Output seen (of -1, -0.0, 0.0, 1, NaN, and NaN with a sign bit):
#   x ==  0  Vortex [0.0]  pyarrow of Vortex [0.0]  Polars of Vortex [0.0]
#            pyarrow [-0.0, 0.0]  Polars [-0.0, 0.0]  DuckDB [-0.0, 0.0]
#   x >=  0  Vortex [0.0, 1.0, nan]  pyarrow of Vortex [0.0, 1.0, nan]  Polars of Vortex [0.0, 1.0, nan]
#            pyarrow [-0.0, 0.0, 1.0]  Polars [-0.0, 0.0, 1.0, nan, nan]  DuckDB [-0.0, 0.0, 1.0, nan, nan]
#   x <   0  Vortex [-1.0, -0.0, nan]  pyarrow of Vortex [-1.0, -0.0, nan]  Polars of Vortex [-1.0, -0.0, nan]
#            pyarrow [-1.0]  Polars [-1.0]  DuckDB [-1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install vortex-data==0.93.0 pyarrow==26.0.1 polars==2.1.0 \
    duckdb==2.0.1 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import duckdb
import numpy as np
import polars
import pyarrow
import pyarrow.dataset
import vortex
import vortex.expr

values = np.array([-1.0, -0.0, 0.0, 1.0, np.nan, -np.nan])
numbers = pyarrow.table({"x": values})
vortex.io.write(vortex.array(numbers), "x.vortex")
file = vortex.open("x.vortex")
names = {"==": "__eq__", ">=": "__ge__", "<": "__lt__"}
seen = {
    "==": ["[0.0]", "[-0.0, 0.0]", "[-0.0, 0.0]"],
    ">=": ["[0.0, 1.0, nan]", "[-0.0, 0.0, 1.0]", "[-0.0, 0.0, 1.0, nan, nan]"],
    "<": ["[-1.0, -0.0, nan]", "[-1.0]", "[-1.0]"],
}
for sign, name in names.items():
    def asked(column, name=name):
        return getattr(column, name)(0.0)

    arrow, frame = asked(pyarrow.dataset.field("x")), asked(polars.col("x"))
    found = file.scan(expr=asked(vortex.expr.column("x"))).read_all().to_arrow_table()
    rows = duckdb.sql(f"select x from numbers where x {sign} 0").fetchall()
    one = [
        found["x"].to_pylist(),
        file.to_dataset().to_table(filter=arrow)["x"].to_pylist(),
        file.to_polars().filter(frame).collect()["x"].to_list(),
    ]
    other = [
        numbers.filter(arrow)["x"].to_pylist(),
        polars.from_arrow(numbers).filter(frame)["x"].to_list(),
        [row[0] for row in rows],
    ]
    print(
        f"x {sign:3} 0  Vortex {one[0]}  pyarrow of Vortex {one[1]}  Polars of Vortex {one[2]}\n"
        f"         pyarrow {other[0]}  Polars {other[1]}  DuckDB {other[2]}"
    )
    assert [str(rows) for rows in one] == [seen[sign][0]] * 3
    assert [str(rows) for rows in other] == [seen[sign][1], seen[sign][2], seen[sign][2]]
PYTHON
