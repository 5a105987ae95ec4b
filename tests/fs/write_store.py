"""A writable store in memory that counts what is asked, and fails or waits where a test says."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from zarrfs.errors import StoreConflict, StoreError
from zarrfs.store.base import (
    ANY,
    Blob,
    ByteRange,
    Data,
    Expected,
    ObjectInfo,
    Store,
    StoreTraits,
)
from zarrfs.store.ranges import check_key, resolve

Operation = Literal["get", "ranges", "info", "put", "delete"]


@dataclass(frozen=True)
class Request:
    """One call of the store."""

    operation: Operation
    key: str


class WriteStore(Store):
    """Compares and replaces in one step. Every `put` makes a new generation.

    before : called with each request before it is carried out, without any lock held; may
        wait, change objects, or raise.
    after : the same, when it has been carried out.
    """

    url = "memory://"
    traits = StoreTraits(near=True)
    read_only = None

    def __init__(self, objects: Mapping[str, bytes] | None = None, *, cheap: bool = True) -> None:
        self.traits = StoreTraits(near=cheap)
        self.objects: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None
        self._generations: dict[str, int] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()
        for key, data in (objects or {}).items():
            self.replace(key, data)

    @classmethod
    def of_directory(cls, root: Path, *, cheap: bool = True) -> WriteStore:
        files = [path for path in root.rglob("*") if path.is_file()]
        return cls({str(p.relative_to(root)): p.read_bytes() for p in files}, cheap=cheap)

    def replace(self, key: str, data: bytes | None) -> None:
        """What another program does, None: delete. Not counted."""
        with self._lock:
            if data is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = data
                self._generations[key] = next(self._numbers)

    def counted(self, *operations: Operation) -> Counter[str]:
        """How often each data object was asked for in one of these ways."""
        return Counter(
            request.key
            for request in self.requests
            if request.operation in operations and not _is_document(request.key)
        )

    def get(self, key: str, *, limit: int) -> Blob | None:
        self._asked("get", key)
        with self._lock:
            info = self._info(key)
            if info is None:
                return None
            if info.size > limit:
                raise StoreError(key, f"has {info.size} bytes, more than the {limit} allowed")
            blob = Blob(self.objects[key], info)
        self.after(Request("get", key))
        return blob

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        self._asked("ranges", key)
        with self._lock:
            info = self._info(key)
            if info is None:
                return None
            data = memoryview(self.objects[key])
        spans = [resolve(wanted, info.size) for wanted in ranges]
        self.after(Request("ranges", key))
        return [Blob(data[span.start : span.stop], info) for span in spans]

    def info(self, key: str) -> ObjectInfo | None:
        self._asked("info", key)
        with self._lock:
            return self._info(key)

    def list_dir(self, prefix: str) -> Iterator[str]:
        start = f"{prefix}/" if prefix else ""
        with self._lock:
            below = [key.removeprefix(start) for key in self.objects if key.startswith(start)]
        yield from sorted({name.partition("/")[0] + "/" * ("/" in name) for name in below})

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        self._asked("put", key)
        data = b"".join(parts)
        with self._lock:
            self._check(key, expected)
            self.objects[key] = data
            self._generations[key] = next(self._numbers)
            info = self._info(key)
        assert info is not None
        self.after(Request("put", key))
        return info

    def delete(self, key: str, *, expected: Expected) -> None:
        self._asked("delete", key)
        with self._lock:
            if key not in self.objects:
                return
            self._check(key, expected)
            del self.objects[key]
        self.after(Request("delete", key))

    def close(self) -> None:
        pass

    def _asked(self, operation: Operation, key: str) -> None:
        check_key(key)
        request = Request(operation, key)
        self.requests.append(request)
        self.before(request)

    def _info(self, key: str) -> ObjectInfo | None:
        if (data := self.objects.get(key)) is None:
            return None
        generation = self._generations[key]
        return ObjectInfo(len(data), generation, (generation,))

    def _check(self, key: str, expected: Expected) -> None:
        info = self._info(key)
        if expected is not ANY and (None if info is None else info.generation) != expected:
            raise StoreConflict(key, "was changed by another writer")


def refusing(
    error: type[Exception], *operations: str, key: str | None = None
) -> Callable[[Any], None]:
    """For ``before`` or ``after`` of a store: fails these requests, of one object or of all."""

    def refuse(request: Any) -> None:
        if request.operation in (operations or (request.operation,)) and key in (None, request.key):
            raise error(request.key, "by this test")

    return refuse


def _is_document(key: str) -> bool:
    name = key.rpartition("/")[2]
    return name.startswith((".z", "zarr.json")) or name in ("meta", "attrs")
