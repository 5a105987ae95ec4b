"""Whether an array that is open is still in the store."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress

from zarrfs.array.node_readers import LARGEST_DOCUMENT, join
from zarrfs.errors import ZarrfsError
from zarrfs.format.metadata.documents import V2_CONSOLIDATED, V3_NODE
from zarrfs.format.metadata.resized import shapes_below
from zarrfs.store.base import Generation, Store

# Where a group has the metadata of the nodes below it; version 1 has no groups.
_CONSOLIDATED = {3: V3_NODE, 2: V2_CONSOLIDATED}
# Seconds between looks at whether a remote array is still there.
_LOOK_S = 30.0


def consolidated_above(path: str, zarr_format: int) -> Iterator[tuple[str, str]]:
    """Consolidated documents of groups above, and the array's path below each group."""
    if (name := _CONSOLIDATED.get(zarr_format)) is None:
        return
    parts = path.split("/") if path else []
    for depth in reversed(range(len(parts))):
        yield join("/".join(parts[:depth]), name), "/".join(parts[depth:])


class Presence:
    """The metadata of one array, as the store has them now.

    document : of the array itself, see `ArrayConfig`.
    """

    def __init__(
        self, store: Store, path: str, zarr_format: int, document: str | None = None
    ) -> None:
        self._store = store
        self._path = path
        self._zarr_format = zarr_format
        self._document = document
        # A consolidated document that leads readers to an array without one of its own.
        self._leads: tuple[str, Generation] | None = None
        self._look_after = 0.0 if store.traits.near else _LOOK_S
        if store.traits.immutable:
            self._look_after = math.inf
        self._looked = time.monotonic()
        self._deleted = False

    def deleted(self) -> bool:
        """Whether the array is not in the store any more: then missing chunks say nothing."""
        if self._document is not None and time.monotonic() - self._looked >= self._look_after:
            with suppress(ZarrfsError):
                self._deleted = not self._is_there(self._document) and not self.described_above()
            self._looked = time.monotonic()
        return self._deleted

    def _is_there(self, document: str) -> bool:
        """Whether the document is in the store.

        Some web servers send objects and answer 404 when only asked about them.
        """
        store = self._store
        there = store.info(document) is not None
        return there or store.get(document, limit=LARGEST_DOCUMENT) is not None

    def described_above(self) -> bool:
        """Whether consolidated metadata of a group lead readers to the array."""
        if self._leads is not None:
            key, seen = self._leads
            info = self._store.info(key)
            if info is not None and info.generation == seen:
                return True
        for key, below in consolidated_above(self._path, self._zarr_format):
            blob = self._store.get(key, limit=LARGEST_DOCUMENT)
            if blob is not None and shapes_below(bytes(blob.data), below, key):
                self._leads = key, blob.info.generation
                return True
        return False
