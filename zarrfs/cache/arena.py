"""Memory for large buffers that is used again and again.

Fresh memory must be cleared by the kernel page by page, which costs about as much as
filling it. So buffers go back to the arena instead.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.budget import MemoryBudget


class Arena:
    """Buffers charged to ``budget``, lent out until the last view of them is gone.

    A returned buffer stays charged until the budget wants it back. At most half of the
    budget is lent out, so that whoever waits for a buffer to be filled cannot have taken
    the memory that filling it needs.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._charged = 0
        # Appended to from a finalizer, which may run in any thread with any lock held;
        # a deque needs no lock.
        self._free: deque[NDArray[np.uint8]] = deque()
        budget.add_reclaim(self._reclaim)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer of which two can be lent out at once."""
        return self._budget.total // 4

    def lend(self, size: int) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` bytes of any content; None if the budget has no room now.

        It comes back by itself when neither it nor anything made from it, be it an
        array or a memoryview, is in use any more.
        """
        for _ in range(len(self._free)):
            try:
                memory = self._free.popleft()
            except IndexError:
                break
            if size <= memory.nbytes <= 2 * size:
                return self._lease(memory, size)
            self._free.append(memory)
        lent = self._charged - sum(memory.nbytes for memory in list(self._free))
        if lent + size > self._budget.total // 2 or not self._budget.try_reserve(size):
            return None
        self._charged += size
        return self._lease(np.empty(size, np.uint8), size)

    def _lease(self, memory: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
        # Made through a memoryview, because numpy lets views of views refer to the first
        # owner of the memory, past the object whose end is waited for here.
        lease = np.frombuffer(memory.data, np.uint8, size)
        weakref.finalize(lease, self._free.append, memory).atexit = False
        return lease

    def _reclaim(self, wanted: int) -> int:
        freed = 0
        while freed < wanted and self._free:
            freed += self._free.popleft().nbytes
        self._charged -= freed
        return freed
