"""A store in which the caller replaces some objects, whatever the store holds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

from zarrfs.errors import StoreError, StoreReadOnly, StoreTooLarge
from zarrfs.store.base import (
    Blob,
    ByteRange,
    Data,
    Expected,
    ObjectInfo,
    Put,
    Store,
)
from zarrfs.store.ranges import resolve
from zarrfs.store.wrappers.wrapper import StoreWrapper


class AssumedStore(StoreWrapper):
    """The store ``inner``, with given objects in place of its own.

    objects : bytes by key; None: there is no such object. These objects cannot be written.
    """

    def __init__(self, inner: Store, objects: Mapping[str, bytes | None]) -> None:
        super().__init__(inner)
        self._objects = dict(objects)

    def get(self, key: str, *, limit: int) -> Blob | None:
        if key not in self._objects:
            return self._inner.get(key, limit=limit)
        if (data := self._objects[key]) is None:
            return None
        if len(data) > limit:
            raise StoreTooLarge(key, f"has {len(data)} bytes, more than the {limit} allowed")
        return Blob(data, _info(data))

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        if any(key in self._objects for key in keys):
            return super().get_many(keys, limit=limit)
        return self._inner.get_many(keys, limit=limit)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        if key not in self._objects:
            return self._inner.get_ranges(key, ranges)
        if (data := self._objects[key]) is None:
            return None
        spans = [resolve(wanted, len(data)) for wanted in ranges]
        return [Blob(data[span.start : span.stop], _info(data)) for span in spans]

    def info(self, key: str) -> ObjectInfo | None:
        if key not in self._objects:
            return self._inner.info(key)
        data = self._objects[key]
        return None if data is None else _info(data)

    def list_dir(self, prefix: str) -> Iterator[str]:
        """Without the objects that ``inner`` lacks: the caller that gave them knows their names."""
        for name in self._inner.list_dir(prefix):
            key = f"{prefix}/{name}" if prefix else name
            if self._objects.get(key, b"") is not None:
                yield name

    def list_all(self, prefix: str) -> None:
        return None

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        self._check(key)
        return self._inner.put(key, parts, expected=expected)

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        if any(put.key in self._objects for put in puts):
            return super().put_many(puts)
        return self._inner.put_many(puts)

    def delete(self, key: str, *, expected: Expected) -> None:
        self._check(key)
        self._inner.delete(key, expected=expected)

    def _check(self, key: str) -> None:
        if key in self._objects:
            raise StoreReadOnly(key, "is assumed, and not stored")


def _info(data: bytes) -> ObjectInfo:
    return ObjectInfo(len(data), None, ("assumed", len(data), zlib.crc32(data)))
