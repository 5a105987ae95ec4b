"""Open files: reading and writing through handles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from weakref import WeakKeyDictionary

from zarrfs.errors import (
    BadHandle,
    ChunkError,
    FileTooLarge,
    NotPermitted,
    ReadOnly,
    StoreConflict,
    UncountedError,
    ZarrfsError,
)
from zarrfs.fs.attributes import OpenFile, OpenMode
from zarrfs.fs.coherence.array_pages import ArrayPages
from zarrfs.fs.coherence.kernel_pages import KernelPages, OpenPlaces, PushedChunks, epochs_of
from zarrfs.fs.coherence.refused_pages import RefusedPages, looks_like_pages
from zarrfs.fs.files.contents import Contents
from zarrfs.fs.files.handle import Handle
from zarrfs.fs.files.resizing import FLAT_FILES, End, Resizing, growing
from zarrfs.fs.files.storing import Storing
from zarrfs.fs.loop.answers import AfterReply, Answers
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.nodes import MountedArray, MountedNode
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree
from zarrfs.fs.status import MountStatus
from zarrfs.views.tiles.gathered import GatheredView
from zarrfs.views.view import Data


class OpenFiles:
    """All open files of a mount.

    places : what is open.

    Shared state lives on the loop alone: no method awaits between looking at
    ``_handles``, or ``places``, and changing it.
    """

    def __init__(
        self,
        tree: Tree,
        status: MountStatus,
        threads: Threads,
        answers: Answers,
        pages: KernelPages,
        after_reply: AfterReply,
    ) -> None:
        self._threads = threads
        self._answers = answers
        self._pages = pages
        self._stats = tree.stats
        self._resizing = Resizing(threads, pages)
        self._read_only = not tree.config.writable
        # Pages given beside a writer's could overwrite what it wrote.
        self._pushed = PushedChunks(pages) if self._read_only else None
        self._after_reply = after_reply
        self._handles: dict[int, Handle] = {}
        self.places = OpenPlaces()
        self._contents = Contents(tree, status, threads, pages, self.places)
        self._storing: WeakKeyDictionary[MountedNode, Storing] = WeakKeyDictionary()
        self._array_pages: WeakKeyDictionary[MountedNode, ArrayPages] = WeakKeyDictionary()
        self._refused = RefusedPages()
        self._next_handle = count(1)

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def refused(self) -> list[ZarrfsError]:
        """Why pages that were changed in mappings are in nobody's care, for each file."""
        return self._refused.errors

    @property
    def mapped(self) -> set[Place]:
        """Files of which the kernel may have pages that programs changed."""
        return {opened.place for opened in self._handles.values() if opened.mapped}

    async def open(self, place: Place, mode: OpenMode) -> OpenFile:
        """Open a file. Raises ReadOnly, NotPermitted, IsADirectory, EntryNotFound."""
        read, write = mode.read, mode.write
        view, arrays, version = await self._contents.open(place, truncate=mode.truncate)
        if write:
            await self.check_encoding(arrays)
        if isinstance(view, GatheredView):
            view.kept &= mode.paged
        append = mode.append and write and place.local in FLAT_FILES and growing(place) is not None
        of_arrays = [self._pages_of(place, array) for array in arrays]
        pages = tuple(each for each in of_arrays if each is not None)
        # A changed page of a file of several arrays could be of two of them.
        past = append or isinstance(view, GatheredView)
        direct = not arrays
        for each in pages:
            direct = each.enter(place, read=read, write=write, past=past)
        if write and not direct:
            try:
                for each in pages:
                    await each.ready()
            except BaseException:
                for each in pages:
                    each.leave(place, write=True)
                raise
        # Nothing is awaited from here on: a store that drops pages finds the file among the open
        # ones, or has dropped its pages before `keep_cache` is decided.
        storing = self._storing_of(place) if write else None
        handle = next(self._next_handle)
        mapped = read and write and not direct
        self._handles[handle] = Handle(
            place, view, arrays, direct, append, mode.sync and direct, mapped, storing, pages
        )
        self.places.opened(place, arrays, writable=storing is not None)
        keep_cache = bool(arrays) and self._pages.opened(place.inode, arrays, version)
        if arrays and not keep_cache and not direct:
            self._handles[handle].unused = epochs_of(arrays, version)
        return OpenFile(handle, keep_cache, direct)

    async def check_encoding(self, nodes: Sequence[MountedNode]) -> None:
        """Raises ReadOnly if an array's codecs cannot encode. Its note then says why."""
        for node in nodes:
            if (array := node.writable) is None:
                continue
            if not array.encoding.checked:
                await self._threads.run(array.encoding.check)
            if (reason := array.encoding.reason) is not None:
                note = f"cannot be written to: {reason}".replace("\n", " ")
                node.add_note(note)
                self._stats.error(node.node.path or "/", note)
                raise ReadOnly(note)

    async def truncate(self, place: Place, size: int) -> bool:
        """Have a file end at ``size``; False where its size stays whatever is asked."""
        array = growing(place)
        pages = self._pages_of(place, place.node)
        if array is None or pages is None or place.local not in FLAT_FILES:
            return False
        await pages.resize(place, partial(self._resizing.truncate, array, place, size))
        self._refused.cut(place.inode, size)
        return True

    async def remove(self, place: Place, work: Callable[[], None]) -> None:
        """Run ``work``, which removes the chunks of a file, in a thread."""
        pages = self._pages_of(place, place.node)
        assert pages is not None
        await pages.write_past(place, partial(self._remove, place, work))

    async def _remove(self, place: Place, work: Callable[[], None]) -> int:
        if (array := growing(place)) is None or array.rows is None:
            await self._threads.run(work)
            return 0
        await array.rows.gate.wait_open()
        with array.rows.gate.inside():
            await self._threads.run(work)
        return 0

    async def read(self, handle: int, offset: int, size: int) -> Data:
        """Bytes of an open file, cut at its end. A hit does not yield to the loop.

        Raises BadHandle, ChunkError, StoreConflict where the array is another one now.
        """
        if (opened := self._handles.get(handle)) is None:
            raise BadHandle(str(handle))
        if opened.unused is not None:
            self._note_use(opened)
        for pages in opened.pages:
            if pages.must_wait(opened.place):
                await pages.wait_to_read()
        _check_current(opened)
        view = opened.view
        data = view.read_now(offset, size)
        if missed := data is None:
            with self.places.reading(opened.place), ExitStack() as inside:
                for pages in opened.pages:
                    inside.enter_context(pages.reading(opened.place))
                answer = await self._answers.wait(partial(view.read, offset, size))
            if isinstance(answer, UncountedError):
                self._stats.error(answer.key, answer.reason)
            if isinstance(answer, ChunkError):
                raise answer
            data = answer
        if self._pushed is not None:
            note = partial(self._pushed.note_read, opened.place, view, offset, size, missed=missed)
            if not self._after_reply.add(note):
                note()
        stats = self._stats
        stats.reads += 1
        stats.read_bytes += len(data)
        return data

    def _note_use(self, opened: Handle) -> None:
        if opened.unused is not None:
            self._pages.used(opened.place.inode, opened.unused)
            opened.unused = None

    async def release(self, handle: int) -> None:
        """The last reference to an open file is gone.

        Writes of a mapping after the last flush are stored soon. No program waits for an error any
        more, so storing is repeated until it succeeds.
        """
        if (closed := self._handles.pop(handle, None)) is None:
            return
        self._note_use(closed)
        self.places.closed(closed.place, closed.arrays, writable=closed.storing is not None)
        closed.view.close()
        if not closed.direct:
            for pages in closed.pages:
                pages.leave(closed.place, write=closed.storing is not None)
        array = growing(closed.place)
        writable = closed.place.inode in self.places.writable_inodes
        if array is not None and not writable:
            # Before anything is awaited: the next request for the size must return the new one.
            self._resizing.closed(array, closed.place)
        if closed.place.inode in self._refused and not writable:
            self._refused.forget(closed.place.inode)
        for each in closed.arrays:
            self._pages.closed(closed.place.inode, each, self.places.of(each))

    async def write(self, handle: int, offset: int, data: Data) -> int:
        """Write to an open file; how many bytes, which is less than asked at its end.

        Raises BadHandle, FileTooLarge beyond the end, NotPermitted, and what stands in
        the way of storing older changes where those have to make room.
        """
        opened = self._handles.get(handle)
        if opened is None or opened.storing is None:
            raise BadHandle(str(handle))
        self._note_use(opened)
        inode = opened.place.inode
        at = End() if opened.append else offset
        try:
            with opened.storing.writing(inode):
                write = partial(self._write, opened, at, data)
                if isinstance(opened.view, GatheredView):
                    written = await self._write_gathered(opened, opened.view, offset, data)
                elif not opened.pages:
                    written = await write()
                elif opened.direct:
                    written = await opened.pages[0].write_past(opened.place, write)
                else:
                    written = await opened.pages[0].write_through(write)
        except ZarrfsError as error:
            self._note_refused(opened, offset, len(data), error)
            raise
        if isinstance(at, End) and at.taken not in (None, offset):
            # The kernel thinks that it was written elsewhere.
            self._pages.drop(inode)
        offset = at.of(offset) if isinstance(at, End) else at
        self._refused.taken(inode, offset, offset + written)
        stats = self._stats
        stats.writes += 1
        stats.written_bytes += written
        if opened.sync:
            await self.fsync(handle)
        return written

    def _note_refused(self, opened: Handle, offset: int, length: int, error: ZarrfsError) -> None:
        """Remember a write that failed, where it may have been pages of a mapping."""
        beyond = isinstance(error, FileTooLarge)
        if opened.mapped and not beyond and looks_like_pages(offset, length, opened.view.size):
            if opened.place.inode not in self._refused:
                path = opened.place.node.node.path or "/"
                self._stats.error(path, f"pages changed in a mapping may be lost: {error}")
            self._refused.refused(opened.place.inode, offset, offset + length, error)

    async def _write_gathered(
        self, opened: Handle, view: GatheredView, offset: int, data: Data
    ) -> int:
        """Write the part of each array past the pages of that array's files."""
        data = memoryview(data)
        done = 0
        while done < len(data):
            number, end = view.section_at(offset + done)
            part = data[done : done + max(1, end - offset - done)]
            write = partial(self._write, opened, offset + done, part)
            if number is None or not opened.pages:
                done += await write()
            else:
                done += await opened.pages[number].write_past(opened.place, write)
        return done

    async def _write(self, opened: Handle, at: int | End, data: Data) -> int:
        _check_current(opened)
        place, view = opened.place, opened.view
        array, node = growing(place), place.node
        data = memoryview(data)
        if array is None:
            offset = at.of(view.size) if isinstance(at, End) else at
            if offset >= view.size and data:
                raise FileTooLarge(f"offset {offset} of {view.size} bytes")
            data = data[: view.size - offset]
        if not opened.arrays:
            raise NotPermitted("only the data of arrays can be written to")
        # The array does not keep what is written to padding.
        padded = isinstance(view, GatheredView)
        lossy = padded or (isinstance(node, FlatArray) and node.has_padding(place.local))
        written = partial(self._pages.written, place.inode, opened.arrays, lossy=lossy)
        written()
        try:
            if array is not None:
                return await self._resizing.write(array, place, view, at, data)
            rest = view.write(offset, data)
            if rest is not None:
                await self._threads.run(rest)
            return len(data)
        finally:
            # Again: some changes may have been stored meanwhile. Also what fails may have been
            # written in part.
            written()

    async def flush(self, handle: int) -> None:
        """A file descriptor is closed: return when what was written to its file is stored.

        Then the kernel has no older pages of other files of the array. Raises ZarrfsError; the
        changes are then tried again.
        """
        opened = self._handles.get(handle)
        if opened is not None and opened.storing is not None:
            store = partial(self._store, opened.place, opened.arrays)
            await opened.storing.close(opened.place.inode, store)
            await self._settled(opened)

    async def fsync(self, handle: int) -> None:
        """Store all changes of the array, as `flush`. Raises ZarrfsError."""
        if (opened := self._handles.get(handle)) is None:
            raise BadHandle(str(handle))
        store = partial(self._store, opened.place, opened.arrays)
        await self._storing_of(opened.place).sync(opened.place.inode, store)
        await self._settled(opened)

    async def _settled(self, opened: Handle) -> None:
        """Return when the kernel has no older pages of other files of the arrays.

        Raises ZarrfsError if pages of the file itself were refused.
        """
        self._refused.check(opened.place.inode, opened.view.size)
        await self._pages.kernel.settled(opened.place.inodes)
        own = opened.place.inodes
        shown = {place.inode for array in opened.arrays for place in self.places.of(array)}
        if others := {inode for inode in shown if inode not in own}:
            await self._pages.kernel.settled(others)

    async def store(self, place: Place) -> None:
        """Store all changes of the array of a file. Raises ZarrfsError; they are then kept."""
        arrays = (place.node,) if isinstance(place.node, MountedArray) else ()
        await self._storing_of(place).sync(place.inode, partial(self._store, place, arrays))

    def _storing_of(self, place: Place) -> Storing:
        return self._storing.setdefault(place.node, Storing())

    def _pages_of(self, place: Place, node: MountedNode) -> ArrayPages | None:
        """The pages of an array whose elements a file has; None if nobody can write to them."""
        if self._read_only or not isinstance(node, FlatArray):
            return None
        if node is place.node and node.is_header(place.local):
            return None
        if (pages := self._array_pages.get(node)) is None:
            pages = self._array_pages[node] = ArrayPages(self._pages)
        return pages

    async def _store(self, place: Place, arrays: Sequence[MountedArray]) -> None:
        """Store all changes of the arrays of a file, and tell the kernel of them."""
        for node in arrays:
            if (array := node.writable) is None:
                continue
            resized = growing(place)
            flush = array.flush if resized is None else self._resizing.flush(resized)
            await self._threads.run(flush)
            writers = self._pages.stored(node, self.places.of(node))
            if resized is not None:
                self._resizing.stored(resized, place, writers)


def _check_current(opened: Handle) -> None:
    """Raises StoreConflict if the metadata of an array have changed since the open."""
    for node in (opened.place.node, *opened.arrays):
        if node.superseded:
            raise StoreConflict(node.node.path, "has other metadata now: open the file again")
