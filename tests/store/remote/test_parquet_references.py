"""References in Parquet: damaged or absurd files are errors, and no chunks that read as fill."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas
import pytest
from fsspec.implementations.reference import LazyReferenceMapper

from zarrfs import bounds
from zarrfs.errors import StoreError, StoreUnavailable
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.references import parquet
from zarrfs.store.remote.references.record import Record, packed

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated"),
]

ROWS = 4
DATA = bytes(range(100))


def zarray(shape: list[int], chunks: list[int], **members: Any) -> dict[str, Any]:
    return {
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "compressor": None,
        "fill_value": 7, "filters": None, "order": "C", **members,
    }  # fmt: skip


class References:
    """A document in Parquet with an array ``g/a`` of 3 × 3 chunks, which tests spoil."""

    def __init__(self, place: Path) -> None:
        self.root = place / "a.parq"
        self.data = place / "data"
        self.data.write_bytes(DATA)
        (self.root / "g/a").mkdir(parents=True)
        self.metadata: dict[str, Any] = {
            ".zgroup": {"zarr_format": 2},
            "g/.zgroup": {"zarr_format": 2},
            "g/a/.zarray": zarray([6, 6], [2, 2]),
        }
        self.write_metadata()
        self.write(0, [self.place(0), self.place(4), None, b"abcd"])
        self.write(1, [str(self.data), None, self.place(8), b""])

    def place(self, offset: int) -> tuple[str, int, int]:
        return str(self.data), offset, 4

    def write_metadata(self, **members: Any) -> None:
        document = {"metadata": self.metadata, "record_size": ROWS, **members}
        (self.root / ".zmetadata").write_text(json.dumps(document))

    def write(self, number: int, rows: list[Any], name: str = "g/a") -> None:
        urls = [row[0] if isinstance(row, tuple) else row for row in rows]
        columns = {
            "path": [url if isinstance(url, str) else None for url in urls],
            "offset": [row[1] if isinstance(row, tuple) else 0 for row in rows],
            "size": [row[2] if isinstance(row, tuple) else 0 for row in rows],
            "raw": [row if isinstance(row, bytes) else None for row in rows],
        }
        self.write_columns(number, columns, name)

    def write_columns(self, number: int, columns: dict[str, Any], name: str = "g/a") -> None:
        encodings = {"path": "utf8", "raw": "bytes"}
        pandas.DataFrame(columns).to_parquet(
            self.root / name / f"refs.{number}.parq",
            engine="fastparquet",
            compression="zstd",
            index=False,
            object_encoding={name: encodings[name] for name in columns if name in encodings},
            has_nulls=True,
        )

    def file(self, number: int) -> Path:
        return self.root / f"g/a/refs.{number}.parq"


@pytest.fixture
def references(tmp_path: Path) -> References:
    return References(tmp_path)


@pytest.fixture
def opened(references: References) -> Iterator[Callable[..., Store]]:
    stores = []

    def open_it(**options: Any) -> Store:
        config = StoreConfig(storage_options=options)
        stores.append(open_store(f"reference::file://{references.root}", config))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def read(store: Store, key: str) -> bytes | None:
    blob = store.get(key, limit=1000)
    return None if blob is None else bytes(blob.data)


EXPECTED = {
    "g/a/0.0": DATA[:4], "g/a/0.1": DATA[4:8], "g/a/0.2": None, "g/a/1.0": b"abcd",
    "g/a/1.1": DATA, "g/a/1.2": None, "g/a/2.0": DATA[8:12], "g/a/2.1": b"",
    # The third file does not exist: none of its chunks was ever written.
    "g/a/2.2": None,
    "g/a/3.0": None, "g/a/0.3": None, "g/a/00.0": None, "g/a/0": None, "g/a/0.0.0": None,
    "g/a/-1.0": None, "g/a/zarr.json": None, "g/a/.zattrs": None, "b/0": None, "0": None,
}  # fmt: skip


def test_every_kind_of_row(references, opened):
    store = opened()
    assert {key: read(store, key) for key in EXPECTED} == EXPECTED
    # As fsspec itself has them.
    reader = LazyReferenceMapper(str(references.root), fs=fsspec.filesystem("file"))
    assert reader["g/a/0.1"] == [str(references.data), 4, 4]
    assert json.loads(read(store, "g/a/.zarray")) == references.metadata["g/a/.zarray"]


@pytest.mark.parametrize("members", [{}, {"zz": "x" * 9000}, {"record_size": ROWS, "metadata": {}}])
def test_by_the_path_of_their_folder(references, members):
    references.write_metadata(**members)
    with closing(open_store(str(references.root), StoreConfig())) as store:
        if members.get("metadata") != {}:
            assert {key: read(store, key) for key in EXPECTED} == EXPECTED
        assert store.read_only is not None


def test_consolidated_metadata_are_no_references(tmp_path):
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / ".zmetadata").write_text('{"metadata": {"a/.zattrs": {"record_size": 3}}}')
    with closing(open_store(str(tmp_path), StoreConfig())) as store:
        assert store.local_path == str(tmp_path)


def test_names(opened):
    store = opened()
    assert set(store.list_dir("")) == {".zgroup", "g/"}
    assert set(store.list_dir("g")) == {".zgroup", "a/"}
    stored = {key.rpartition("/")[2] for key, data in EXPECTED.items() if data is not None}
    assert set(store.list_dir("g/a")) == {".zarray", *stored}


def test_chunks_whose_keys_have_slashes(references, opened):
    references.metadata["g/a/.zarray"]["dimension_separator"] = "/"
    references.write_metadata()
    store = opened()
    assert read(store, "g/a/0/1") == DATA[4:8]
    assert read(store, "g/a/0.1") is None
    assert set(store.list_dir("g/a")) == {".zarray", "0/", "1/", "2/"}
    assert set(store.list_dir("g/a/2")) == {"0", "1"}


@pytest.mark.parametrize("cut", [0, 3, 50, -1])
def test_a_damaged_file_is_an_error(references, opened, cut):
    """fsspec takes it for one whose chunks were never written, which read as fill values."""
    data = references.file(0).read_bytes()
    references.file(0).write_bytes(data[:cut])
    store = opened()
    with pytest.raises(StoreError, match=r"refs\.0\.parq") as caught:
        read(store, "g/a/0.0")
    assert not isinstance(caught.value, StoreUnavailable)
    assert read(store, "g/a/2.0") == DATA[8:12]


def test_a_directory_in_place_of_a_file_is_an_error(references, opened):
    references.file(0).unlink()
    references.file(0).mkdir()
    with pytest.raises(StoreError, match="is not a file"):
        read(opened(), "g/a/0.0")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"path": [1.5] * 4}, "not text"),
        ({"raw": [1, 2, 3, 4]}, "not bytes"),
        ({"path": ["a"] * 4, "offset": [0.5] * 4}, "not whole numbers"),
        ({"path": ["a"] * 4, "size": [-1] * 4}, "not whole numbers"),
        ({"path": ["a"] * 4, "size": ["b"] * 4}, "not a number"),
        ({"path": ["a"] * 5}, "has 5 rows, at most 4"),
    ],
)
def test_columns_of_something_else(references, opened, columns, words):
    pandas.DataFrame(columns).to_parquet(references.file(0), engine="fastparquet")
    with pytest.raises(StoreError, match=words):
        read(opened(), "g/a/0.0")


def test_a_file_of_too_few_rows_is_an_error(references, opened):
    references.write(0, [self_ := references.place(0), self_])
    with pytest.raises(StoreError, match="has 2 rows, and no row 3"):
        read(opened(), "g/a/1.0")


@pytest.mark.parametrize(
    "members",
    [
        {"record_size": 0}, {"record_size": -1}, {"record_size": "4"}, {"record_size": True},
        {"metadata": []},
    ],
)  # fmt: skip
def test_metadata_of_something_else(references, opened, members):
    references.write_metadata(**members)
    with pytest.raises(StoreError, match=r"no proper \.zmetadata"):
        opened()


@pytest.mark.parametrize(
    "array",
    [
        zarray([6, 6], [0, 2]), zarray([6, 6], [2]), zarray([-6, 6], [2, 2]), zarray(["6"], [2]),
        zarray([2**70], [1]), zarray([1] * 40, [1] * 40), [], 5,
    ],
)  # fmt: skip
def test_arrays_of_something_else(references, opened, array):
    references.metadata["g/a/.zarray"] = array
    references.write_metadata()
    with pytest.raises(StoreError, match="no valid chunks"):
        read(opened(), "g/a/0.0")


def test_a_listing_of_files_without_end_is_an_error(references, opened):
    references.metadata["g/a/.zarray"] = zarray([10**15], [1])
    references.write_metadata()
    with pytest.raises(StoreError, match="too many to list"):
        list(opened().list_dir("g/a"))


@pytest.mark.parametrize("name", [".zmetadata", "g/a/refs.0.parq"])
def test_files_have_a_largest_size(references, opened, name, monkeypatch):
    monkeypatch.setattr(bounds, "LARGEST_REFERENCES", 2000)
    with open(references.root / name, "ab") as file:
        file.write(b" " * 2000)
    with pytest.raises(StoreError, match="more than 2000 bytes"):
        read(opened(), "g/a/0.0")


def test_records_that_do_not_fit_are_read_again(references, opened, monkeypatch):
    monkeypatch.setattr(parquet, "_KEPT", 1500)
    reads = []
    real = parquet.read_bounded
    monkeypatch.setattr(parquet, "read_bounded", lambda *args: reads.append(args[1]) or real(*args))
    store = opened()
    for key in ("g/a/1.0", "g/a/2.1", "g/a/1.0"):
        assert read(store, key) == EXPECTED[key]
    names = [name.rpartition("/")[2] for name in reads[1:]]
    assert [name for name, _ in itertools.groupby(names)] == [
        "refs.0.parq", "refs.1.parq", "refs.0.parq",
    ]  # fmt: skip


def test_a_packed_form_that_is_none():
    whole = packed(["a", None], np.array([1, 0]), np.array([2, 0]), [None, b"xyz"])
    assert Record(whole).find(0) == ["a", 1, 2]
    assert Record(whole).find(1) == b"xyz"
    for cut in range(len(whole)):
        with pytest.raises(ValueError):
            Record(whole[:cut])
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0x40
        try:
            record = Record(bytes(changed))
            found = [record.find(row) for row in range(len(record))]
        except ValueError:
            continue
        assert all(one is None or len(one) <= 3 for one in found)
