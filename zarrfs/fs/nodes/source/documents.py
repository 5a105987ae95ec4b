"""The stored metadata documents as files, and what the store said of them last."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import LARGEST_DOCUMENT
from zarrfs.errors import EntryNotFound
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.base import ObjectInfo, Store
from zarrfs.store.plain_directory import PlainDirectory

_MOST_KNOWN = 1 << 16


@dataclass(slots=True, eq=False, repr=False)
class Documents:
    """Thread-safe.

    fresh_seconds : how long the state of a document is relied on; 0: not at all.
    consolidated : as `Hierarchy.consolidated_size`.
    """

    store: Store
    fresh_seconds: float
    consolidated: Callable[[str], int | None]
    _known: dict[str, tuple[ObjectInfo, float]] = field(default_factory=dict)

    def read(self, key: str) -> bytes:
        """A document, byte for byte. Blocks. Raises EntryNotFound, StoreError."""
        blob = self.store.get(key, limit=LARGEST_DOCUMENT)
        if blob is None:
            raise EntryNotFound(key)
        self.know(key, blob.info)
        return bytes(blob.data)

    def state(self, key: str) -> tuple[ObjectInfo, float]:
        """The state of a document, and for how many seconds it may be relied on.

        A distant store is not asked for a document that consolidated metadata have. Until a program
        opens that one, its size is what zarr-python would have written.

        Blocks. Raises EntryNotFound, StoreError.
        """
        if (known := self.known(key)) is not None:
            return known
        if self.fresh_seconds and (size := self.consolidated(key)) is not None:
            info, _ = self._known.get(key, (ObjectInfo(size, None, ()), 0.0))
            return info, 0.0
        if (found := self.store.info(key)) is None:
            raise EntryNotFound(key)
        self.know(key, found)
        return found, self.fresh_seconds or math.inf

    def known(self, key: str) -> tuple[ObjectInfo, float] | None:
        """The state, and for how many seconds it is relied on; None if the store must be asked."""
        if (found := self._known.get(key)) is None:
            return None
        left = found[1] + self.fresh_seconds - time.monotonic()
        return (found[0], left) if left > 0 else None

    def forget(self) -> None:
        self._known.clear()

    def know(self, key: str, info: ObjectInfo) -> None:
        """The store has just said this of a document."""
        if self.fresh_seconds:
            self._known[key] = info, time.monotonic()
        if len(self._known) > _MOST_KNOWN:
            with suppress(KeyError, StopIteration, RuntimeError):
                del self._known[next(iter(self._known))]


def open_hierarchy(
    store: Store, config: FileSystemConfig, plain: PlainDirectory | None
) -> tuple[Hierarchy, Documents]:
    """The hierarchy of a source, and its documents as they were when it read them.

    plain : the source, where that is a directory of data of any kind.
    """
    use = config.consolidated
    if config.writable and use == "auto":
        use = "never"
    recheck = {} if config.recheck is None else {"recheck": config.recheck}
    keeps = not (store.traits.near or config.writable)
    documents = Documents(
        store,
        config.attribute_seconds if keeps else 0.0,
        lambda key: hierarchy.consolidated_size(key),  # noqa: PLW0108 - it is made below
    )
    hierarchy = Hierarchy(
        store,
        config.zarr_format,
        config.memory,
        plain=plain,
        consolidated=use,
        seen=documents.know,
        **recheck,
    )
    return hierarchy, documents
