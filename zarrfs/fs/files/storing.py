"""Writes to an array that may not be stored yet, and the tasks that wait for them.

Changes belong to the array and not to the handle that they came through: descriptors are
copied and inherited, and the kernel writes the changed pages of a file through any handle of
it. So a close covers all writers of its file, and returns when all is stored that was
written to the file before. It waits for running writes, and for a task that stores.

Invariants: every write has a number, given when it ends; what ended up to ``_stored`` is in
the store. At most one task stores at a time. Those that come meanwhile share the next turn,
its error included, so that a store that does not answer is not waited for once by each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

import trio

Store: TypeAlias = Callable[[], Awaitable[object]]
"""Stores all changes of an array that were made before it is called.

Raises ZarrfsError; the changes then stay and are stored by the next call.
"""


@dataclass(slots=True, eq=False)
class _Turn:
    """One time that all changes are stored.

    last : number of the last write that it stores.
    error : why it failed; None where it did not, or was cancelled before that was known.
    """

    last: int
    error: Exception | None = None
    over: trio.Event = field(default_factory=trio.Event)


class Storing:
    """The writes to one array. Loop only."""

    def __init__(self) -> None:
        self._ended = 0
        self._stored = 0
        # By inode, the number of the last write, where that is not stored.
        self._last: dict[int, int] = {}
        # Writes that run, and the inode of each.
        self._running: dict[int, int] = {}
        self._tickets = count()
        self._some_ended = trio.lowlevel.ParkingLot()
        self._turn: _Turn | None = None

    @contextmanager
    def writing(self, inode: int) -> Iterator[None]:
        """Inside, a file is written to. A write that fails may be done in part."""
        ticket = next(self._tickets)
        self._running[ticket] = inode
        try:
            yield
        finally:
            del self._running[ticket]
            self._ended += 1
            self._last[inode] = self._ended
            self._some_ended.unpark_all()

    async def close(self, inode: int, store: Store) -> None:
        """Return when all is stored that was written to a file before the call.

        Does not wait, nor store anything, where that is so already. Raises ZarrfsError.
        """
        await self._wait_for_writes(inode)
        if self._last.get(inode, 0) > self._stored:
            await self._store_up_to(self._last[inode], store)

    async def sync(self, inode: int, store: Store) -> None:
        """The same with all changes of the array, also those that nobody has told of here."""
        await self._wait_for_writes(inode)
        await self._store_up_to(self._ended, store)

    async def _wait_for_writes(self, inode: int) -> None:
        """Return when the writes to a file have ended that run now."""
        before = [ticket for ticket, other in self._running.items() if other == inode]
        while any(ticket in self._running for ticket in before):
            await self._some_ended.park()

    async def _store_up_to(self, number: int, store: Store) -> None:
        while (turn := self._turn) is not None:
            await turn.over.wait()
            if turn.last < number:
                continue
            if turn.error is not None:
                raise turn.error
            if self._stored >= number:
                return
        self._turn = turn = _Turn(self._ended)
        try:
            await store()
            self._stored = max(self._stored, turn.last)
            self._forget()
        except Exception as error:
            turn.error = error
            raise
        finally:
            self._turn = None
            turn.over.set()

    def _forget(self) -> None:
        """Files of which everything is stored need not be remembered."""
        self._last = {inode: n for inode, n in self._last.items() if n > self._stored}
