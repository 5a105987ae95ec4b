"""Programs open the columns of a group by ``group.arrow``."""

import json

import numpy as np
import pytest

from tests.tables import CODES, COLUMNS, GENES, MISSING, NAME, N, make_table
from tests.tools.programs import need_module


@pytest.fixture
def source(tmp_path):
    make_table(tmp_path / "g")
    return tmp_path / "g"


def test_every_column(source, mounted):
    need_module("pyarrow")
    import pyarrow

    folder = mounted(source, f"views={NAME}")
    with pyarrow.memory_map(str(folder / NAME)) as mapped:
        table = pyarrow.ipc.open_file(mapped).read_all()
        table.validate(full=True)
        assert {*table.column_names} == {*COLUMNS, "m", "text"}
        for name, data in COLUMNS.items():
            np.testing.assert_array_equal(table[name].to_numpy(), data)
        assert table["m"].to_pylist() == [None if n == -9 else n for n in MISSING.tolist()]
        assert table["m"].null_count == (MISSING == -9).sum()
        assert (table["t"].null_count, table["b"].null_count) == (1, 0)
        assert table["text"].to_pylist() == [f"é{i}" for i in range(N)]
        assert table.schema.field("i1").metadata == {b"units": b"m"}
        assert json.loads(table.schema.metadata[b"zarrfs_left_out"]) == ["c", "short", "two"]
        del table
    assert not (folder / "empty" / NAME).exists()
    assert NAME not in [path.name for path in (folder / "i1").iterdir()]


def test_anndata(source, mounted):
    need_module("pyarrow")
    import pyarrow

    file = mounted(source, f"views={NAME}") / "obs" / NAME
    table = pyarrow.ipc.open_file(file.read_bytes()).read_all()
    table.validate(full=True)
    assert table.column_names == ["_index", "kind", "n"]
    assert table["kind"].to_pylist() == [GENES[int(code)] for code in CODES]
    assert table.schema.field("kind").type.ordered
    assert table["_index"][17].as_py() == "cell 17"


def test_polars(source, mounted):
    need_module("polars")
    import polars

    folder = mounted(source, f"views={NAME}")
    found = polars.read_ipc(folder / NAME)
    for name, data in COLUMNS.items():
        if name != "t":
            np.testing.assert_array_equal(found[name].to_numpy(), data)
    assert found["t"].null_count() == 1
    assert found["m"].sum() == MISSING[MISSING != -9].sum()
    obs = polars.read_ipc(folder / "obs" / NAME)
    assert obs["kind"].cast(polars.String).to_list() == [GENES[int(code)] for code in CODES]


def test_pandas(source, mounted):
    need_module("pyarrow")
    need_module("pandas")
    import pandas

    folder = mounted(source, f"views={NAME}")
    found = pandas.read_feather(folder / NAME)
    for name, data in COLUMNS.items():
        np.testing.assert_array_equal(found[name].to_numpy(), data)
    assert found["m"].isna().sum() == (MISSING == -9).sum()
    assert found["text"].tolist() == [f"é{i}" for i in range(N)]
    obs = pandas.read_feather(folder / "obs" / NAME, columns=["kind", "n"])
    assert obs["kind"].cat.ordered
    assert obs["kind"].cat.codes.tolist() == CODES.tolist()
    assert obs["kind"].cat.categories.tolist() == [GENES[0], GENES[1]]


def test_duckdb(source, mounted):
    """It reads the table of pyarrow, and of a mapped file the columns of a query alone."""
    need_module("pyarrow")
    need_module("duckdb")
    import duckdb
    import pyarrow

    folder = mounted(source, f"views={NAME}")
    with (
        pyarrow.memory_map(str(folder / NAME)) as points,
        pyarrow.memory_map(str(folder / "obs" / NAME)) as cells,
        duckdb.connect() as connection,
    ):
        connection.register("points", pyarrow.ipc.open_file(points).read_all())
        connection.register("cells", pyarrow.ipc.open_file(cells).read_all())
        for name, data in COLUMNS.items():
            (found,) = connection.execute(f"SELECT {name} FROM points").fetchnumpy().values()
            missing = np.isnat(data) if data.dtype.kind in "mM" else np.zeros(N, bool)
            np.testing.assert_array_equal(np.ma.getmaskarray(found), missing)
            found = np.ma.getdata(found)[~missing]
            # DuckDB has durations of whole microseconds.
            np.testing.assert_array_equal(found, data[~missing].astype(found.dtype))
        query = "SELECT count(m), sum(m), max(text) FROM points"
        there = MISSING[MISSING != -9]
        expected = len(there), there.sum(), max(f"é{i}" for i in range(N))
        assert connection.execute(query).fetchone() == expected
        query = "SELECT kind, count(*), sum(n) FROM cells GROUP BY kind"
        assert {kind: more for kind, *more in connection.execute(query).fetchall()} == {
            name: [(code == CODES).sum(), np.flatnonzero(code == CODES).sum()]
            for code, name in GENES.items()
        }
