"""Writes through one file of an array, and changed pages that the kernel has of other files.

Several files show the same elements. The kernel keeps pages of each, and hands over a page that a
program changed in a mapping as a whole: with new bytes, and with those that the page had when it
was read. If a program has written through another file since, these are old.

So a write is a change to each other file that may be mapped and shows some of its elements,
until the kernel has dropped all pages of that file. Where a page that comes in until then has the
bytes from before the change, it is given those from after it.

The daemon cannot tell a page that the kernel hands over from a write that looks like one. So:

- A write that begins or ends within a page is none that the kernel hands over. It returns when
  the pages of the other files are dropped.
- What looks like pages waits for that only for a moment. There are few places for pages that are
  handed over at the same time, and the pages that are to be dropped may need the very place of
  this request.
- Nobody waits for long while pages of his own file are being dropped: the kernel waits for him.
"""

from __future__ import annotations

import math
import mmap
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import numpy as np
import trio

from zarrfs.errors import ChunkError
from zarrfs.fs.files.kernel_pages import KernelPages
from zarrfs.fs.files.page_changes import Change, Written
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import Data, View

# Seconds that what looks like pages waits until the pages of other files are dropped.
_PATIENCE = 0.05
# Seconds that a file waits before its size changes until changed pages of others have come in. They
# may not come before it has changed.
_PATIENCE_RESIZING = 1.0
# Bytes that the event loop compares with what was written through other files. To number the
# elements of more of them takes milliseconds, so a thread does it.
_FEW = 16 << 10

Read = Callable[[View, int, int], Awaitable[Data]]


