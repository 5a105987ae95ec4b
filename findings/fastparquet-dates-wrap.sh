#!/usr/bin/env bash
# fastparquet reads the date 2300-01-01 as 1715-06-13, and drops the zeros at the end of binary values.
#
# Versions: fastparquet 2026.9.0, pyarrow 26.0.1, pandas 3.1.1, numpy 2.5.5.
# Behaviour: Parquet stores dates as days. fastparquet makes 64-bit nanoseconds of them without a look at their
# range, 1677 to 2262: earlier and later dates wrap into others, such as those of a climate run up to
# 2300. The same days as timestamps in microseconds are right. Binary values of a fixed length, as
# hashes and identifiers have, lose the zero bytes at their end. pyarrow reads all of them as written.
# Expected before the run: what pyarrow reads, or an error.
# Output seen (fastparquet of what was written):
#   dates       [1600-02-29, 2020-01-01, 2300-01-01] reads [2184-09-17, 2020-01-01, 1715-06-13]
#   timestamps  [1600-02-29, 2020-01-01, 2300-01-01] reads [1600-02-29, 2020-01-01, 2300-01-01]
#   binary      [b'ab\x00', b'\x00\x00\x00', b'abc'] reads [b'ab', b'', b'abc']
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install fastparquet==2026.9.0 pyarrow==26.0.1 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import datetime

import fastparquet
import pyarrow
import pyarrow.parquet


def read(column):
    """As fastparquet reads it; pyarrow has to read what was written."""
    pyarrow.parquet.write_table(pyarrow.table({"x": column}), "x.parquet")
    assert pyarrow.parquet.read_table("x.parquet")["x"].to_pylist() == column.to_pylist()
    return fastparquet.ParquetFile("x.parquet").to_pandas()["x"].tolist()


def days(times):
    return f"[{', '.join(str(time)[:10] for time in times)}]"


dates = [datetime.date(1600, 2, 29), datetime.date(2020, 1, 1), datetime.date(2300, 1, 1)]
found = read(pyarrow.array(dates))
print("dates      ", days(dates), "reads", days(found))
assert days(found) == "[2184-09-17, 2020-01-01, 1715-06-13]"
found = read(pyarrow.array(dates).cast(pyarrow.timestamp("us")))
print("timestamps ", days(dates), "reads", days(found))
assert days(found) == days(dates)
hashes = [b"ab\0", b"\0\0\0", b"abc"]
found = read(pyarrow.array(hashes, pyarrow.binary(3)))
print("binary     ", hashes, "reads", found)
assert found == [b"ab", b"", b"abc"]
PYTHON
