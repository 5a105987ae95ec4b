"""The stored metadata documents as files, and what the store said of them last."""

from __future__ import annotations

import time
from contextlib import suppress

from zarrfs.array.node_readers import LARGEST_DOCUMENT
from zarrfs.errors import EntryNotFound
from zarrfs.store.base import ObjectInfo, Store

_MOST_KNOWN = 1 << 16


class Documents:
    """Thread-safe.

    fresh_seconds : how long the state of a document is relied on; 0: not at all.
    """

    def __init__(self, store: Store, fresh_seconds: float) -> None:
        self._store = store
        self._fresh_seconds = fresh_seconds
        self._known: dict[str, tuple[ObjectInfo, float]] = {}

    def read(self, key: str) -> bytes:
        """A document, byte for byte. Blocks. Raises EntryNotFound, StoreError."""
        blob = self._store.get(key, limit=LARGEST_DOCUMENT)
        if blob is None:
            raise EntryNotFound(key)
        self._know(key, blob.info)
        return bytes(blob.data)

    def info(self, key: str) -> ObjectInfo:
        """The state of a document. Blocks. Raises EntryNotFound, StoreError."""
        if (known := self.known(key)) is not None:
            return known[0]
        if (info := self._store.info(key)) is None:
            raise EntryNotFound(key)
        self._know(key, info)
        return info

    def known(self, key: str) -> tuple[ObjectInfo, float] | None:
        """The state, and for how many seconds it is relied on; None if the store must be asked."""
        if (found := self._known.get(key)) is None:
            return None
        left = found[1] + self._fresh_seconds - time.monotonic()
        return (found[0], left) if left > 0 else None

    def forget(self) -> None:
        self._known.clear()

    def _know(self, key: str, info: ObjectInfo) -> None:
        if self._fresh_seconds:
            self._known[key] = info, time.monotonic()
        if len(self._known) > _MOST_KNOWN:
            with suppress(KeyError, StopIteration, RuntimeError):
                del self._known[next(iter(self._known))]
