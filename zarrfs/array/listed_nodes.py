"""The children of a group read together, from a remote store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock

from zarrfs.array.node_readers import DocumentReader, Node, NodeReader, join
from zarrfs.errors import StoreError
from zarrfs.format.metadata.node import kept_bytes
from zarrfs.store.base import Store
from zarrfs.store.wrappers.assumed import AssumedStore

# Metadata of one array take some KiB. Larger documents are read when the array is opened, since
# many of them together could take any amount of memory.
_LARGEST = 256 << 10
_BATCH = 512
# Nodes kept until a caller asks for them; one takes some 10 KiB.
_MOST_KEPT = 4096
# Names that are known to be nodes; one takes some 200 bytes.
_MOST_SEEN = 1 << 17
# Bytes of attributes and fill values of one kept node.
_LARGEST_KEPT = 16 << 10
_LISTING_THREADS = 16


@dataclass(eq=False)
class ListedNodes:
    """Nodes that were read when a group was listed. Thread-safe.

    seconds : for which a listing is trusted.
    bare : returns the node of a directory without metadata, or None if it is no node.

    Shared state, under ``_lock``: ``_seen``, when the node at a path was last seen, and ``_kept``,
    the nodes that no caller has asked for yet.
    """

    store: Store
    readers: Sequence[NodeReader]
    documents: DocumentReader
    seconds: float
    bare: Callable[[str], Node | None]
    _lock: Lock = field(default_factory=Lock)
    _seen: dict[str, float] = field(default_factory=dict)
    _kept: dict[str, tuple[Node, NodeReader | None]] = field(default_factory=dict)

    def forget(self) -> None:
        """Trust no earlier listing."""
        with self._lock:
            self._seen.clear()
            self._kept.clear()

    def take(self, path: str) -> tuple[Node, NodeReader | None] | None:
        """A node that a recent listing found, and the reader that read it; only once per node."""
        with self._lock:
            found = self._kept.pop(path, None)
            return found if self._is_recent(path) else None

    def exist(self, paths: Sequence[str]) -> list[bool]:
        """Whether there is a node at each path. A node that cannot be read counts."""
        with self._lock:
            unknown = [path for path in paths if not self._is_recent(path)]
        there = dict.fromkeys(paths, True)
        for at in range(0, len(unknown), _BATCH):
            there.update(self._read(unknown[at : at + _BATCH]))
        return [there[path] for path in paths]

    def _is_recent(self, path: str) -> bool:
        seen = self._seen.get(path)
        return seen is not None and time.monotonic() - seen < self.seconds

    def _read(self, paths: Sequence[str]) -> dict[str, bool]:
        """Read the nodes at these paths; returns whether each exists."""
        there: dict[str, bool] = {}
        left = list(paths)
        for reader in self.readers:
            keys = [[join(path, name) for name in reader.documents] for path in left]
            asked = self.store.get_many([key for each in keys for key in each], limit=_LARGEST)
            missing = []
            for path, own in zip(left, keys, strict=True):
                # Later documents arrive while this node is parsed.
                fetched = AssumedStore(
                    self.store, dict(zip(own, islice(asked, len(own)), strict=True))
                )
                try:
                    node = reader.read(fetched, path, self.documents)
                except StoreError:
                    # The listing has the node, and opening it returns the error.
                    there[path] = True
                    continue
                if node is None:
                    missing.append(path)
                else:
                    there[path] = True
                    self._keep(path, node, reader)
            left = missing
        if left:
            with ThreadPoolExecutor(_LISTING_THREADS) as pool:
                there.update(zip(left, pool.map(self._is_bare, left), strict=True))
        return there

    def _is_bare(self, path: str) -> bool:
        try:
            node = self.bare(path)
        except StoreError:
            return True
        if node is not None:
            self._keep(path, node, None)
        return node is not None

    def _keep(self, path: str, node: Node, reader: NodeReader | None) -> None:
        with self._lock:
            self._seen.pop(path, None)
            self._seen[path] = time.monotonic()
            while len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            if node.metadata is not None and kept_bytes(node.metadata) > _LARGEST_KEPT:
                return
            self._kept[path] = node, reader
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
