"""The owner of an array's changed pages, and the writes past these pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from zarrfs.fs.coherence.kernel_pages import KernelPages, count_one_less
from zarrfs.fs.loop.gate import Gate
from zarrfs.fs.nodes.place import Place

# Files of one tree that may have changed pages at once. A direct write drops the pages of all.
_MOST_OWNERS = 16
# Seconds that a file waits before its size changes until changed pages of others have come in. They
# may not come before it has changed.
_PATIENCE_RESIZING = 1.0

Write = Callable[[], Awaitable[int]]


@dataclass(slots=True, eq=False)
class _DirectWrite:
    """
    again : applies the write again, over older bytes.
    met : whether older pages came in, so that it had to be applied again.
    error : why that failed.
    """

    again: Write
    met: bool = False
    error: Exception | None = None


class ArrayPages:
    """The files of one array in the kernel's page cache. Loop only.

    Shared state: ``_owners``, files with handles that write through the page cache; ``_latest``,
    the direct write that is being applied or waits for pages to be dropped. At most one does so at
    a time, under ``_turn``. Reads and writes of owners are inside ``_gate``; a direct write, or a
    page that is older than it, is applied alone. Nothing that is inside or alone waits for the
    kernel.
    """

    def __init__(self, pages: KernelPages) -> None:
        self._pages = pages
        self._owners: Counter[Place] = Counter()
        # Handles through the page cache, by inode.
        self._cached: Counter[int] = Counter()
        self._gate = Gate()
        self._turn = trio.Lock()
        self._latest: _DirectWrite | None = None
        # Direct writes that began when there was no owner.
        self._alone: set[object] = set()
        self._some_ended = trio.lowlevel.ParkingLot()

    def enter(self, place: Place, *, read: bool, write: bool, past: bool) -> bool:
        """A file is opened; returns whether the handle is direct.

        past : the handle must be direct, because the kernel cannot know where it writes.
        """
        if write and (past or not self._may_own(place, read=read)):
            return True
        self._cached[place.inode] += 1
        if write:
            self._owners[place] += 1
        return False

    def _may_own(self, place: Place, *, read: bool) -> bool:
        if place in self._owners:
            return True
        if not read and place.inode not in self._cached:
            # No program has pages of the file, and this one cannot map it. The kernel need not
            # copy written data to pages first, which costs more than all other steps of a write.
            return False
        tree = _tree(place)
        same = tree is not None and all(_tree(owner) == tree for owner in self._owners)
        return not self._owners or (same and len(self._owners) < _MOST_OWNERS)

    def leave(self, place: Place, *, write: bool) -> None:
        """A handle is closed that `enter` said is not direct."""
        count_one_less(self._cached, place.inode)
        if write:
            count_one_less(self._owners, place)

    async def ready(self) -> None:
        """Return when every direct write has ended that began before there was an owner.

        A page that the owner reads before that may have bytes from before such a write.
        """
        before = self._alone.copy()
        while before & self._alone:
            await self._some_ended.park()

    # --- reads and writes through the page cache ------------------------------------

    def must_wait(self, place: Place) -> bool:
        """Whether a read of a file's pages must wait in `wait_to_read` first."""
        return self._gate.closed and place in self._owners

    async def wait_to_read(self) -> None:
        """Return when no direct write is being applied."""
        await self._gate.wait_open()

    @contextmanager
    def reading(self, place: Place) -> Iterator[None]:
        """Inside, a page of a file is read that takes time; not if `must_wait`."""
        if place in self._owners:
            with self._gate.inside():
                yield
        else:
            yield

    async def write_through(self, write: Write) -> int:
        """Await ``write``, through the owner's pages, which the kernel holds meanwhile."""
        await self._gate.wait_open()
        if self._latest is None:
            with self._gate.inside():
                return await write()
        async with self._gate.alone():
            latest = self._latest
            try:
                return await write()
            finally:
                if latest is not None:
                    await self._again(latest)

    async def _again(self, latest: _DirectWrite) -> None:
        """Apply a direct write again, because older bytes may have come in."""
        latest.met = True
        try:
            await latest.again()
        except Exception as error:  # noqa: BLE001 - the direct write raises it
            latest.error = error

    # --- writes past the page cache -------------------------------------------------

    async def write_past(self, place: Place, write: Write) -> int:
        """Await ``write``, past the kernel's pages; return when no page is older.

        write : may be called several times.
        """
        if not self._owners:
            with self._without_owner():
                try:
                    written = await write()
                finally:
                    self._pages.outdated(place.inode)
            await self._drop(place)
            return written
        async with self._turn:
            self._latest = latest = _DirectWrite(write)
            try:
                async with self._gate.alone():
                    try:
                        written = await write()
                    finally:
                        self._pages.outdated(place.inode)
                await self._drop(place)
            finally:
                self._latest = None
            if latest.met:
                # The pages that came in show what they brought.
                await self._drop(place)
        if latest.error is not None:
            raise latest.error
        return written

    @contextmanager
    def _without_owner(self) -> Iterator[None]:
        write = object()
        self._alone.add(write)
        try:
            yield
        finally:
            self._alone.remove(write)
            self._some_ended.unpark_all()

    async def _drop(self, place: Place) -> None:
        """Have the kernel drop the pages of the owners, and those of a file itself."""
        inodes = {owner.inode for owner in self._owners}
        if place.inode in self._cached:
            inodes.add(place.inode)
        for inode in inodes:
            self._pages.kernel.drop(inode)
        if inodes:
            await self._pages.kernel.settled(inodes)

    async def resize(self, place: Place, resize: Callable[[], Awaitable[None]]) -> None:
        """Await ``resize``, which changes the number of rows through a file.

        Pages that were changed before must come in before: later, their rows may be gone, or be
        new ones. The kernel hands over no pages of the file itself meanwhile, so nothing waits for
        these.
        """
        if self._drop_others(place):
            with trio.move_on_after(_PATIENCE_RESIZING):
                await self._pages.kernel.settled(place.inodes)
        async with self._gate.alone():
            try:
                await resize()
            finally:
                if self._latest is not None:
                    # It came before, and must not bring back a row.
                    self._latest.again = _nothing
                self._drop_others(place)

    def _drop_others(self, place: Place) -> bool:
        others = [owner.inode for owner in self._owners if owner.inode != place.inode]
        for inode in others:
            self._pages.kernel.drop(inode)
        return bool(others)


async def _nothing() -> int:
    return 0


def _tree(place: Place) -> str | None:
    """The name of the tree of chunks or shards that a file is in; None for the flat files."""
    found = place.node.place(place.local)
    return None if found is None else found.tree.name
