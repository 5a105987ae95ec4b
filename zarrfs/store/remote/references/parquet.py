"""References in Parquet: one JSON document of metadata, and a file of rows for many chunks.

https://fsspec.github.io/kerchunk/spec.html#parquet-references

fsspec reads such files in this process and without bounds, and reads the chunks of a damaged file
as chunks that were never written. Here a process of its own reads them (`zarrfs.isolation`), and
a damaged file is an error.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from importlib import import_module
from typing import Any, NamedTuple

from zarrfs import bounds
from zarrfs.errors import DecodeError, reason_of
from zarrfs.isolation.decoders import isolated
from zarrfs.store.remote.references.record import BYTES_PER_ROW, Record, Reference
from zarrfs.store.remote.requests import BadReply

_READER = "zarrfs.store.remote.references.parquet_file"
_MEMORY = 1 << 30
_KEPT = 256 << 20  # bytes of records that are kept
_MOST_FOUND = 4096  # references that were looked up last


class _Array(NamedTuple):
    """An array of the references: its name, its chunks along each axis, and their separator."""

    name: str
    grid: tuple[int, ...]
    separator: str

    def key(self, number: int) -> str:
        """The key of a chunk by its number in C order."""
        indexes: list[str] = []
        for count in reversed(self.grid):
            number, index = divmod(number, count)
            indexes.append(str(index))
        return below(self.name, self.separator.join(reversed(indexes)))

    def number(self, key: str) -> int:
        """The inverse of `key`. Raises KeyError for any other key."""
        indexes = key.removeprefix(below(self.name, "")).split(self.separator)
        if len(indexes) != len(self.grid):
            raise KeyError(key)
        number = 0
        for index, count in zip(indexes, self.grid, strict=True):
            if not (index.isascii() and index.isdecimal()) or len(index) > len(str(count)):
                raise KeyError(key)
            if str(int(index)) != index or int(index) >= count:
                raise KeyError(key)
            number = number * count + int(index)
        return number


class ParquetReferences(Mapping[str, Reference]):
    """References by key, read when they are looked up.

    Thread-safe. Shared state, under ``_lock``: the records that are kept, with the bytes that they
    take, and those that some thread reads, by file; and the references that were looked up last.
    fsspec looks a reference up a second time in the
    thread that runs its event loop, and must not wait there.
    """

    def __init__(self, filesystem: Any, root: str) -> None:
        """Raises ImportError, ValueError, `BadReply`, and any exception of the file system."""
        _check_packages()
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        text = read_bounded(filesystem, f"{self._root}/.zmetadata")
        try:
            document = bounds.load_json(text, bounds.LARGEST_PARSED_REFERENCES)
            metadata, self._rows = document["metadata"], document["record_size"]
        except (ValueError, RecursionError, TypeError, KeyError) as error:
            raise BadReply(
                f"references in Parquet have no proper .zmetadata: {reason_of(error)}"
            ) from error
        if not isinstance(metadata, dict) or type(self._rows) is not int or self._rows < 1:
            raise BadReply("references in Parquet have no proper .zmetadata")
        self.metadata: dict[str, Any] = metadata
        self._document = text
        self._lock = threading.Lock()
        self._records: OrderedDict[str, Record | None] = OrderedDict()
        self._taken = 0
        self._reading: dict[str, Future[Record | None]] = {}
        self._found: OrderedDict[str, Reference] = OrderedDict()

    def __getitem__(self, key: str) -> Reference:
        """Raises KeyError, `BadReply`, and any exception of the file system."""
        with self._lock:
            if (found := self._found.get(key)) is not None:
                self._found.move_to_end(key)
                return found
        if key == ".zmetadata":
            return self._document
        if key in self.metadata:
            return json.dumps(self.metadata[key]).encode()
        array = self.array_of(key)
        record, row = divmod(array.number(key), self._rows)
        reference = self._reference(array, record, row)
        if reference is None:
            raise KeyError(key)
        if isinstance(reference, list):
            with self._lock:
                self._found[key] = reference
                while len(self._found) > _MOST_FOUND:
                    self._found.popitem(last=False)
        return reference

    def __iter__(self) -> Iterator[str]:
        yield from self.metadata
        for name in self.metadata:
            if name.rpartition("/")[2] == ".zarray":
                yield from self.chunks_of(self.array_of(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def array_of(self, key: str) -> _Array:
        """The array that a key belongs to. Raises KeyError if there is none, `BadReply`."""
        name = key.rpartition("/")[0]
        while below(name, ".zarray") not in self.metadata:
            if not name:
                raise KeyError(key)
            name = name.rpartition("/")[0]
        document = self.metadata[below(name, ".zarray")]
        try:
            shape, chunks = document["shape"], document["chunks"]
            bounds.check_count(len(shape), bounds.MOST_AXES, "axes")
            if not all(type(length) is int and length >= 0 for length in (*shape, *chunks)):
                raise ValueError("its shape or its chunks are not whole numbers")
            grid = tuple(-(-length // step) for length, step in zip(shape, chunks, strict=True))
            bounds.check_lengths(grid, "its chunks")
        except (TypeError, KeyError, ValueError, ZeroDivisionError) as error:
            raise BadReply(f"its .zarray has no valid chunks: {reason_of(error)}") from error
        separator = "/" if document.get("dimension_separator") == "/" else "."
        return _Array(name, grid or (1,), separator)

    def chunks_of(self, array: _Array) -> Iterator[str]:
        """The keys of all chunks that have a reference. Raises as ``[]`` does."""
        count = -(-math.prod(array.grid) // self._rows)
        if count > bounds.MOST_GENERATED:
            raise BadReply(f"has {count} files of references, too many to list")
        for number in range(count):
            record = self._record(below(array.name, f"refs.{number}.parq"))
            for row in () if record is None else record.rows():
                yield array.key(number * self._rows + int(row))

    def names(self, parent: str) -> Iterator[str]:
        """The names in a directory, those of directories with a slash. Raises as ``[]`` does."""
        prefix = below(parent, "")
        parts = (key.removeprefix(prefix) for key in self.metadata if key.startswith(prefix))
        found = {name + slash for name, slash, _ in (part.partition("/") for part in parts)}
        yield from sorted(found)
        try:
            array = self.array_of(below(parent, "0"))
        except KeyError:
            return
        last = None
        for key in self.chunks_of(array):
            if key.startswith(prefix):
                name, slash, _ = key.removeprefix(prefix).partition("/")
                if name != last:
                    yield name + slash
                last = name

    def _reference(self, array: _Array, number: int, row: int) -> Reference | None:
        record = self._record(name := below(array.name, f"refs.{number}.parq"))
        if record is None:
            return None
        if row >= len(record):
            raise BadReply(f"{name} has {len(record)} rows, and no row {row}")
        return record.find(row)

    def _record(self, name: str) -> Record | None:
        """The rows of one file, which one thread reads; None if it does not exist."""
        with self._lock:
            if name in self._records:
                self._records.move_to_end(name)
                return self._records[name]
            reading = self._reading.get(name)
            if mine := reading is None:
                reading = self._reading[name] = Future()
        if mine:
            try:
                record = self._read(name)
            except BaseException as error:
                reading.set_exception(error)
                raise
            else:
                self._keep(name, record)
                reading.set_result(record)
            finally:
                with self._lock:
                    del self._reading[name]
        return reading.result()

    def _keep(self, name: str, record: Record | None) -> None:
        """Keep a record in place of those that were used least recently."""
        with self._lock:
            self._records[name] = record
            self._taken += _size(record)
            while self._taken > _KEPT and len(self._records) > 1:
                self._taken -= _size(self._records.popitem(last=False)[1])

    def _read(self, name: str) -> Record | None:
        try:
            data = read_bounded(self._filesystem, f"{self._root}/{name}")
        except FileNotFoundError:
            return None  # none of its chunks was ever written
        except (IsADirectoryError, NotADirectoryError) as error:
            raise BadReply(f"{name} is not a file") from error
        try:
            form = isolated(_READER).decode(
                {"rows": min(self._rows, bounds.LARGEST_REFERENCES // BYTES_PER_ROW)},
                data,
                size=bounds.LARGEST_REFERENCES,
                memory=_MEMORY,
                exact=False,
            )
            return Record(form)
        except (DecodeError, ValueError, RecursionError) as error:
            raise BadReply(f"{name}: {error}") from error


def below(name: str, key: str) -> str:
    """``key`` below the node ``name``, which is empty for the root."""
    return f"{name}/{key}" if name else key


def _size(record: Record | None) -> int:
    return 1024 + (0 if record is None else record.size)


def read_bounded(filesystem: Any, path: str) -> bytes:
    """The bytes of a file of references. Raises `BadReply` for too large a file."""
    with filesystem.open(path, "rb") as file:
        data: bytes = file.read(bounds.LARGEST_REFERENCES + 1)
    if len(data) > bounds.LARGEST_REFERENCES:
        raise BadReply(
            f"{path.rpartition('/')[2]} of references has more than "
            f"{bounds.LARGEST_REFERENCES} bytes"
        )
    return data


def _check_packages() -> None:
    """Raises ImportError if no package that reads Parquet is installed."""
    import_module("pandas")
    try:
        import_module("fastparquet")
    except ImportError:
        import_module("pyarrow")
