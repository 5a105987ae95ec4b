"""The tree of groups and arrays of one mount, opened as they are looked at. Blocks."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from os import cpu_count
from threading import Lock

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.array.hierarchy import Hierarchy, is_name
from zarrfs.array.node_readers import LARGEST_DOCUMENT, Node
from zarrfs.array.parts import PartCache
from zarrfs.array.resize import Resize, ResizeConfig
from zarrfs.cache.arena import Arena
from zarrfs.cache.budget import MemoryBudget
from zarrfs.cache.chunk_cache import CachedArray, ChunkCache
from zarrfs.cache.chunk_source import ChunkSource
from zarrfs.cache.growth import Growth, most_rows
from zarrfs.cache.journal import Journal, JournalEntry
from zarrfs.cache.loaders import LoaderPool
from zarrfs.cache.stats import Stats
from zarrfs.cache.writable_array import WritableArray
from zarrfs.cache.write_back import WriteBack
from zarrfs.errors import (
    BudgetExceeded,
    EntryNotFound,
    JournalError,
    NodeNotFound,
    StoreConflict,
    StoreReadOnly,
    UnsupportedError,
    ZarrfsError,
)
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.flat_array import FlatArray
from zarrfs.fs.inodes import InodeSpace
from zarrfs.fs.nodes import MountedArray, MountedNode
from zarrfs.fs.variable_array import VariableArray
from zarrfs.store.base import Store
from zarrfs.views.elements import FlatConfig

log = logging.getLogger(__name__)

_REMOTE_LOADERS = 32
_LOCAL_RECHECK = 1.0
_REMOTE_RECHECK = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """One inode: a node, and the number of a directory or file within it."""

    node: MountedNode
    base: int
    local: int

    @property
    def inode(self) -> int:
        return self.base + self.local

    def sibling(self, local: int) -> Place:
        """Another place in the same node."""
        return Place(self.node, self.base, local)


class Tree:
    """Owns everything below the file system: hierarchy, caches, loader threads, store."""

    def __init__(self, store: Store, config: FileSystemConfig) -> None:
        self.store = store
        self.config = config
        self.stats = Stats()
        # Shard indexes have their own share, so that chunks cannot push them out.
        index_bytes = config.memory // 8
        self.parts = PartCache(index_bytes)
        # Changes have theirs, so that readers cannot push writers out, nor the other way;
        # and so has what is being stored, which must not wait for changes to be stored.
        dirty_bytes = config.memory // 4 if config.writable else 0
        storing_bytes = config.memory // 8 if config.writable else 0
        self.budget = MemoryBudget(config.memory - index_bytes - dirty_bytes - storing_bytes)
        loaders = config.loaders
        if loaders is None:
            loaders = (cpu_count() or 1) + 1 if store.cheap_stat else _REMOTE_LOADERS
        self.pool = LoaderPool(loaders)
        self.arena = Arena(self.budget)
        self.cache = ChunkCache(self.budget, self.pool, self.stats)
        self.write_back: WriteBack | None = None
        if config.writable:
            if (reason := store.read_only) is not None:
                raise StoreReadOnly(store.url, reason)
            for leftover in store.remove_leftovers():
                log.info("removed what a killed writer left behind: %s", leftover)
            self.write_back = WriteBack(
                MemoryBudget(dirty_bytes), storing_bytes, loaders, config.flush_delay, self.stats
            )
        self._journal = None if config.journal is None else Journal(config.journal)
        self._hierarchy = Hierarchy(store, config.zarr_format)
        self._inodes = InodeSpace()
        self._nodes: dict[str, MountedNode] = {}
        self._lock = Lock()
        self._started_ns = time.time_ns()

    def mount_root(self) -> Place:
        """The source itself.

        Raises NodeNotFound where it is not Zarr, and the reason where it is an array
        that cannot be served.
        """
        node = self._hierarchy.root()
        if node.metadata is None:
            raise UnsupportedError(self.store.url, node.problem or "cannot be served")
        mounted = self._open(node, strict=True)
        return self._add(mounted)

    def child(self, parent: Place, name: str) -> Place:
        """The group or array ``name`` in a group. Raises EntryNotFound."""
        path = f"{parent.node.node.path}/{name}".lstrip("/")
        if not is_name(name):
            raise EntryNotFound(path)
        with self._lock:
            known = self._nodes.get(path)
        if known is None:
            node = self._hierarchy.node(path)
            if node is None:
                raise EntryNotFound(path)
            known = self._open(node, strict=False)
        return self._add(known)

    def children(self, group: Place) -> list[str]:
        """Names of the groups and arrays in a group, sorted."""
        return self._hierarchy.children(group.node.node.path)

    def find(self, inode: int) -> Place:
        """What an inode stands for. Raises EntryNotFound for one that was never given out."""
        found = self._inodes.find(inode)
        if found is None:
            raise EntryNotFound(f"inode {inode}")
        path, local = found
        return Place(self._nodes[path], inode - local, local)

    def document(self, key: str) -> bytes:
        """A stored metadata document, byte for byte. Raises EntryNotFound, StoreError."""
        blob = self.store.get(key, limit=LARGEST_DOCUMENT)
        if blob is None:
            raise EntryNotFound(key)
        return bytes(blob.data)

    def replay_growth(self) -> None:
        """Have metadata say how arrays grew in an earlier mount, before they are opened.

        Blocks. What does not fit any more is left out, with a warning. Raises ZarrfsError.
        """
        if self._journal is None or self.write_back is None:
            return
        for entry in self._journal.growths():
            shape = (entry.rows, *entry.shape[1:])
            try:
                Resize(self.store, entry.path, shape, expected=entry.shape).run(room_made=True)
                log.info("/%s has the shape %s now, from the journal", entry.path, list(shape))
            except (StoreConflict, NodeNotFound) as error:
                log.warning("/%s is not made longer from the journal: %s", entry.path, error)
            self._journal.remove_growth(entry)

    def replay(self) -> None:
        """Store what an earlier mount of this source had to leave in its journal. Blocks.

        What may not be stored any more is set aside, with a warning. Raises ZarrfsError
        where storing fails again.
        """
        if self._journal is None or self.write_back is None:
            return
        by_path: dict[str, list[JournalEntry]] = defaultdict(list)
        for entry in self._journal.entries():
            by_path[entry.path].append(entry)
        for path, entries in by_path.items():
            array = self._writable(path)
            refused = entries if array is None else array.restore(entries)
            for entry in entries:
                if entry not in refused:
                    self._journal.remove(entry)
                    log.info("stored chunk %s of /%s from the journal", entry.index, path)
                    continue
                log.warning(
                    "chunk %s of /%s from the journal is older than what is stored: kept as %s",
                    entry.index,
                    path,
                    self._journal.set_aside(entry),
                )

    def _writable(self, path: str) -> WritableArray | None:
        place = self.mount_root()
        try:
            for name in filter(None, path.split("/")):
                place = self.child(place, name)
        except EntryNotFound:
            return None
        return place.node.writable if isinstance(place.node, MountedArray) else None

    def drain(self) -> list[ZarrfsError]:
        """Store all changes. Blocks. What could not be stored is kept in the journal.

        Returns why, and where it is kept.
        """
        if self.write_back is None or not (errors := self.write_back.drain()):
            return []
        if self._journal is None:
            return errors
        try:
            kept = self.write_back.keep(self._journal)
        except JournalError as error:
            return [*errors, error]
        where = JournalError(
            f"{len(kept)} changed chunks are kept in {self._journal.directory} and will be "
            "stored by the next mount"
        )
        return [*errors, where]

    def close(self) -> None:
        """Stop the threads and close the store. Changes that are not stored are lost."""
        if self.write_back is not None:
            self.write_back.close()
        self.pool.close()
        self.cache.close()
        self.store.close()

    @property
    def arrays(self) -> int:
        """Number of arrays opened so far."""
        return sum(isinstance(node, MountedArray) for node in list(self._nodes.values()))

    def _add(self, node: MountedNode) -> Place:
        path = node.node.path
        with self._lock:
            node = self._nodes.setdefault(path, node)
            base = self._inodes.claim(path, node.size)
            if base is None and isinstance(node, MountedArray):
                node.drop_trees("chunks/ and shards/ are not shown: there are too many chunks")
                base = self._inodes.claim(path, node.size)
        if base is None:
            raise EntryNotFound(f"{path}: no inode is left")
        return Place(node, base, 0)

    def _open(self, node: Node, *, strict: bool) -> MountedNode:
        mtime_ns = node.mtime_ns or self._started_ns
        if not isinstance(node.metadata, ArrayMetadata):
            return MountedNode(node, node.problem, mtime_ns)
        config = self.config
        metadata = node.metadata
        if rows := self._rows_to_come(metadata):
            layout = metadata.layout.resized((rows, *metadata.shape[1:]))
            metadata = replace(metadata, layout=layout)
        try:
            array = Array(
                self.store,
                node.path,
                metadata,
                self.parts,
                ArrayConfig(self.cache.largest_load, config.fill_missing),
            )
        except BudgetExceeded as error:
            if strict:
                raise
            return MountedNode(
                Node(node.path, None, str(error), node.documents, node.mtime_ns),
                str(error),
                mtime_ns,
            )
        recheck = config.recheck
        if recheck is None:
            recheck = _LOCAL_RECHECK if self.store.cheap_stat else _REMOTE_RECHECK
        cached = CachedArray(self.cache, array, recheck)
        source: ChunkSource = cached
        growth = None
        if self.write_back is not None and array.layout.data_type.fixed_size:
            writer = ChunkWriter(
                array,
                # A chunk that must not be missing must be stored, whatever it holds.
                store_fill=config.store_fill or not config.fill_missing,
                largest_shard=config.memory // 4,
            )
            source = WritableArray(self.write_back, cached, writer)
            if rows:
                clearing = ResizeConfig(self.cache.largest_load, store_fill=config.store_fill)
                growth = Growth(self.write_back, cached, source.flush, clearing)
        flat = FlatConfig(config.byteorder, config.order)
        if array.layout.data_type.fixed_size:
            return FlatArray(node, source, mtime_ns, flat, self.arena, growth)
        return VariableArray(node, source, mtime_ns, flat)

    def _rows_to_come(self, metadata: ArrayMetadata) -> int:
        """How many an array can have that may be resized; 0 where it may not."""
        layout, shape = metadata.layout, metadata.shape
        if not self.config.resize or not shape or not layout.data_type.fixed_size:
            return 0
        if self.config.order == "F" and len(shape) > 1:
            # Its first axis is the fastest one: it does not grow at the end.
            return 0
        return most_rows(shape, layout.data_type.item_size, layout.stored.axes[0].reach)