class OtherViews:
    """The files of one array that may be mapped and changed there. Loop only.

    read : reads a file. Raises ChunkError.

    Shared state: ``_hidden``, changes that pages of a file, by inode, may not show, in their
    order. Where a file has pages of what another one writes, writes come one after the other,
    under ``_lock``; a task that holds it does not wait for the kernel.
    """

    def __init__(self, pages: KernelPages, read: Read, threads: Threads) -> None:
        self._pages = pages
        self._threads = threads
        self._read = read
        self._handles: Counter[Place] = Counter()
        # The same places. Two files of a tree have no elements in common.
        self._by_tree: dict[str, dict[Place, None]] = {}
        self._hidden: list[tuple[int, Change]] = []
        self._some_shown = trio.Event()
        self._lock = trio.Lock()
        # Writes that run without the lock.
        self._free: set[object] = set()
        self._some_ended = trio.Event()
        self._patient = False

    async def opened(self, place: Place) -> None:
        """A file is opened so that it can be mapped and changed there.

        Pages that are read while nobody hides writes from them would undo these.
        """
        self._handles[place] += 1
        self._by_tree.setdefault(_tree(place), {})[place] = None
        before = self._free.copy()
        while before & self._free:
            await self._free_ended()

    def closed(self, place: Place) -> None:
        """A file that was `opened` is closed."""
        self._handles[place] -= 1
        if not self._handles[place]:
            del self._handles[place]
            # The tree may have gone since, with the rows that it was of.
            for places in self._by_tree.values():
                places.pop(place, None)

    def concern(self, place: Place) -> bool:
        """Whether pages of other files have to do with a write to this one."""
        if not self._handles and not self._hidden:
            return False
        return bool(self._hidden) or self._lock.locked() or bool(self._others(place))

    @contextmanager
    def free(self) -> Iterator[None]:
        """Inside, a file is written to that no other one concerns."""
        write = object()
        self._free.add(write)
        try:
            yield
        finally:
            self._free.remove(write)
            self._some_ended.set()

    async def _free_ended(self) -> None:
        if self._some_ended.is_set():
            self._some_ended = trio.Event()
        await self._some_ended.wait()

    async def write(
        self,
        place: Place,
        size: Callable[[], int],
        offset: int | None,
        data: memoryview,
        write: Callable[[memoryview], Awaitable[int]],
        *,
        direct: bool,
    ) -> int:
        """Write ``data`` to a file, by ``write``, which returns how many bytes it has written.

        size : of the file, by now.
        offset : None: behind the end.
        direct : what is written goes past the kernel's pages, and is no page.
        """
        async with self._alone():
            end = size()
            if offset is None:
                offset = end
            paged = not direct and looks_like_pages(offset, len(data), end)
            inside = data[: max(0, end - offset)]
            hidden = [change for inode, change in self._hidden if inode == place.inode]
            new = await self._written(place, offset, inside, hidden, paged=paged)
            if paged:
                data = memoryview(b"".join((new.data, data[len(inside) :])))
            others = self._others(place) if inside else []
            old = None
            # Who waits until the pages are dropped need not know what was there.
            if others and not direct and (paged or self._pages.kernel.dropping(place.inode)):
                old = await self._old(place, offset, len(inside))
            changes = self._hide(new, old, others)
            rows = _array(place).shape[:1]
            try:
                written = await write(data)
                if _array(place).shape[:1] != rows:
                    changes += await self._hide_new_rows(place, rows[0])
            except BaseException:
                self._show(changes)
                raise
            finally:
                for other in others:
                    self._pages.kernel.drop(other)
        if changes:
            patience = math.inf
            if not direct and self._pages.kernel.dropping(place.inode):
                patience = 0.0 if old is not None else _PATIENCE
            elif paged:
                patience = 0.0 if self._patient else _PATIENCE
            await self._wait_until_dropped(changes, patience)
        return written

    async def remove(self, place: Place, size: int, remove: Callable[[], Awaitable[None]]) -> None:
        """Await ``remove``, which has all elements of a file become others."""
        async with self._alone():
            others = self._others(place) + [place.inode] * (place in self._handles)
            await remove()
            content = await self._content(place, 0, size) if others else b""
            new = await self._written(place, 0, memoryview(content))
            hidden = self._hide(new, None, others)
            for other in others:
                self._pages.kernel.drop(other)
        await self._wait_until_dropped(hidden, math.inf)

    async def resize(self, place: Place, resize: Callable[[], Awaitable[None]]) -> None:
        """Await ``resize``, which changes the number of rows through a file.

        Pages that were changed before must come in before: later, their rows may be gone, or be
        new ones.
        """
        self._drop_all_but(place)
        with trio.move_on_after(_PATIENCE_RESIZING):
            await self._pages.kernel.settled()
        async with self._alone():
            rows = _array(place).shape[0]
            try:
                await resize()
            finally:
                hidden = await self._hide_new_rows(place, rows)
                self._drop_all_but(place)
        await self._wait_until_dropped(hidden, _PATIENCE)

    def _drop_all_but(self, place: Place) -> None:
        for other in self._handles:
            if other.local != place.local:
                self._pages.kernel.drop(other.inode)

    async def _hide_new_rows(self, place: Place, before: int) -> list[tuple[int, Change]]:
        """Rows from ``before`` on are new: chunk files may have pages that were of none.

        Other files have no pages of rows beyond their end. Has the kernel drop these pages.
        """
        hidden = []
        for other in list(self._handles):
            if other.local == place.local or not _tree(other):
                continue
            size = _array(other).data_size(other.local)
            try:
                content = memoryview(await self._content(other, 0, size))
            except ChunkError:
                continue
            new = await self._written(other, 0, content)
            numbers = new.numbers
            first = before * math.prod(_array(other).shape[1:])
            holds = new.known * (numbers >= first)[:, None]
            if holds.any():
                change = Change(numbers, new.elements, None, holds.astype(np.uint8))
                hidden.append((other.inode, change))
                self._pages.kernel.drop(other.inode)
        self._hidden += hidden
        return hidden

    async def shown(self) -> None:
        """Return when no pages are older than what was written through other files by now."""
        before = {id(change) for _, change in self._hidden}
        while any(id(change) in before for _, change in self._hidden):
            if self._some_shown.is_set():
                self._some_shown = trio.Event()
            await self._some_shown.wait()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Inside, nobody else writes to a file that has to do with pages of another one."""
        async with self._lock:
            while self._free:
                await self._free_ended()
            yield

    def _others(self, place: Place) -> list[int]:
        """Inodes of the files that may be mapped and show some of the elements of this one."""
        tree = _tree(place)
        return [
            other.inode
            for name, places in self._by_tree.items()
            if not name or name != tree
            for other in places
            if other.local != place.local and (not name or not tree or _nested(place, other))
        ]

    async def _old(self, place: Place, offset: int, size: int) -> Written | None:
        """The present content of a file; None if it cannot be read."""
        try:
            found = bytes(await self._content(place, offset, size))
        except ChunkError:
            return None
        padded = memoryview(found + bytes(size - len(found)))
        return await self._written(place, offset, padded)

    async def _written(
        self,
        place: Place,
        offset: int,
        data: memoryview,
        hidden: Sequence[Change] = (),
        *,
        paged: bool = False,
    ) -> Written:
        """A write to a file, by elements.

        hidden : what was written through other files, of which pages that come in may be older;
            other writes are newer.
        paged : whether this looks like pages.
        """
        numbers = _array(place).element_numbers(place.local)

        def compare() -> Written:
            new = Written(numbers, offset, data)
            for change in hidden:
                if paged:
                    change.bring_up_to_date(new)
                else:
                    change.yield_to(new)
            return new

        return compare() if len(data) <= _FEW else await self._threads.run(compare)

    async def _content(self, place: Place, offset: int, size: int) -> Data:
        # Not through the view of a handle, which finds out how that is read.
        view = _array(place).view(place.local)
        try:
            return await self._read(view, offset, size)
        finally:
            view.close()

    def _hide(
        self, new: Written, old: Written | None, others: Sequence[int]
    ) -> list[tuple[int, Change]]:
        if not others:
            return []
        numbers, before = new.numbers, None if old is None else old.elements
        hidden = [
            (inode, Change(numbers, new.elements, before, new.known.copy())) for inode in others
        ]
        self._hidden += hidden
        return hidden

    def _show(self, hidden: Collection[tuple[int, Change]]) -> None:
        """Pages show these changes by now, or there are none."""
        gone = {id(change) for _, change in hidden}
        self._hidden = [each for each in self._hidden if id(each[1]) not in gone]
        self._some_shown.set()

    async def _wait_until_dropped(
        self, hidden: Collection[tuple[int, Change]], patience: float
    ) -> None:
        """Return when pages show these changes, or after so many seconds."""
        if patience == math.inf:
            await self._show_when_dropped(hidden)
            return
        if patience:
            self._patient = True
            try:
                with trio.move_on_after(patience) as waiting:
                    await self._pages.kernel.settled()
            finally:
                self._patient = False
            if not waiting.cancelled_caught:
                self._show(hidden)
                return
        trio.lowlevel.spawn_system_task(self._show_when_dropped, hidden)

    async def _show_when_dropped(self, hidden: Collection[tuple[int, Change]]) -> None:
        try:
            await self._pages.kernel.settled()
        finally:
            self._show(hidden)


def _array(place: Place) -> FlatArray:
    assert isinstance(place.node, FlatArray)
    return place.node


def _tree(place: Place) -> str:
    """The name of the tree of chunks or shards that a file is in; empty for the flat files."""
    found = place.node.place(place.local)
    return "" if found is None else found.tree.name


def _nested(one: Place, other: Place) -> bool:
    """Whether a chunk lies in a shard, or the other way round."""

    def stored(place: Place) -> object:
        found = place.node.place(place.local)
        assert found is not None
        return _array(one).stored_object(found)

    return stored(one) == stored(other)


def looks_like_pages(offset: int, length: int, size: int) -> bool:
    """Whether this is what the kernel hands over of a mapping: whole pages, up to the end."""
    end = offset + length
    return not offset % mmap.PAGESIZE and (not end % mmap.PAGESIZE or end >= size)
