"""A budget of bytes that loads reserve from and cached chunks are charged to."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from zarrfs.errors import BudgetExceeded
from zarrfs.locks import Rank, reentrant_lock


class MemoryBudget:
    """``total`` bytes. Safe for any number of threads.

    A thread that reserves gets all it asks for at once or waits, and holds nothing while
    it waits, so that loads cannot wait for each other in a circle.

    most : the largest total so far.

    Shared state, under the lock: ``total``, ``most``, ``_used`` and ``_highest``. Invariant:
    0 <= used, and used <= total except for what is charged, and after `resize` has lowered it.

    ``_waiting`` holds one lock for each thread that waits, which `wake` releases. It is a dict
    and no condition variable because finalizers call `wake`: they run in any thread with any
    lock held, so they must not wait for a lock. Each operation on a dict is atomic.

    patience : seconds after which a waiting thread asks the reclaimers again, whatever it was
        told: they may have found something that nobody noticed.
    """

    def __init__(self, total: int, patience: float = 1.0) -> None:
        self.total = total
        self.most = total
        self._patience = patience
        self._used = 0
        self._highest = 0
        # Reentrant, because what `attempt` is given reserves.
        self._lock = reentrant_lock(Rank.BUDGET)
        self._waiting: dict[Lock, None] = {}
        self._reclaimers: list[Callable[[int], int]] = []

    @property
    def used(self) -> int:
        """Bytes reserved and charged now."""
        return self._used

    @property
    def highest(self) -> int:
        """The most bytes that were ever in use."""
        return self._highest

    def add_reclaim(self, reclaim: Callable[[int], int]) -> None:
        """``reclaim(n)`` gives up memory and returns how many bytes, 0 if it has none to give.

        Those added later are asked first. It is called with the budget's lock held and
        must not call the budget.
        """
        self._reclaimers.insert(0, reclaim)

    def reserve(self, size: int) -> None:
        """Take ``size`` bytes, waiting until they are free.

        Raises BudgetExceeded where they never will be.
        """
        if size > self.most:
            raise BudgetExceeded(f"{size} bytes do not fit the memory budget of {self.total}")
        while not self.attempt(lambda: self._take(size), self._patience):
            pass

    def try_reserve(self, size: int, wait: float = 0.0) -> bool:
        """Take ``size`` bytes if they can be had now, or when some come free within ``wait``."""
        return self.attempt(lambda: self._take(size), wait)

    def attempt(self, take: Callable[[], bool], wait: float = 0.0) -> bool:
        """Whether ``take`` succeeds now, or when some bytes come free within ``wait`` seconds.

        take : reserves of this budget; called with its lock held.
        """
        if not wait:
            with self._lock:
                return take()
        bell = Lock()
        bell.acquire()
        # Before the first try: what comes free after it rings the bell.
        self._waiting[bell] = None
        try:
            with self._lock:
                if take():
                    return True
            bell.acquire(timeout=wait)
        finally:
            self._waiting.pop(bell, None)
        with self._lock:
            return take()

    def charge(self, size: int) -> None:
        """Take ``size`` bytes that are in use already, whether or not there is room for them."""
        with self._lock:
            self._used += size
            self._highest = max(self._highest, self._used)

    def _take(self, size: int) -> bool:
        for reclaim in self._reclaimers:
            missing = self._used + size - self.total
            if missing <= 0:
                break
            freed = reclaim(missing)
            self._used -= freed
        # A caller may have planned a reservation before the total was lowered.
        total = self.total if size <= self.total else self.most
        if self._used + size > total:
            return False
        self._used += size
        self._highest = max(self._highest, self._used)
        return True

    def release(self, size: int) -> None:
        """Give back ``size`` bytes."""
        with self._lock:
            self._used -= size
        self.wake()

    def shrink(self) -> None:
        """Have everything given up that is kept for later use."""
        with self._lock:
            for reclaim in self._reclaimers:
                freed = reclaim(self._used)
                self._used -= freed

    def resize(self, total: int) -> None:
        """Change the total; reclaimers give up what is kept beyond a lower one.

        A reservation larger than the new total still succeeds if it fits the largest total so
        far, because its caller may have planned it before.
        """
        with self._lock:
            self.total = total
            self.most = max(self.most, total)
            self._take(0)
        self.wake()

    def wake(self) -> None:
        """Have waiting reservations try again to reclaim. For any thread, with any lock held."""
        while self._waiting:
            try:
                bell, _ = self._waiting.popitem()
            except KeyError:
                return
            bell.release()
