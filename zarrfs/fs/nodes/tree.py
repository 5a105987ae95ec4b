"""The tree of groups and arrays of one mount, opened as they are looked at. Blocks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs import bounds
from zarrfs.array.node_readers import Node, join
from zarrfs.cache.caches import CacheConfig, Caches, nodes_share
from zarrfs.cache.write.journal.journal import Journal
from zarrfs.counted import counted
from zarrfs.errors import (
    EncodingChanged,
    EntryNotFound,
    JournalError,
    NodeNotFound,
    ObjectNotFound,
    UnsupportedError,
    ZarrfsError,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.nodes.live_nodes import LiveNodes
from zarrfs.fs.nodes.nodes import Local, MountedArray, MountedNode
from zarrfs.fs.nodes.opening import NodeOpener
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.source.documents import open_hierarchy
from zarrfs.fs.nodes.source.listings import Listings
from zarrfs.fs.nodes.source.source_nodes import SourceNodes
from zarrfs.fs.reload import same_data, same_metadata
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.store.base import Store
from zarrfs.store.plain_directory import PlainDirectory
from zarrfs.store.wrappers.timed import StoreTimes, TimedStore
from zarrfs.views.headers.grouped import Wanted, find_members
from zarrfs.views.stored_file import StoredFileView

log = logging.getLogger(__name__)


class Tree:
    """Owns everything below the file system: hierarchy, caches, loader threads, store.

    journal : for what cannot be stored when the mount ends; None: nothing is kept.
    """

    def __init__(
        self, store: Store, config: FileSystemConfig, workers: WorkerPool | None = None
    ) -> None:
        """``workers`` : as `Caches` takes them."""
        plain = store if isinstance(store, PlainDirectory) else None
        self.store_times = StoreTimes() if workers is None else workers.store_times
        self.store = store = TimedStore(store, self.store_times)
        self.config = config
        caches = CacheConfig(*(getattr(config, name) for name in CacheConfig._fields))
        self._caches = Caches(store, caches, workers)
        self.drop_caches = self._caches.drop
        self.stats = self._caches.stats
        self.parts = self._caches.parts
        self.budget = self._caches.budget
        self.cache = self._caches.cache
        self.write_back = self._caches.write_back
        self.journal = None
        if config.journal is not None and self.write_back is not None:
            self.journal = Journal(config.journal)
        self._hierarchy, self.documents = open_hierarchy(store, config, plain)
        self._opener = NodeOpener(
            store,
            config,
            self._caches,
            self._group_attributes,
            self._node,
            self._hierarchy.is_kept,
            self._members,
            plain,
        )
        self._root = config.path
        self.nodes = LiveNodes(self._root, nodes_share(config.memory), self._hierarchy.release)
        self.source = SourceNodes(self._hierarchy, plain, store.url, self._root)
        self.listings = Listings(self._hierarchy, distant=not self.store.traits.near)

    def mount_root(self) -> Place:
        """The source itself, or the node in it that the mount shows.

        Raises NodeNotFound where it is not Zarr, and the reason where it is an array
        that cannot be served.
        """
        with self.nodes.making(self._root):
            if (known := self.nodes.get(self._root)) is not None:
                return known
            node = self.source.root()
            if node.metadata is None:
                where = join(self.store.url, self._root)
                raise UnsupportedError(where, node.problem or "cannot be served")
            return self.nodes.put(self._open(node))

    def _open(self, node: Node) -> MountedNode:
        is_root = node.path == self._root
        opened = self._opener.open(node, strict=is_root)
        opened.is_root = is_root
        return opened

    def find_node(self, path: str) -> Place:
        """The node at ``path``, wherever below the root. Blocks. Raises EntryNotFound."""
        place = self.mount_root()
        if path != self._root:
            if self._root and not path.startswith(f"{self._root}/"):
                raise EntryNotFound(path)
            for name in path[len(self._root) :].strip("/").split("/"):
                place = self.child(place, name)
        return place

    def known_child(self, parent: Place, name: str) -> Place | None:
        """The group or array ``name`` in a group, if it is in memory. Does not block.

        Raises EntryNotFound for what is no name.
        """
        return self.nodes.get(_child_path(parent, name))

    def child(self, parent: Place, name: str) -> Place:
        """The group or array ``name`` in a group. Blocks. Raises EntryNotFound."""
        return self._at(_child_path(parent, name))

    def _at(self, path: str) -> Place:
        """The node at ``path``, below one that is in memory. Blocks. Raises EntryNotFound."""
        if (known := self.nodes.get(path)) is not None:
            return known
        with self.nodes.making(path):
            if (known := self.nodes.get(path)) is not None:
                return known
            if (node := self._hierarchy.listed(path)) is None:
                raise EntryNotFound(path)
            return self.nodes.put(self._open(node))

    def enter(self, place: Place) -> Place:
        """A file of a plain directory as the array or group that it is. Blocks.

        Raises EntryNotFound where it is not there any more.
        """
        path = place.node.node.path
        with self.nodes.making(path):
            if (known := self.nodes.get(path)) is not None and not known.node.is_unopened:
                return known.sibling(place.local)
            if (node := self.source.enter(path)) is None:
                raise EntryNotFound(path)
            # The file stays open for those who look into it.
            self.nodes.pin(path)
            return self.nodes.put(self._open(node)).sibling(place.local)

    def find(self, inode: int) -> Place | None:
        """The place of an inode, if its node is in memory. Does not block.

        Raises EntryNotFound for an inode that stands for nothing.
        """
        return self.nodes.find(inode)[2]

    def find_again(self, inode: int) -> Place:
        """The place of an inode whose node may have been dropped. Blocks.

        Raises EntryNotFound also if the node is not there any more, and StoreError.
        """
        path, local, place = self.nodes.find(inode)
        if place is not None:
            return place
        # From the root down, because consolidated metadata decide on all that is below them. A
        # group in use is not dropped meanwhile.
        slashes = [at for at, character in enumerate(path) if character == "/"]
        groups = [self._at(path[:at]) for at in slashes if at >= len(self._root)]
        place = self._at(path).sibling(local)
        groups.clear()
        if place.inode != inode:
            raise EntryNotFound(f"inode {inode}")
        return place

    def trim(self) -> None:
        """Drop nodes that nobody uses, if all take too much memory. Loop only."""
        for left in self.nodes.trim():
            if left.array is not None:
                self._caches.forget(left.array)
                self._caches.pool.submit(left.close, ahead=True)

    def named_inodes(self) -> list[int]:
        """Inodes of all files of nodes in memory, except files of chunks and shards.

        The kernel knows no attributes of files of other nodes, except of those.
        """
        return [
            place.sibling(local).inode
            for place in self.nodes.all()
            for local in (Local.DIRECTORY, *dict(place.node.names()).values())
        ]

    def stored_file(self, node: MountedArray, stored: Index) -> StoredFileView:
        """A stored object as it is. Blocks. Raises ObjectNotFound, StoreError."""
        key, info = node.array.array.key(stored), node.array.array.stored_info(stored)
        if info is None:
            raise ObjectNotFound(key)
        return StoredFileView(self.store, key, info.size, self._opener.run, info.generation)

    def reload(self) -> None:
        """Read all metadata again, and rely on nothing that was read of the data. Blocks.

        A node whose metadata have changed is opened anew, after the changes to it are
        stored; what is open of it then fails, unless its elements lie as before. A node that
        is gone, or cannot be read now, stays. Raises ZarrfsError for the first that failed,
        after the others.
        """
        self._hierarchy.forget()
        self.documents.forget()
        self.listings.forget()
        failed: list[ZarrfsError] = []
        if self._root:
            try:
                self.source.root()
            except NodeNotFound:
                pass  # the log says so below
            except ZarrfsError as error:
                failed.append(error)
        # Parents first: below consolidated metadata those decide.
        for path in sorted(place.node.node.path for place in self.nodes.all()):
            try:
                self._reload(path)
            except ZarrfsError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _reload(self, path: str) -> None:
        with self.nodes.making(path):
            if (old := self.nodes.peek(path)) is not None:
                self._reload_node(path, old)

    def _reload_node(self, path: str, old: MountedNode) -> None:
        if isinstance(old, MountedArray):
            old.array.freshness.expire()
            if old.writable is not None:
                try:
                    old.writable.flush()
                except EncodingChanged as error:
                    # These changes wait for the journal, and readers get the array as it is now.
                    log.warning("not stored: %s", error)
        node = self.source.read(path)
        if node is None or (node.metadata is None and path == self._root):
            log.warning(
                "%s was deleted from the source; the mount shows what it has in memory", f"/{path}"
            )
            return
        if isinstance(old, MountedArray) and old.rows is not None:
            node = old.rows.as_shown(node)
        if same_metadata(old.node, node):
            return
        if same_data(old.node, node):
            old.node = node
            return
        self.nodes.put(self._open(node))
        # The kernel keeps one copy of a file's bytes, which must not be of both.
        old.superseded = True
        if isinstance(old, MountedArray):
            old.retire()
        log.info("the metadata of %s changed", f"/{path}")

    def metadata_due(self, place: Place) -> bool:
        """Whether `recheck_metadata` would ask the store."""
        if isinstance(place.node, MountedArray) and place.node.rows is not None:
            return False  # this mount changes them itself
        return time.monotonic() - place.node.looked >= self.config.recheck_metadata

    def recheck_metadata(self, place: Place) -> bool:
        """Look at the metadata of a node again; whether it is opened anew. Blocks.

        Raises EntryNotFound where it is not there any more, and StoreError.
        """
        path = place.node.node.path
        place.node.looked = time.monotonic()
        node = self.source.read(path)
        if node is None:
            raise EntryNotFound(path)
        if same_metadata(place.node.node, node):
            return False
        self.listings.forget()
        self._reload(path)
        return True

    @property
    def dirty_bytes(self) -> int:
        """Bytes of chunks with changes that are not stored yet."""
        return 0 if self.write_back is None else self.write_back.dirty_bytes

    def drain(self) -> list[ZarrfsError]:
        """Store all changes, or keep them in the journal. Blocks. Returns why, and where."""
        if self.write_back is None:
            return []
        errors = self.write_back.drain()
        if self.journal is None:
            return errors
        # Also where all is stored: what was kept when it was not, is not needed any more.
        kept = self.write_back.keep(self.journal)
        errors += kept.errors
        if errors and kept.files:
            changes = counted(len(kept.files), "changed chunk")
            where = f"{changes} kept in {self.journal.directory}; "
            errors.append(JournalError(f"{where}the next mount with -o rw stores them"))
        return errors

    def close(self) -> None:
        """Stop the threads and close the store. Changes that are not stored are lost."""
        # Threads that wait for the store would be waited for.
        self.store.give_up()
        self.stop()
        self.store.close()

    def stop(self) -> None:
        """Stop the threads, and leave the store open for its owner."""
        self._opener.close()
        self._caches.close()

    def writable_places(self) -> list[Place]:
        """`array.bin` of each array that has been looked at and can be written to."""
        return [
            place.sibling(Local.FLAT)
            for place in self.nodes.all()
            if place.node.writable is not None
        ]

    @property
    def memory(self) -> int:
        """Bytes that the mount may take."""
        return self._caches.memory

    def set_memory(self, memory: int) -> None:
        """Change the bytes that the mount may take. Blocks. Raises BudgetExceeded."""
        self._caches.set_memory(memory)
        self.nodes.most = nodes_share(memory)

    @property
    def arrays(self) -> int:
        """Number of arrays in memory."""
        return sum(isinstance(place.node, MountedArray) for place in self.nodes.all())

    def _members(self, path: str, wanted: Wanted) -> Iterator[tuple[str, MountedNode]]:
        """The nodes of a group that a format asks for, as far as they are there.

        Raises ZarrfsError.
        """
        if (group := self.nodes.get(path)) is None:
            raise EntryNotFound(path)
        places: dict[str, Place] = {"": group}

        def reach(below: str) -> Place:
            if (place := places.get(below)) is None:
                parent, _, name = below.rpartition("/")
                place = places[below] = self.child(reach(parent), name)
            return place

        def find(below: str) -> MountedNode | None:
            try:
                return reach(below).node
            except EntryNotFound:
                return None

        return find_members(
            wanted,
            lambda below: self.listings.names(places[below].node.node.path),
            find,
            lambda node: node.is_group,
        )

    def _group_attributes(self, path: str) -> Mapping[str, Any]:
        """The attributes of a group above a node that is in memory. Does not block."""
        if (above := self.source.attributes_above.get(path)) is not None:
            return above
        group = self.nodes.peek(path)
        metadata = None if group is None else group.node.metadata
        return {} if metadata is None else metadata.attributes

    def _node(self, path: str) -> Node | None:
        """The node of a path; None if there is none. Blocks. Raises ZarrfsError.

        A local store is asked again: a writer may have made several arrays longer.
        """
        known = None if self.store.traits.near else self.nodes.peek(path)
        return self._hierarchy.listed(path) if known is None else known.node


def _child_path(parent: Place, name: str) -> str:
    path = f"{parent.node.node.path}/{name}".lstrip("/")
    if not bounds.is_name(name):
        raise EntryNotFound(path)
    return path
