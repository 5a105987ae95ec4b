"""The order in which a thread may take locks, and a check of that order.

`Rank` names the locks of shared state that several parts of the program use, in the order in which
a thread takes them. A thread that holds such a lock may wait only for locks of a later rank, and
for no second lock of the same rank. So threads cannot wait for each other in a circle. A thread may
try a lock without waiting in any order. Locks without a rank are taken last, for a few steps that
take no other lock; those of `KeyedLocks` are held for as long as it takes to open or replace what
the key names.

With ``ZARRFS_DEBUG_LOCKS`` in the environment, as in the tests, each lock checks this order: a
thread that violates it gets a `LockOrderError` instead of waiting. Otherwise the locks are plain
ones.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from threading import Condition, Lock, RLock, local
from typing import cast

checked = bool(os.environ.get("ZARRFS_DEBUG_LOCKS"))
"""Whether locks that are made from now on check the order."""


class Rank(IntEnum):
    """Ranks of locks, in the order in which a thread takes them."""

    GROWTH = 1  # the length of an array, held while that is stored
    GATHERING = 2  # gathered changes in file order, held while elements are copied
    COPYING = 3  # gathered changes that were answered and are being copied
    TILE = 4  # the changes of one tile, held while elements are copied
    DIRTY_OBJECTS = 5  # which tiles have changes
    WRITE_BACK = 6  # which arrays have changes
    STAGED_ROWS = 7  # rows of chunks in a staging file
    BUDGET = 8  # bytes of memory; held while memory is reclaimed
    CACHE = 9  # decoded chunks and slabs
    THREADS = 10  # jobs for threads


class LockOrderError(AssertionError):
    """A thread waits for a lock that it must take before one that it holds."""


class _Held(local):
    """The locks that a thread holds, in the order in which it took them."""

    def __init__(self) -> None:
        self.locks: list[_CheckedLock] = []


_held = _Held()


class _CheckedLock:
    """A lock that checks its rank."""

    def __init__(self, rank: Rank, *, reentrant: bool) -> None:
        self.rank = rank
        self._reentrant = reentrant
        self._lock = RLock() if reentrant else Lock()
        self._taken = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        locks = _held.locks
        if blocking and not (self._reentrant and self in locks):
            for other in locks:
                if other.rank >= self.rank:
                    raise LockOrderError(f"{self.rank.name} is waited for with {other.rank.name}")
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._taken += 1
            locks.append(self)
        return taken

    def locked(self) -> bool:
        """For `Condition`, since Python 3.14."""
        return self._taken > 0

    def release(self) -> None:
        _held.locks.remove(self)
        self._taken -= 1
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def ranked_lock(rank: Rank, *, reentrant: bool = False) -> Lock:
    """``reentrant`` : whether a thread may take the lock again while it holds it."""
    plain = RLock() if reentrant else Lock()
    return cast(Lock, _CheckedLock(rank, reentrant=reentrant) if checked else plain)


def ranked_condition(rank: Rank) -> Condition:
    """A condition variable on a lock of that rank."""
    return Condition(ranked_lock(rank))


class KeyedLocks:
    """A lock for each key, as long as a thread holds it or waits for it.

    Shared state, under ``_lock``: ``_locks``, by key the lock and the number of such threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[Hashable, tuple[Lock, int]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a thread holds the lock of a key, or waits for it."""
        return key in self._locks

    @contextmanager
    def held(self, key: Hashable) -> Iterator[None]:
        with self._lock:
            lock, threads = self._locks.get(key, (Lock(), 0))
            self._locks[key] = lock, threads + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                threads = self._locks[key][1] - 1
                self._locks[key] = lock, threads
                if not threads:
                    del self._locks[key]
