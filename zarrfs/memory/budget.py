"""A budget of bytes: loads reserve from it, cached chunks are charged to it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from zarrfs.errors import BudgetExceeded
from zarrfs.locks import Rank, ranked_lock

R = TypeVar("R")

# Seconds.
_FIRST_COLLECTION = 1.0


class LongWait:
    """A thread waits for memory, maybe for some that a cycle of references keeps.

    The frames of an exception that was caught may be such a cycle, and keep all their data. So the
    garbage collector runs after a second, and then ever more rarely.
    """

    def __init__(self) -> None:
        self._pause = _FIRST_COLLECTION
        self._next = time.monotonic() + self._pause

    def goes_on(self) -> None:
        if time.monotonic() < self._next:
            return
        gc.collect()
        self._pause *= 2
        self._next = time.monotonic() + self._pause


class MemoryBudget:
    """``total`` bytes, shared by all threads. Thread-safe.

    A thread that reserves gets all bytes at once or waits. It holds nothing while it waits, so
    loads cannot wait for each other in a circle.

    most : the largest total so far.
    used : bytes reserved and charged now.
    highest : the most bytes that were in use at any time.
    patience : seconds after which a waiting thread asks the reclaimers again without having been
        woken, because memory may have become reclaimable unnoticed.

    Shared state, under the lock: ``total``, ``most``, ``used`` and ``highest``. Invariant:
    0 <= used <= total. ``used`` exceeds the total only through `charge`, or after `resize` has
    lowered the total.

    ``_waiting`` holds one lock for each waiting thread; `wake` releases these locks. It is a dict
    and not a condition variable because finalizers call `wake`. A finalizer runs in any thread
    with any lock held, so it must not wait for a lock. Each operation on a dict is atomic.
    """

    def __init__(self, total: int, patience: float = 1.0) -> None:
        self.total = total
        self.most = total
        self._patience = patience
        self.used = 0
        self.highest = 0
        # Reentrant, because the function that `attempt` calls reserves.
        self._lock = ranked_lock(Rank.BUDGET, reentrant=True)
        self._waiting: dict[Lock, None] = {}
        self._reclaimers: list[Callable[[int], int]] = []

    def add_reclaim(self, reclaim: Callable[[int], int]) -> None:
        """Register a function that frees memory.

        reclaim : ``reclaim(n)`` frees about ``n`` bytes and returns how many it freed, 0 if none.
            The budget calls it with its lock held, so it must not call the budget. The function
            that was registered last is called first.
        """
        self._reclaimers.insert(0, reclaim)

    def reserve(self, size: int) -> None:
        """Reserve ``size`` bytes; waits until they are free.

        Raises BudgetExceeded if the budget can never hold them.
        """
        if size > self.most:
            raise BudgetExceeded(f"{size} bytes do not fit the memory budget of {self.total}")
        if self.try_reserve(size):
            return
        wait = LongWait()
        while not self.attempt(lambda: self._take(size), self._patience):
            wait.goes_on()

    def try_reserve(self, size: int, wait: float = 0.0) -> bool:
        """Reserve ``size`` bytes if they are free now or become free within ``wait`` seconds."""
        return self.attempt(lambda: self._take(size), wait)

    def attempt(self, take: Callable[[], R], wait: float = 0.0) -> R:
        """The result of ``take`` now, or once bytes become free within ``wait`` seconds.

        take : reserves from this budget; called with the budget's lock held. It returns None or
            False if it fails. It must release nothing then: that would wake all waiting threads,
            this one too.
        """
        if not wait:
            with self._lock:
                return take()
        bell = Lock()
        bell.acquire()
        # Registered before the first try: a release after that try then rings the bell.
        self._waiting[bell] = None
        try:
            with self._lock:
                taken = take()
            if taken is not None and taken is not False:
                return taken
            bell.acquire(timeout=wait)
        finally:
            self._waiting.pop(bell, None)
        with self._lock:
            return take()

    def charge(self, size: int) -> None:
        """Count ``size`` bytes that are already in use, whether or not the budget has room.

        Less than 0 are released.
        """
        if size < 0:
            self.release(-size)
            return
        with self._lock:
            self.used += size
            self.highest = max(self.highest, self.used)

    def _take(self, size: int) -> bool:
        for reclaim in self._reclaimers:
            missing = self.used + size - self.total
            if missing <= 0:
                break
            freed = reclaim(missing)
            self.used -= freed
        # The caller may have planned the reservation before the total was lowered.
        total = self.total if size <= self.total else self.most
        if self.used + size > total:
            return False
        self.used += size
        self.highest = max(self.highest, self.used)
        return True

    def release(self, size: int) -> None:
        """Return ``size`` bytes to the budget."""
        if not size:
            return  # nobody can take more than before
        with self._lock:
            self.used -= size
        self.wake()

    def shrink(self) -> None:
        """Have the reclaimers free all memory that is kept for later use."""
        with self._lock:
            for reclaim in self._reclaimers:
                freed = reclaim(self.used)
                self.used -= freed

    def resize(self, total: int) -> None:
        """Change the total; the reclaimers free kept memory that exceeds a lower one.

        A reservation larger than the new total still succeeds if it fits the largest total so far,
        because its caller may have planned it earlier.
        """
        with self._lock:
            self.total = total
            self.most = max(self.most, total)
            self._take(0)
        self.wake()

    def wake(self) -> None:
        """Have waiting reservations reclaim again. Callable in any thread, with any lock held."""
        while self._waiting:
            try:
                bell, _ = self._waiting.popitem()
            except KeyError:
                return
            bell.release()
