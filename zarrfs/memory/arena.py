"""Memory for large buffers that is used again and again.

Fresh memory must be cleared by the kernel page by page, which costs about as much as
filling it. So buffers go back to the arena instead.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.shared_memory import SharedMemory


def lease(
    memory: NDArray[np.uint8], size: int, back: Callable[[NDArray[np.uint8]], None]
) -> NDArray[np.uint8]:
    """The first ``size`` bytes of ``memory``, to be lent until the last view of them is gone.

    back : is then called with all of it, in any thread, with any lock held.
    """
    # Made through a memoryview, because numpy lets views of views refer to the first
    # owner of the memory, past the object whose end is waited for here.
    leased = np.frombuffer(memory.data, np.uint8, size)
    weakref.finalize(leased, back, memory).atexit = False
    return leased


class Arena:
    """Buffers charged to ``budget``, lent out until the last view of them is gone.

    A returned buffer stays charged until the budget wants it back. At most half of the
    budget is lent out if nothing else is said, so that whoever waits for a buffer to be
    filled cannot have taken the memory that filling it needs. What is kept for later may be
    a little more: it is given up for whoever needs a buffer now.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        spill_directory: str | None = None,
        shared: SharedMemory | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """
        whole : whether the whole budget may be lent out; else half of it.
        shared : what buffers for worker processes are made of, as far as it goes.
        spill_directory : for files where memory is not enough; None: there is nothing else.
        """
        self.spill_directory = spill_directory
        self._budget = budget
        self._shared = shared
        self._whole = whole
        # Bytes of all buffers, lent out or not; changes with the budget's lock held.
        self._charged = 0
        # A finalizer appends to it, in any thread with any lock held, so it has no lock: each
        # operation on a deque is atomic.
        self._free: deque[NDArray[np.uint8]] = deque()
        budget.add_reclaim(self.reclaim)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer of which two can be lent out at once."""
        return self._budget.total // 4

    @property
    def _most(self) -> int:
        """Bytes that may be lent out."""
        total = self._budget.total
        return total if self._whole else total // 2

    @property
    def _most_kept(self) -> int:
        """Bytes that may be lent out if a part of them is kept for later."""
        return max(self._most, self._budget.total * 5 // 8)

    @property
    def largest_alone(self) -> int:
        """Bytes of the largest buffer of which one can be lent out at once."""
        return self._most

    @property
    def kept_back(self) -> int:
        """Bytes of the budget that are never lent out but to be kept for later."""
        return self._budget.total - self._budget.total // 2

    @property
    def never_lent(self) -> int:
        """Bytes of the budget that are never lent out at all."""
        return self._budget.total - self._most_kept

    @property
    def kept(self) -> int:
        """Bytes of buffers that have come back."""
        return sum(memory.nbytes for memory in list(self._free))

    def lendable(self, beside: int) -> int:
        """Bytes that may be lent out to whoever needs ``beside`` more to fill them."""
        return min(self._most, self._budget.total - beside)

    def lend(
        self, size: int, *, shared: bool = False, keep: bool = False, beside: int = 0
    ) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` bytes of any content; None if the budget has no room now.

        beside : bytes of the budget that filling it takes, which are not lent out. Whoever was
            lent a buffer last can always fill it, and all others after that.
        keep : it is kept for later, and whoever has it can be made to let go of it.
        shared : for worker processes to fill, if it can be. Memory of this process alone
            costs less, because it comes in huge pages.

        It comes back by itself when neither it nor anything made from it, be it an
        array or a memoryview, is in use any more.
        """
        most = self._most_kept if keep else self.lendable(beside)
        for _ in range(len(self._free)):
            try:
                memory = self._free.popleft()
            except IndexError:
                break
            # Not in `_free` now, it counts as lent.
            fits = size <= memory.nbytes <= 2 * size and self._is_shared(memory) == shared
            if fits and self.lent <= most:
                return lease(memory, size, self._take_back)
            self._free.append(memory)
        if not self._budget.attempt(lambda: self._charge(size, most)):
            return None
        fresh = self._shared.take(size) if shared and self._shared is not None else None
        memory = np.empty(size, np.uint8) if fresh is None else fresh
        return lease(memory, size, self._take_back)

    def missing(self, size: int, *, keep: bool, beside: int) -> int:
        """About how many bytes must come back before `lend` can have a buffer."""
        most = self._most_kept if keep else self.lendable(beside)
        return max(size, self.lent + size - most)

    def _charge(self, size: int, most: int) -> bool:
        """Charge a buffer to the budget if it may be lent out. With the budget's lock held."""
        if self.lent + size > most or not self._budget.try_reserve(size):
            return False
        self._charged += size
        return True

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        """What a finalizer does with a buffer, in any thread with any lock held."""
        self._free.append(memory)
        self._budget.wake()

    def back(self, memory: NDArray[np.uint8]) -> None:
        """Make a buffer that was lent ready to be filled by other processes. Blocks."""
        if self._shared is not None:
            self._shared.back(memory)

    def _is_shared(self, memory: NDArray[np.uint8]) -> bool:
        return self._shared is not None and self._shared.offset(memory) is not None

    @property
    def lent(self) -> int:
        """Bytes that are lent out."""
        return self._charged - self.kept

    def reclaim(self, wanted: int) -> int:
        """Give up buffers that nobody holds, of about ``wanted`` bytes; how many it were.

        With the budget's lock held.
        """
        freed = 0
        while freed < wanted:
            try:
                freed += self._free.popleft().nbytes
            except IndexError:
                break  # `lend` may have taken the last one meanwhile
        self._charged -= freed
        return freed
