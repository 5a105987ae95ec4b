"""The file system: answers what the kernel asks, without knowing the kernel.

Methods are called on the trio loop. What is in memory is answered at once; what has
to ask the store goes through a worker thread; chunks come through the cache's own
threads and wake the waiting request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from itertools import islice
from typing import Any, TypeVar

from zarrfs.cache.worker_pool import WorkerPool
from zarrfs.errors import (
    EntryNotFound,
    IsADirectory,
    NoSuchAttribute,
    NotADirectory,
    NotPermitted,
    ReadOnly,
    StoreListingUnsupported,
    ZarrfsError,
)
from zarrfs.fs import stat
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenFile, Space
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.inodes import ROOT_INODE
from zarrfs.fs.kernel_pages import KernelCache, KernelPages
from zarrfs.fs.nodes import STATUS_FILES, STATUS_NAMES, Local, MountedArray, TreePlace
from zarrfs.fs.open_files import OpenFiles
from zarrfs.fs.status import stats_document, to_json, to_metrics
from zarrfs.fs.threads import Threads
from zarrfs.fs.tree import Place, Tree
from zarrfs.fs.xattrs import chunk_xattrs, node_xattrs
from zarrfs.store.base import Store

T = TypeVar("T")

log = logging.getLogger(__name__)

_THREADS = 32
_ENTRIES_AT_ONCE = 128
# Inodes of which it is remembered how current the kernel's pages are.
_MOST_EPOCHS = 1 << 16


class FileSystem:
    """One mounted source.

    read, write, flush, fsync, release : see `OpenFiles`.
    """

    root_inode = ROOT_INODE

    def __init__(self, tree: Tree, document: Mapping[str, Any]) -> None:
        self._tree = tree
        self._document = document
        self._started = time.time()
        self._listings: dict[int, list[str]] = {}
        self._threads = Threads(tree.stats)
        self._pages = KernelPages()
        self._files = OpenFiles(
            self._threads,
            self._pages,
            tree.stats,
            self._content,
            read_only=not tree.config.writable,
        )
        # These are what the kernel asks for most, so nothing stands in between.
        self.read = self._files.read
        self.write = self._files.write
        self.flush = self._files.flush
        self.fsync = self._files.fsync
        self.release = self._files.release

    @classmethod
    def open(
        cls,
        store: Store,
        config: FileSystemConfig,
        document: Mapping[str, Any],
        workers: WorkerPool | None = None,
    ) -> FileSystem:
        """Open a source, before it is mounted. Blocks.

        document : what ``.zarrfs/config.json`` shows.
        workers : processes that decode; they end with the file system.

        Raises NodeNotFound where the source is not Zarr, and any other ZarrfsError
        where it is a single array that cannot be served.
        """
        tree = Tree(store, config, workers)
        try:
            tree.replay_growth()
            tree.mount_root()
            tree.replay()
        except BaseException:
            tree.close()
            raise
        return cls(tree, document)

    def set_kernel_cache(self, kernel_cache: KernelCache) -> None:
        """Where to say that data have changed."""
        self._pages.kernel = kernel_cache

    def close(self) -> None:
        """Stop threads and close the store, after the mount has ended. Blocks."""
        self._tree.close()

    async def reload(self) -> None:
        """Read all metadata again, and rely on nothing that was read of the data.

        Raises ZarrfsError where something could not be read; that stays what it was.
        """
        try:
            await self._threads.run(self._tree.reload)
        finally:
            self._listings.clear()
            # Sizes and names may have changed too.
            self._pages.forget(self._tree.named_inodes())

    def summary(self) -> str:
        """How it goes, in one line for people."""
        return (
            f"serving {self._tree.arrays} arrays, {len(self._files)} open files, "
            f"{self.dirty_bytes} bytes to store, {self._tree.stats.errors} errors"
        )

    def describe_state(self) -> str:
        """For people who look into a running daemon."""
        return to_json(stats_document(self._tree, self._started, len(self._files))).decode()

    # --- names ------------------------------------------------------------------

    async def lookup(self, parent: int, name: str) -> Attributes:
        """The entry ``name`` of a directory. Raises EntryNotFound, NotADirectory."""
        place = await self._child(self._tree.find(parent), name)
        return await self._attributes(await self._current(place))

    async def getattr(self, inode: int) -> Attributes:
        return await self._attributes(await self._current(self._tree.find(inode)))

    async def readdir(self, inode: int, cookie: int) -> AsyncGenerator[DirectoryEntry, None]:
        """Entries after ``cookie``, 0 for all; without ``.`` and ``..``."""
        directory = self._tree.find(inode)
        if not stat.is_directory(directory):
            raise NotADirectory(f"inode {inode}")
        tree_place = directory.node.place(directory.local)
        if tree_place is not None:
            async with aclosing(self._read_tree(directory, tree_place, cookie)) as entries:
                async for entry in entries:
                    yield entry
            return
        fixed = self._fixed_names(directory)
        for position, (name, local) in enumerate(fixed, 1):
            if position > cookie:
                place = directory.sibling(local)
                try:
                    attributes = stat.unmeasured(place) or await self._attributes(place)
                except EntryNotFound:
                    continue
                yield DirectoryEntry(name, attributes, position)
        if directory.local == Local.DIRECTORY and directory.node.is_group:
            names = await self._listing(directory, anew=cookie <= len(fixed))
            start = max(0, cookie - len(fixed))
            for position, name in islice(enumerate(names, len(fixed) + 1), start, None):
                try:
                    attributes = await self._attributes(await self._child(directory, name))
                except EntryNotFound:
                    continue
                yield DirectoryEntry(name, attributes, position)

    async def _current(self, place: Place) -> Place:
        """The place as the metadata have it now, where they are to be looked at again."""
        if not self._tree.metadata_due(place):
            return place
        if await self._threads.run(lambda: self._tree.recheck_metadata(place)):
            self._listings.clear()
            self._pages.forget(self._tree.named_inodes())
        return self._tree.find(place.inode)

    def _fixed_names(self, directory: Place) -> list[tuple[str, int]]:
        if directory.local == Local.STATUS_DIRECTORY:
            return list(STATUS_NAMES.items())
        return list(directory.node.names())

    async def _child(self, parent: Place, name: str) -> Place:
        if not stat.is_directory(parent):
            raise NotADirectory(f"inode {parent.inode}")
        tree_place = parent.node.place(parent.local)
        if tree_place is not None:
            prefix = tree_place.tree.numbers.child(tree_place.prefix, name)
            if prefix is None:
                raise EntryNotFound(name)
            return parent.sibling(tree_place.tree.local(prefix))
        for known, local in self._fixed_names(parent):
            if known == name:
                return parent.sibling(local)
        if parent.local != Local.DIRECTORY or not parent.node.is_group:
            raise EntryNotFound(name)
        return await self._threads.run(lambda: self._tree.child(parent, name))

    async def _listing(self, group: Place, *, anew: bool) -> list[str]:
        """Names of the children of a group; one listing serves a whole pass over it."""
        names = None if anew else self._listings.get(group.inode)
        if names is None:
            try:
                names = await self._threads.run(lambda: self._tree.children(group))
            except StoreListingUnsupported:
                # The children are there when asked for by name.
                names = []
            fixed = {name for name, _ in self._fixed_names(group)}
            names = [name for name in names if name not in fixed]
            self._listings[group.inode] = names
        return names

    async def _read_tree(
        self, directory: Place, place: TreePlace, cookie: int
    ) -> AsyncGenerator[DirectoryEntry, None]:
        numbers = place.tree.numbers
        width = numbers.width(place.prefix)
        for start in range(cookie, width, _ENTRIES_AT_ONCE):
            children = range(start, min(start + _ENTRIES_AT_ONCE, width))
            places = [
                directory.sibling(place.tree.local((*place.prefix, child))) for child in children
            ]
            for child, attributes in zip(children, await self._all_attributes(places), strict=True):
                yield DirectoryEntry(str(child), attributes, child + 1)

    # --- attributes -------------------------------------------------------------

    async def _attributes(self, place: Place) -> Attributes:
        size = 0
        if place.local in STATUS_FILES:
            size = len(self._status(place.local))
        if stat.needs_store(self._tree, place):
            return await self._threads.run(lambda: stat.attributes(self._tree, place))
        return stat.attributes(self._tree, place, size)

    async def _all_attributes(self, places: list[Place]) -> list[Attributes]:
        """One hop for all of them."""
        if any(stat.needs_store(self._tree, place) for place in places):
            return await self._threads.run(
                lambda: [stat.attributes(self._tree, place) for place in places]
            )
        return [stat.attributes(self._tree, place) for place in places]

    async def getxattr(self, inode: int, name: str) -> bytes:
        """Raises NoSuchAttribute."""
        value = self._xattrs(self._tree.find(inode)).get(name)
        if value is None:
            raise NoSuchAttribute(name)
        return value

    async def listxattr(self, inode: int) -> list[str]:
        return list(self._xattrs(self._tree.find(inode)))

    def _xattrs(self, place: Place) -> dict[str, bytes]:
        tree_place = place.node.place(place.local)
        if tree_place is not None and isinstance(place.node, MountedArray):
            return chunk_xattrs(place.node, tree_place)
        if place.local in (Local.DIRECTORY, Local.FLAT, Local.NPY):
            return node_xattrs(place.node)
        return {}

    async def statfs(self) -> Space:
        space = await self._threads.run(self._tree.store.free_space)
        return Space(0, 0) if space is None else Space(*space)

    # --- files ------------------------------------------------------------------

    async def open_file(self, inode: int, *, write: bool, truncate: bool = False) -> OpenFile:
        """Open a file. Truncating changes nothing: files have a fixed size, like devices.

        Where arrays may be resized, it leaves none of their rows.

        Raises ReadOnly, NotPermitted, IsADirectory, EntryNotFound.
        """
        place = self._tree.find(inode)
        if stat.is_directory(place):
            raise IsADirectory(f"inode {inode}")
        if write and not self._tree.config.writable:
            raise ReadOnly(f"inode {inode}")
        if truncate:
            await self._files.truncate(place, 0)
        return await self._files.open(place, write=write, truncate=truncate)

    async def _content(self, place: Place) -> bytes:
        """Content of a file that is made for each open."""
        if place.local in STATUS_FILES:
            return self._status(place.local)
        if place.local == Local.NOTE:
            return stat.note_content(place)
        key = place.node.document(place.local)
        if key is None:
            raise EntryNotFound(f"inode {place.inode}")
        return await self._threads.run(lambda: self._tree.document(key))

    def _status(self, local: int) -> bytes:
        if local == Local.CONFIG:
            return to_json(self._document)
        stats = stats_document(self._tree, self._started, len(self._files))
        return to_json(stats) if local == Local.STATS else to_metrics(stats)

    async def set_size(self, inode: int, size: int) -> Attributes:
        """Truncate: to nothing or to its own size changes nothing, as for a device.

        Where arrays may be resized, ``array.bin`` and ``array.npy`` take any size.

        Raises ReadOnly, NotPermitted, FileTooLarge.
        """
        if not self._tree.config.writable:
            raise ReadOnly(f"inode {inode}")
        if await self._files.truncate(self._tree.find(inode), size):
            return await self.getattr(inode)
        attributes = await self.getattr(inode)
        if not attributes.writable or attributes.is_directory or size not in (0, attributes.size):
            raise NotPermitted(f"the size is {attributes.size} and stays so")
        return attributes

    async def unlink(self, parent: int, name: str) -> None:
        """Remove a chunk or shard file: its elements become fill value again.

        Raises ReadOnly, NotPermitted, EntryNotFound.
        """
        if not self._tree.config.writable:
            raise ReadOnly(name)
        place = await self._child(self._tree.find(parent), name)
        node = place.node
        tree_place = node.place(place.local)
        array = node.writable if isinstance(node, MountedArray) else None
        if tree_place is None or not tree_place.is_file or array is None:
            raise NotPermitted(f"{name} belongs to the mount")
        assert isinstance(node, MountedArray)
        chunks = node.chunks_of(tree_place)
        # Before, because what fails to be stored is removed all the same.
        self._pages.removed(place)
        await self._files.remove(place, lambda: array.remove(chunks))
        self._pages.stored(place, self._files.places)

    @property
    def writable_inodes(self) -> set[int]:
        """Inodes of the files that are open for writing. Loop only."""
        return self._files.writable_inodes

    @property
    def dirty_bytes(self) -> int:
        """Bytes of chunks with changes that are not stored yet."""
        write_back = self._tree.write_back
        return 0 if write_back is None else write_back.dirty_bytes

    def drain(self) -> list[ZarrfsError]:
        """Store all changes at the end. Blocks. What could not be stored stays; why is told."""
        return self._tree.drain()
