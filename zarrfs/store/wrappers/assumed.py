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

    objects : by key, or the errors of reading them; None: there is no such object. These objects
        cannot be written.
    """

    def __init__(self, inner: Store, objects: Mapping[str, Blob | StoreError | None]) -> None:
        super().__init__(inner)
        self._objects = dict(objects)

    def get(self, key: str, *, limit: int) -> Blob | None:
        if key not in self._objects:
            return self._inner.get(key, limit=limit)
        blob = self._assumed(key)
        if blob is not None and blob.info.size > limit:
            raise StoreTooLarge(key, f"has {blob.info.size} bytes, more than the {limit} allowed")
        return blob

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        if any(key in self._objects for key in keys):
            return super().get_many(keys, limit=limit)
        return self._inner.get_many(keys, limit=limit)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        if key not in self._objects:
            return self._inner.get_ranges(key, ranges)
        if (blob := self._assumed(key)) is None:
            return None
        spans = [resolve(wanted, blob.info.size) for wanted in ranges]
        return [blob._replace(data=blob.data[span.start : span.stop]) for span in spans]

    def info(self, key: str) -> ObjectInfo | None:
        if key not in self._objects:
            return self._inner.info(key)
        blob = self._assumed(key)
        return None if blob is None else blob.info

    def list_dir(self, prefix: str) -> Iterator[str]:
        """Without the objects that ``inner`` lacks: the caller that gave them knows their names."""
        for name in self._inner.list_dir(prefix):
            key = f"{prefix}/{name}" if prefix else name
            if key not in self._objects or self._objects[key] is not None:
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

    def _assumed(self, key: str) -> Blob | None:
        found = self._objects[key]
        if isinstance(found, StoreError):
            raise found
        return found

    def _check(self, key: str) -> None:
        if key in self._objects:
            raise StoreReadOnly(key, "is assumed, and not stored")


def assumed(data: bytes) -> Blob:
    """An object that no store has."""
    return Blob(data, ObjectInfo(len(data), None, ("assumed", len(data), zlib.crc32(data))))
