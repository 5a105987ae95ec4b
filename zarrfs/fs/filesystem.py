"""The file system: answers what the kernel asks, without knowing the kernel.

Methods are called on the trio loop. Data in memory is returned at once; requests that have
to ask the store goes through a worker thread; chunks come through the cache's own
threads and wake the waiting request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import trio

from zarrfs.errors import (
    IsADirectory,
    NoSuchAttribute,
    NotPermitted,
    ReadOnly,
    ZarrfsError,
)
from zarrfs.fs import stat
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenFile, OpenMode, Space
from zarrfs.fs.coherence.kernel_pages import KernelCache, KernelPages
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.directories import Directories
from zarrfs.fs.files.open_files import OpenFiles
from zarrfs.fs.loop.answers import AfterReply, Answers
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.inodes import ROOT_INODE
from zarrfs.fs.nodes.nodes import STATUS_FILES, Local, MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree
from zarrfs.fs.replay import replay_changes, replay_growth, replaying
from zarrfs.fs.status import MountStatus, stats_document, summary
from zarrfs.fs.xattrs import PREFIX, Encoded, NodeXattrs, own_xattrs
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.store.base import Store

_SETTLE_S = 0.2


class FileSystem:
    """One mounted source.

    answers : who waits for threads.
    after_reply : work of the loop between requests.
    read, write, flush, fsync, release : see `OpenFiles`.
    """

    root_inode = ROOT_INODE

    def __init__(self, tree: Tree, document: Mapping[str, Any]) -> None:
        self._tree = tree
        self._status = MountStatus(document, self._stats)
        self.answers = Answers()
        self.after_reply = AfterReply()
        if tree.write_back is not None:
            tree.write_back.after_reply = self.after_reply.add
        self._threads = Threads(tree.stats, self.answers)
        self._directories = Directories(tree, self._threads, self._measure)
        self._pages = KernelPages()
        self._xattrs = NodeXattrs(tree.config)
        tree.nodes.unknown = self._pages.drop
        self._files = OpenFiles(
            tree, self._status, self._threads, self.answers, self._pages, self.after_reply
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
            with replaying(tree.journal) as journal:
                if journal is not None:
                    replay_growth(journal, tree.store)
                tree.mount_root()
                if journal is not None:
                    replay_changes(journal, tree)
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
            # Sizes and names may have changed too.
            self._pages.forget(self._tree.named_inodes())

    async def store_changes(self) -> list[ZarrfsError]:
        """Store all changes now; the reasons for which some could not be stored, and are kept."""
        errors: list[ZarrfsError] = []
        for place in self._tree.writable_places():
            try:
                await self._files.store(place)
            except ZarrfsError as error:
                errors.append(error)
        write_back = self._tree.write_back
        if not errors and write_back is not None:
            # Changes of arrays that were opened anew since.
            errors += await self._threads.run(write_back.drain)
        return [*errors, *self._files.refused]

    async def drop_caches(self) -> None:
        """Drop what is decoded, shard indexes, and what the kernel keeps of all files."""
        await self._threads.run(self._tree.drop_caches)
        self._pages.forget(self._tree.named_inodes())

    async def set_memory(self, memory: int) -> None:
        """Change the memory budget, in bytes.

        Raises BudgetExceeded if an array that is open needs more.
        """
        await self._threads.run(lambda: self._tree.set_memory(memory))
        self._status.set_memory(memory)

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that may be in use, and bytes that are."""
        return self._tree.memory, self._tree.budget.used + self._tree.parts.size

    def summary(self) -> str:
        """The state of the mount, in one line for people."""
        return summary(self._tree, len(self._files))

    def describe_state(self) -> str:
        """For people who look into a running daemon."""
        return self._status.content(Local.STATS).decode()

    # --- names ------------------------------------------------------------------

    async def lookup(self, parent: int, name: str) -> Attributes:
        """The entry ``name`` of a directory, which the caller is given as `give` says.

        Raises EntryNotFound, NotADirectory.
        """
        place = await self._directories.child(await self._place(parent), name)
        attributes = await self._attributes(await self._current(place))
        self.give(attributes.inode)
        return attributes

    async def getattr(self, inode: int) -> Attributes:
        return await self._attributes(await self._current(await self._place(inode)))

    async def readdir(self, inode: int, cookie: int) -> AsyncGenerator[DirectoryEntry, None]:
        """Entries after ``cookie``, 0 for all; without ``.`` and ``..``.

        The caller calls `give` for those that it passes on, before it asks for the next one.
        """
        entries = self._directories.entries(await self._place(inode), cookie)
        async with aclosing(entries):
            async for entry in entries:
                yield entry

    def give(self, inode: int) -> None:
        """The caller may use an inode until it has called `forget` for it as often."""
        self._tree.nodes.give(inode)

    def forget(self, inode: int, times: int) -> None:
        """The caller uses an inode no more that it was given so often."""
        self._tree.nodes.take_back(inode, times)

    async def _place(self, inode: int) -> Place:
        """The place of an inode. Raises EntryNotFound for one that stands for nothing."""
        if (place := self._tree.find(inode)) is None:
            place = await self._threads.run(lambda: self._tree.find_again(inode))
            self._tree.trim()
        return place

    async def _current(self, place: Place) -> Place:
        """The place as the metadata have it now, where they are to be looked at again."""
        if not self._tree.metadata_due(place):
            return place
        if await self._threads.run(lambda: self._tree.recheck_metadata(place)):
            self._pages.forget(self._tree.named_inodes())
        return await self._place(place.inode)

    # --- attributes -------------------------------------------------------------

    async def _attributes(self, place: Place) -> Attributes:
        if place.node.has_changes and place.node.stored_file(place.local) is not None:
            # The object lacks changes that are not stored.
            await self._files.store(place)
        (attributes,) = await self._measure((place,))
        return attributes

    async def _measure(self, places: Sequence[Place]) -> list[Attributes]:
        """The attributes of all places, with one hop at most."""
        sizes = [
            self._status.size(place.local) if place.local in STATUS_FILES else 0 for place in places
        ]

        def measure() -> list[Attributes]:
            return [
                stat.attributes(self._tree, place, size)
                for place, size in zip(places, sizes, strict=True)
            ]

        if any(stat.needs_store(self._tree, place) for place in places):
            return await self._threads.run(measure)
        return measure()

    async def getxattr(self, inode: int, name: str) -> bytes:
        """Raises NoSuchAttribute."""
        if not name.startswith(PREFIX):
            # ls -l asks for three attributes of the system for each entry.
            raise NoSuchAttribute(name)
        place, encoded = await self._xattrs_of(inode)
        if name not in encoded.names:
            raise NoSuchAttribute(name)
        if encoded.values is not None:
            return encoded.values[name]
        return await self._threads.run(lambda: self._xattrs.value(place.node, name))

    async def listxattr(self, inode: int) -> list[str]:
        return list((await self._xattrs_of(inode))[1].names)

    async def _xattrs_of(self, inode: int) -> tuple[Place, Encoded]:
        place = await self._place(inode)
        encoded = own_xattrs(place) or self._xattrs.known(place.node)
        if encoded is None:
            encoded = await self._threads.run(lambda: self._xattrs.encoded(place.node))
        return place, encoded

    async def statfs(self) -> Space:
        space = await self._threads.run(self._tree.store.free_space)
        return Space(0, 0) if space is None else Space(*space)

    # --- files ------------------------------------------------------------------

    async def open_file(self, inode: int, mode: OpenMode) -> OpenFile:
        """Open a file. Raises ReadOnly, NotPermitted, IsADirectory, EntryNotFound."""
        place = await self._place(inode)
        if stat.is_directory(place):
            raise IsADirectory(f"inode {inode}")
        if mode.write and (not self._tree.config.writable or place.node.linked):
            raise ReadOnly(f"inode {inode}")
        if mode.write:
            # Before anything is removed.
            await self._files.check_encoding((place.node,))
        if mode.truncate:
            # The kernel is about to forget its pages of the file. Pages changed in a
            # mapping it first hands over; the file itself loses nothing.
            self._pages.kernel.drop(inode)
            await self._pages.kernel.settled((inode,))
            await self._files.truncate(place, 0)
        return await self._files.open(place, mode)

    def _stats(self, started: float) -> dict[str, Any]:
        return stats_document(self._tree, started, len(self._files), self.answers.loop_times)

    async def set_size(self, inode: int, size: int) -> Attributes:
        """Truncate: to nothing or to its own size changes nothing, as for a device.

        Where arrays may be resized, ``array.bin`` and ``array.npy`` take any size.

        Raises ReadOnly, NotPermitted, FileTooLarge.
        """
        if not self._tree.config.writable:
            raise ReadOnly(f"inode {inode}")
        place = await self._place(inode)
        await self._files.check_encoding((place.node,))
        if await self._files.truncate(place, size):
            # The kernel may be waiting for this very reply before it hands over changed pages of
            # other files, so not for long.
            with trio.move_on_after(_SETTLE_S):
                await self._pages.kernel.settled(place.inodes)
            return await self.getattr(inode)
        attributes = await self.getattr(inode)
        if not attributes.writable or attributes.is_directory or size not in (0, attributes.size):
            raise NotPermitted(f"the file has a fixed size of {attributes.size} bytes")
        return attributes

    async def unlink(self, parent: int, name: str) -> None:
        """Remove a chunk or shard file: its elements become fill value again.

        Raises ReadOnly, EntryNotFound, and NotPermitted for all others and where nothing may be
        removed.
        """
        if not self._tree.config.writable:
            raise ReadOnly(name)
        place = await self._directories.child(await self._place(parent), name)
        node = place.node
        tree_place = node.place(place.local)
        array = node.writable
        if tree_place is None or not tree_place.is_file or array is None:
            raise NotPermitted(f"{name} cannot be removed")
        if not self._tree.config.allow_remove:
            raise NotPermitted(f"{name} can be removed with -o allow_remove")
        assert isinstance(node, MountedArray)
        chunks = node.chunks_of(tree_place)
        # Before, because the chunk is removed also if storing fails. The kernel wrote nothing of
        # the content that the file then has.
        self._pages.written(place.inode, [node])
        self._pages.drop(place.inode)
        await self._files.remove(place, lambda: array.remove(chunks))
        self._pages.stored(node, self._files.places.of(node))
        await self._pages.kernel.settled(place.inodes)

    @property
    def writable_inodes(self) -> set[int]:
        """Inodes of the files that are open for writing. Loop only."""
        return set(self._files.places.writable_inodes)

    @property
    def dirty_bytes(self) -> int:
        """Bytes of chunks with changes that are not stored yet."""
        return self._tree.dirty_bytes

    def drain(self) -> list[ZarrfsError]:
        """Store all changes at the end. Blocks. Returns why some could not be; these stay."""
        return [*self._tree.drain(), *self._files.refused]

    def lost_pages(self) -> list[ZarrfsError]:
        """The errors for changes that the kernel may have had when it broke the connection."""
        reason = "pages that a program changed in a mapping may be lost: the mount was aborted"
        return [
            ZarrfsError(f"{path}: {reason}") for path in sorted(p.path for p in self._files.mapped)
        ]

    def give_up(self) -> None:
        """Let `drain` wait for the store no more. In any thread."""
        self._tree.store.give_up()
