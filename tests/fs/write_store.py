"""A writable store in memory that counts what is asked, and fails or waits where a test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.fs.memory_store import MemoryStore
from zarrfs.errors import StoreConflict
from zarrfs.store.base import ANY, Blob, ByteRange, Data, Expected, ObjectInfo
from zarrfs.store.ranges import check_key

Operation = Literal["get", "ranges", "info", "put", "delete"]


@dataclass(frozen=True)
class Request:
    """One call of the store."""

    operation: Operation
    key: str


class WriteStore(MemoryStore):
    """Compares and replaces in one step. Every `put` makes a new generation.

    before : called with each request before it is carried out, without any lock held; may
        wait, change objects, or raise.
    after : the same, when it has been carried out.
    """

    read_only = None

    def __init__(self, objects: Mapping[str, bytes] | None = None, *, cheap: bool = True) -> None:
        super().__init__(objects, cheap=cheap)
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None

    def counted(self, *operations: Operation) -> Counter[str]:
        """How often each data object was asked for in one of these ways."""
        return Counter(
            request.key
            for request in self.requests
            if request.operation in operations and not _is_document(request.key)
        )

    def get(self, key: str, *, limit: int) -> Blob | None:
        self._asked("get", key)
        if (blob := super().get(key, limit=limit)) is not None:
            self.after(Request("get", key))
        return blob

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        self._asked("ranges", key)
        if (blobs := super().get_ranges(key, ranges)) is not None:
            self.after(Request("ranges", key))
        return blobs

    def info(self, key: str) -> ObjectInfo | None:
        self._asked("info", key)
        return super().info(key)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        self._asked("put", key)
        with self._lock:
            self._check(key, expected)
            self.replace(key, b"".join(parts))
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
            self.replace(key, None)
        self.after(Request("delete", key))

    def _asked(self, operation: Operation, key: str) -> None:
        check_key(key)
        request = Request(operation, key)
        self.requests.append(request)
        self.before(request)

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
