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
from numpy.typing import NDArray

from zarrfs.errors import ChunkError
from zarrfs.fs.files.kernel_pages import KernelPages
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.element_numbers import ElementNumbers, Numbers
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import Data, View

# Seconds that what looks like pages waits until the pages of other files are dropped.
_PATIENCE = 0.05
# Bytes that the event loop compares with what was written through other files. To number the
# elements of more of them takes milliseconds, so a thread does it.
_FEW = 16 << 10

Bytes = NDArray[np.uint8]
Read = Callable[[View, int, int], Awaitable[Data]]


class _Written:
    """Bytes that were written to a file, by elements.

    first, last : the first element that has any of them, and the one behind the last.
    elements : a row of bytes for each element, as ``array.bin`` has them; where ``known`` is 0
        they are not written.
    """

    def __init__(self, numbers: ElementNumbers, offset: int, data: memoryview) -> None:
        self._numbers = numbers
        self._data = np.frombuffer(data, np.uint8)
        item = numbers.item_size
        # The bytes around the elements do not change.
        start, stop, self._here = numbers.element_bytes(offset, len(data))
        self.first = start // item
        self.last = max(self.first, -(-stop // item))
        begin = self.first * item
        self._there = slice(start - begin, stop - begin)
        rows = np.zeros((2, self.last - self.first, item), np.uint8)
        rows[0].reshape(-1)[self._there] = self._data[self._here]
        rows[1].reshape(-1)[self._there] = 1
        self.elements = numbers.plain(rows[0])
        # Where each byte belongs, but not which of its bits.
        self.known = numbers._replace(flipped=None).plain(rows[1])

    @property
    def numbers(self) -> Numbers:
        return self._numbers.at(self.first, self.last)

    def find(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Rows of the elements here that are among ``numbers``, and where they are there."""
        rows = self._numbers.find(numbers)
        (mine,) = np.nonzero((rows >= self.first) & (rows < self.last))
        return rows[mine] - self.first, mine

    @property
    def data(self) -> memoryview:
        """The bytes as they are to be written to the file."""
        data = self._data.copy()
        data[self._here] = self._numbers.in_file(self.elements).reshape(-1)[self._there]
        return data.data


class _Change:
    """Elements that were written through one file, for another file whose pages may be older.

    numbers : of the elements, as `ElementNumbers` has them.
    new, old : their bytes, a row for each element. Without ``old`` all bytes that are not new
        are taken for old.
    holds : which of the bytes are still as this change made them.
    """

    def __init__(self, numbers: Numbers, new: Bytes, old: Bytes | None, holds: Bytes) -> None:
        self.numbers = numbers
        self.new = new
        self.old = old
        self.holds = holds

    def bring_up_to_date(self, pages: _Written) -> None:
        """Give ``pages`` the bytes from after this change where they have those from before."""
        rows, mine = pages.find(self.numbers)
        theirs = pages.elements[rows]
        stale = self.holds[mine].astype(bool) & (theirs != self.new[mine])
        if self.old is not None:
            stale &= theirs == self.old[mine]
        theirs[stale] = self.new[mine][stale]
        pages.elements[rows] = theirs

    def yield_to(self, written: _Written) -> None:
        """Bytes that a program wrote through the other file are not older than this."""
        rows, mine = written.find(self.numbers)
        self.holds[mine] &= 1 - written.known[rows]


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
        self._hidden: list[tuple[int, _Change]] = []
        self._some_shown = trio.Event()
        self._lock = trio.Lock()
        # Writes that run without the lock.
        self._free = 0
        self._some_ended = trio.Event()
        self._patient = False

    def opened(self, place: Place) -> None:
        """A file is opened so that it can be mapped and changed there."""
        self._handles[place] += 1
        self._by_tree.setdefault(_tree(place), {})[place] = None

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
        self._free += 1
        try:
            yield
        finally:
            self._free -= 1
            self._some_ended.set()

    async def write(
        self,
        place: Place,
        size: int,
        offset: int,
        data: memoryview,
        write: Callable[[memoryview], Awaitable[int]],
        *,
        direct: bool,
    ) -> int:
        """Write ``data`` to a file, by ``write``, which returns how many bytes it has written.

        size : of the file.
        direct : what is written goes past the kernel's pages, and is no page.
        """
        paged = not direct and looks_like_pages(offset, len(data), size)
        async with self._alone():
            # Nobody has pages of what comes beyond the end.
            inside = data[: max(0, size - offset)]
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
            try:
                written = await write(data)
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
                if self._some_ended.is_set():
                    self._some_ended = trio.Event()
                await self._some_ended.wait()
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

    async def _old(self, place: Place, offset: int, size: int) -> _Written | None:
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
        hidden: Sequence[_Change] = (),
        *,
        paged: bool = False,
    ) -> _Written:
        """A write to a file, by elements.

        hidden : what was written through other files, of which pages that come in may be older;
            other writes are newer.
        paged : whether this looks like pages.
        """
        numbers = _array(place).element_numbers(place.local)

        def compare() -> _Written:
            new = _Written(numbers, offset, data)
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
        self, new: _Written, old: _Written | None, others: Sequence[int]
    ) -> list[tuple[int, _Change]]:
        if not others:
            return []
        numbers, before = new.numbers, None if old is None else old.elements
        hidden = [
            (inode, _Change(numbers, new.elements, before, new.known.copy())) for inode in others
        ]
        self._hidden += hidden
        return hidden

    def _show(self, hidden: Collection[tuple[int, _Change]]) -> None:
        """Pages show these changes by now, or there are none."""
        gone = {id(change) for _, change in hidden}
        self._hidden = [each for each in self._hidden if id(each[1]) not in gone]
        self._some_shown.set()

    async def _wait_until_dropped(
        self, hidden: Collection[tuple[int, _Change]], patience: float
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

    async def _show_when_dropped(self, hidden: Collection[tuple[int, _Change]]) -> None:
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
    places = [each.node.place(each.local) for each in (one, other)]
    stored = [None if found is None else _array(one).stored_object(found) for found in places]
    return stored[0] == stored[1]


def looks_like_pages(offset: int, length: int, size: int) -> bool:
    """Whether this is what the kernel hands over of a mapping: whole pages, up to the end."""
    end = offset + length
    return not offset % mmap.PAGESIZE and (not end % mmap.PAGESIZE or end >= size)
