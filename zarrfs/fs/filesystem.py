"""The file system: answers what the kernel asks, without knowing the kernel.

Methods are called on the trio loop. What is in memory is answered at once; what has
to ask the store goes through a worker thread; chunks come through the cache's own
threads and wake the waiting request.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Protocol, TypeVar

import trio

from zarrfs.errors import (
    BadHandle,
    ChunkError,
    EntryNotFound,
    IsADirectory,
    NoSuchAttribute,
    NotADirectory,
    ReadOnly,
    StoreError,
    StoreListingUnsupported,
)
from zarrfs.fs import stat
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenFile, Space
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.inodes import ROOT_INODE
from zarrfs.fs.nodes import STATUS_NAMES, Local, MountedArray, TreePlace
from zarrfs.fs.status import stats_document, to_json
from zarrfs.fs.tree import Place, Tree
from zarrfs.fs.xattrs import chunk_xattrs, node_xattrs
from zarrfs.store.base import Store
from zarrfs.views.bytes_view import BytesView
from zarrfs.views.view import Data, View

T = TypeVar("T")

_THREADS = 32
_ENTRIES_AT_ONCE = 128
# Inodes of which it is remembered how current the kernel's pages are.
_MOST_EPOCHS = 1 << 16


class KernelCache(Protocol):
    """What the kernel keeps of the mount."""

    def drop(self, inode: int) -> None:
        """Have the kernel forget the pages of an inode, soon. Never blocks."""
        ...


class NoKernelCache:
    """Stands in where there is no kernel."""

    def drop(self, inode: int) -> None:
        pass


@dataclass(slots=True)
class _Handle:
    place: Place
    view: View


class FileSystem:
    """One mounted source, read-only.

    Shared state lives on the loop alone: no method awaits between looking at
    ``_handles`` or ``_page_epochs`` and changing them.
    """

    root_inode = ROOT_INODE

    def __init__(self, tree: Tree, document: Mapping[str, Any]) -> None:
        self._tree = tree
        self._document = document
        self._started = time.time()
        self._handles: dict[int, _Handle] = {}
        self._next_handle = count(1)
        self._kernel_cache: KernelCache = NoKernelCache()
        self._listings: dict[int, list[str]] = {}
        # The epoch of the array's data that the kernel's pages of an inode are of.
        self._page_epochs: dict[int, int] = {}
        self._limiter = trio.CapacityLimiter(_THREADS)

    @classmethod
    def open(
        cls, store: Store, config: FileSystemConfig, document: Mapping[str, Any]
    ) -> FileSystem:
        """Open a source, before it is mounted. Blocks.

        document : what ``.zarrfs/config.json`` shows.

        Raises NodeNotFound where the source is not Zarr, and any other ZarrfsError
        where it is a single array that cannot be served.
        """
        tree = Tree(store, config)
        try:
            tree.mount_root()
        except BaseException:
            tree.close()
            raise
        return cls(tree, document)

    def set_kernel_cache(self, kernel_cache: KernelCache) -> None:
        """Where to say that data have changed."""
        self._kernel_cache = kernel_cache

    def close(self) -> None:
        """Stop threads and close the store, after the mount has ended. Blocks."""
        self._tree.close()

    def describe_state(self) -> str:
        """For people who look into a running daemon."""
        return stats_document(self._tree, self._started, len(self._handles)).decode()

    # --- names ------------------------------------------------------------------

    async def lookup(self, parent: int, name: str) -> Attributes:
        """The entry ``name`` of a directory. Raises EntryNotFound, NotADirectory."""
        place = await self._child(self._tree.find(parent), name)
        return await self._attributes(place)

    async def getattr(self, inode: int) -> Attributes:
        return await self._attributes(self._tree.find(inode))

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
        return await self._in_thread(lambda: self._tree.child(parent, name))

    async def _listing(self, group: Place, *, anew: bool) -> list[str]:
        """Names of the children of a group; one listing serves a whole pass over it."""
        names = None if anew else self._listings.get(group.inode)
        if names is None:
            try:
                names = await self._in_thread(lambda: self._tree.children(group))
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
        if place.local in (Local.STATS, Local.CONFIG):
            size = len(self._status(place.local))
        if stat.needs_store(self._tree, place):
            return await self._in_thread(lambda: stat.attributes(self._tree, place))
        return stat.attributes(self._tree, place, size)

    async def _all_attributes(self, places: list[Place]) -> list[Attributes]:
        """One hop for all of them."""
        if any(stat.needs_store(self._tree, place) for place in places):
            return await self._in_thread(
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
        space = await self._in_thread(self._tree.store.free_space)
        return Space(0, 0) if space is None else Space(*space)

    # --- files ------------------------------------------------------------------

    async def open_file(self, inode: int, *, write: bool) -> OpenFile:
        """Raises ReadOnly, IsADirectory, EntryNotFound."""
        place = self._tree.find(inode)
        if stat.is_directory(place):
            raise IsADirectory(f"inode {inode}")
        if write:
            raise ReadOnly(f"inode {inode}")
        keep_cache = False
        node = place.node
        view: View
        if is_data := isinstance(node, MountedArray) and node.is_data(place.local):
            await self._check(node)
            epoch = node.array.freshness.epoch
            keep_cache = self._page_epochs.get(inode) == epoch
            if len(self._page_epochs) >= _MOST_EPOCHS:
                self._page_epochs.clear()
            self._page_epochs[inode] = epoch
            if node.view_blocks():
                view = await self._in_thread(lambda: node.view(place.local))
            else:
                view = node.view(place.local)
        else:
            view = BytesView(await self._content(place))
        handle = next(self._next_handle)
        self._handles[handle] = _Handle(place, view)
        return OpenFile(handle, keep_cache, direct=not is_data)

    async def _check(self, node: MountedArray) -> None:
        """Have the store asked for changes if it is time; tell the kernel of any."""
        if not node.array.freshness.due():
            return
        if await self._in_thread(node.array.check):
            for handle in self._handles.values():
                if handle.place.node is node:
                    self._kernel_cache.drop(handle.place.inode)

    async def _content(self, place: Place) -> bytes:
        """Content of a file that is made for each open."""
        if place.local in (Local.STATS, Local.CONFIG):
            return self._status(place.local)
        if place.local == Local.NOTE:
            return stat.note_content(place)
        key = place.node.document(place.local)
        if key is None:
            raise EntryNotFound(f"inode {place.inode}")
        return await self._in_thread(lambda: self._tree.document(key))

    def _status(self, local: int) -> bytes:
        if local == Local.STATS:
            return stats_document(self._tree, self._started, len(self._handles))
        return to_json(self._document)

    async def read(self, handle: int, offset: int, size: int) -> Data:
        """Bytes of an open file, cut at its end. A hit does not yield to the loop.

        Raises BadHandle, ChunkError.
        """
        try:
            view = self._handles[handle].view
        except KeyError:
            raise BadHandle(str(handle)) from None
        data = view.read_now(offset, size)
        if data is None:
            data = await self._wait_for(view, offset, size)
        stats = self._tree.stats
        stats.reads += 1
        stats.read_bytes += len(data)
        return data

    async def _wait_for(self, view: View, offset: int, size: int) -> Data:
        token = trio.lowlevel.current_trio_token()
        ready = trio.Event()
        answers: list[Data | ChunkError] = []

        def answer(data: Data | ChunkError) -> None:
            answers.append(data)
            # The mount may have ended meanwhile.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(ready.set)

        view.read(offset, size, answer)
        await ready.wait()
        if isinstance(answers[0], ChunkError):
            raise answers[0]
        return answers[0]

    async def release(self, handle: int) -> None:
        if (closed := self._handles.pop(handle, None)) is not None:
            closed.view.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await trio.to_thread.run_sync(
                work, limiter=self._limiter, abandon_on_cancel=True
            )
        except StoreListingUnsupported:
            raise
        except StoreError as error:
            self._tree.stats.error(error.key, error.reason)
            raise
