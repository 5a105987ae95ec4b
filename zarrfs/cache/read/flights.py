"""Loads in progress: all readers that ask for the same data wait for the same load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Lock
from typing import Generic, TypeVar

from zarrfs.errors import ChunkError, UncountedError

Key = TypeVar("Key", bound=Hashable)
Waiter = TypeVar("Waiter")


class Keep(IntEnum):
    """Whether the result of a load stays in memory; of several wishes, the largest counts."""

    NO = 0
    AS_STORED = 1
    """Its elements may stay in the order in which they are stored."""
    IN_ORDER = 2


@dataclass(slots=True, eq=False, repr=False)
class _Flight(Generic[Waiter]):
    """
    keep : the largest wish of the readers.
    again : whether the load must be repeated, because its result may be old.
    """

    keep: Keep = Keep.NO
    again: bool = False
    waiters: list[Waiter] = field(default_factory=list)


class Flights(Generic[Key, Waiter]):
    """The loads of one array or file: one load per key, for any number of readers.

    The caller of every method holds the lock of the owner. A load that has ended by its failure may
    come to its end once more, for nobody.
    """

    def __init__(self) -> None:
        self._flights: dict[Key, _Flight[Waiter]] = {}

    def join(self, key: Key, waiter: Waiter | None) -> bool:
        """Wait for a load; returns True if none was in progress: then the caller must start it.

        waiter : None: no reader waits.
        """
        if first := key not in self._flights:
            self._flights[key] = _Flight()
        if waiter is not None:
            self._flights[key].waiters.append(waiter)
        return first

    def join_all(
        self, keys: Iterable[Key], waiter: Waiter, first: list[Key], *, keep: Keep
    ) -> None:
        """Wait for loads, as `join`; adds to ``first`` those that the caller must start.

        After an exception, ``first`` has those that were added until then.
        """
        flights = self._flights
        for key in keys:
            if (flight := flights.get(key)) is None:
                flight = flights[key] = _Flight()
                first.append(key)
            flight.keep = max(flight.keep, keep)
            flight.waiters.append(waiter)

    def join_any(self, waiter: Waiter) -> bool:
        """Wait for any one of the loads in progress; False if there is none."""
        for flight in self._flights.values():
            flight.waiters.append(waiter)
            return True
        return False

    def __contains__(self, key: Key) -> bool:
        return key in self._flights

    def __len__(self) -> int:
        return len(self._flights)

    def awaited(self, key: Key) -> bool:
        """Whether a reader waits for a load."""
        flight = self._flights.get(key)
        return flight is not None and bool(flight.waiters)

    def kept(self, keys: Iterable[Key]) -> list[Keep]:
        """For each of these loads, whether its result is to stay in memory."""
        found = map(self._flights.get, keys)
        return [Keep.NO if flight is None else flight.keep for flight in found]

    def end(self, key: Key) -> list[Waiter] | None:
        """A load has ended: returns its waiters; None: the caller must repeat the load."""
        if (flight := self._flights.get(key)) is None:
            return []
        if flight.again:
            flight.again = False
            return None
        del self._flights[key]
        return flight.waiters

    def repeat(self, keys: Iterable[Key]) -> None:
        """Have these loads repeated, because their results may be old."""
        for key in keys:
            self._flights[key].again = True

    def keys(self) -> list[Key]:
        return list(self._flights)


log = logging.getLogger(__name__)

Done = Callable[[ChunkError | None], None]


class Ticket:
    """Calls ``done`` once, when ``count`` parts have finished, with the first error or None."""

    __slots__ = ("_count", "_done", "_error", "_lock")

    def __init__(self, count: int, done: Done) -> None:
        self._count = count
        self._done = done
        self._error: ChunkError | None = None
        self._lock = Lock()

    def finish(self, parts: int = 1, error: ChunkError | None = None) -> None:
        """Report that ``parts`` parts have finished. Called in any thread."""
        with self._lock:
            self._error = self._error or error
            self._count -= parts
            over = self._count == 0
        if over:
            self._answer(self._error)

    def _answer(self, error: ChunkError | None) -> None:
        """Raises nothing: the waiters for other parts of a load need their answers, too."""
        try:
            self._done(error)
        except Exception as failure:
            log.exception("an answer could not be given")
            if error is None:
                # To tell of an error takes less than to make a reply.
                self._answer(UncountedError.of("a reply", failure))

    def part(self) -> Done:
        """A callback for one part, which takes its error or None; later calls change nothing."""
        once = [1]

        def done(error: ChunkError | None) -> None:
            with self._lock:
                parts, once[0] = once[0], 0
            if parts:
                self.finish(parts, error)

        return done
