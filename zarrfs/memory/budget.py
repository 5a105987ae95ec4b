"""A budget of bytes that loads reserve from and cached chunks are charged to."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from zarrfs.errors import BudgetExceeded

_RETRY_SECONDS = 0.05


class MemoryBudget:
    """``total`` bytes. Safe for any number of threads.

    Whoever reserves gets all it asks for at once or waits, and holds nothing while
    it waits, so that loads cannot wait for each other in a circle.

    Invariant, under the condition's lock: 0 <= used, and used <= total but for what is
    charged.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._highest = 0
        self._changed = Condition()
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
        if size > self.total:
            raise BudgetExceeded(f"{size} bytes do not fit the memory budget of {self.total}")
        with self._changed:
            while not self._take(size):
                # Buffers come back to the arena without a word, hence the time limit.
                self._changed.wait(_RETRY_SECONDS)

    def try_reserve(self, size: int, wait: float = 0.0) -> bool:
        """Take ``size`` bytes if they can be had now, or when some come free within ``wait``."""
        return self.attempt(lambda: self._take(size), wait)

    def attempt(self, take: Callable[[], bool], wait: float = 0.0) -> bool:
        """Whether ``take`` succeeds now, or when some bytes come free within ``wait`` seconds.

        take : reserves of this budget; called with its lock held.
        """
        with self._changed:
            if take():
                return True
            if not wait:
                return False
            self._changed.wait(wait)
            return take()

    def charge(self, size: int) -> None:
        """Take ``size`` bytes that are in use already, whether or not there is room for them."""
        with self._changed:
            self._used += size
            self._highest = max(self._highest, self._used)

    def _take(self, size: int) -> bool:
        for reclaim in self._reclaimers:
            missing = self._used + size - self.total
            if missing <= 0:
                break
            self._used -= reclaim(missing)
        if self._used + size > self.total:
            return False
        self._used += size
        self._highest = max(self._highest, self._used)
        return True

    def release(self, size: int) -> None:
        """Give back ``size`` bytes."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def shrink(self) -> None:
        """Have everything given up that is kept for later use."""
        with self._changed:
            for reclaim in self._reclaimers:
                self._used -= reclaim(self._used)

    def wake(self) -> None:
        """Have waiting reservations try again to reclaim."""
        with self._changed:
            self._changed.notify_all()
