"""An arena: memory for large buffers that is used again and again.

The kernel must clear fresh memory page by page, which costs about as much as filling it. So
buffers return to the arena instead.

Buffers are in small pages unless huge ones are available to `Arena.back` at once; numpy asks for
huge pages whatever they cost. See `zarrfs.memory.huge_pages`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.huge_pages import HUGE_PAGE, HugePages, address_of, small_pages
from zarrfs.memory.shared_memory import Place, SharedMemory


def lease(
    memory: NDArray[np.uint8], size: int, back: Callable[[NDArray[np.uint8]], None]
) -> NDArray[np.uint8]:
    """Lend the first ``size`` bytes of ``memory`` until the last view of them is gone.

    back : called with all of ``memory`` when that happens, in any thread, with any lock held.
    """
    # The memoryview in between is needed: numpy lets views of views refer to the first owner of
    # the memory, past the object whose end the finalizer waits for.
    leased = np.frombuffer(memory.data, np.uint8, size)
    weakref.finalize(leased, back, memory).atexit = False
    return leased


class Arena:
    """Buffers charged to ``budget``. Each is lent until the last view of it is gone.

    A returned buffer stays charged until the budget reclaims it. By default the arena lends at
    most half of the budget. The other half remains for the loads that fill the buffers, so a
    reader that waits for its buffer cannot have taken the memory that the load needs. Buffers
    that are kept for later may take a little more than half: their holder gives them up when a
    reader needs a buffer now.
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
        whole : whether the arena may lend the whole budget; else half of it.
        shared : memory for buffers that worker processes fill, used while it has room.
        spill_directory : directory for files that replace memory; None: there are no such files.
        """
        self.spill_directory = spill_directory
        self._budget = budget
        self._shared = shared
        self._whole = whole
        # Bytes of all buffers, lent or returned; changes with the budget's lock held.
        self._charged = 0
        # Returned buffers. It has no lock because a finalizer appends to it, in any thread with
        # any lock held. Each operation on a deque is atomic.
        self._free: deque[NDArray[np.uint8]] = deque()
        self._huge_pages = HugePages() if shared is None else shared.huge_pages
        # Addresses of private buffers that have no pages yet, so that huge ones may be requested.
        # It has no lock, as `_free`: each operation on a set is atomic.
        self._fresh: set[int] = set()
        budget.add_reclaim(self.reclaim)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer of which the arena can lend two at once."""
        return self._budget.total // 4

    @property
    def _most(self) -> int:
        """Bytes that the arena may lend."""
        total = self._budget.total
        return total if self._whole else total // 2

    @property
    def _most_kept(self) -> int:
        """Bytes that the arena may lend if some of the buffers are kept for later."""
        return max(self._most, self._budget.total * 5 // 8)

    @property
    def never_lent(self) -> int:
        """Bytes of the budget that are never lent."""
        return self._budget.total - self._most_kept

    @property
    def kept(self) -> int:
        """Bytes of returned buffers."""
        return sum(memory.nbytes for memory in list(self._free))

    def lendable(self, beside: int) -> int:
        """Bytes that may be lent to a load that needs ``beside`` further bytes for filling."""
        return min(self._most, self._budget.total - beside)

    def lend(
        self,
        size: int,
        *,
        shared: bool = False,
        keep: bool = False,
        beside: int = 0,
        extra: int = 0,
    ) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` bytes with any content; None if the budget has no room now.

        extra : bytes that the budget reserves for the caller together with the buffer, or not at
            all. Reserving them before and releasing them after a failure would wake every thread
            that waits for memory, each of which would fail and wake the others.
        beside : bytes of the budget that filling the buffer takes. They are not lent, so the load
            that got the latest buffer can always fill it, and the other loads can follow.
        keep : whether the buffer is kept for later. Its holder must then give it up on request.
        shared : whether worker processes are to fill the buffer, if there is room in the shared
            memory. Memory of this process alone costs less, as only this process maps its pages.

        The buffer returns to the arena by itself once it and everything made from it (arrays,
        memoryviews) is out of use.
        """
        most = self._most_kept if keep else self.lendable(beside)
        for _ in range(len(self._free)):
            try:
                memory = self._free.popleft()
            except IndexError:
                break
            # The buffer is not in `_free` now, so `lent` counts it.
            fits = size <= memory.nbytes <= 2 * size and self._is_shared(memory) == shared
            # The buffer is charged already, so it needs no room in a budget that is overdrawn.
            if fits and self.lent <= most and (not extra or self._budget.try_reserve(extra)):
                return lease(memory, size, self._take_back)
            self._free.append(memory)
        if not self._budget.attempt(lambda: self._charge(size, most, extra)):
            return None
        fresh = self._shared.take(size) if shared and self._shared is not None else None
        memory = small_pages(size) if fresh is None else fresh
        if fresh is None:
            self._fresh.add(address_of(memory))
        return lease(memory, size, self._take_back)

    def missing(self, size: int, *, keep: bool, beside: int) -> int:
        """About how many bytes must be returned before `lend` succeeds."""
        most = self._most_kept if keep else self.lendable(beside)
        return max(size, self.lent + size - most)

    def _charge(self, size: int, most: int, extra: int) -> bool:
        """Charge a buffer to the budget if it may be lent. The budget's lock is held."""
        if self.lent + size > most or not self._budget.try_reserve(size + extra):
            return False
        self._charged += size
        return True

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        """Take a buffer back: called by a finalizer, in any thread with any lock held."""
        self._free.append(memory)
        self._budget.wake()

    def back(self, memory: NDArray[np.uint8]) -> bool:
        """Prepare a lent buffer for being filled, by other processes if it is shared. Blocks.

        Returns whether most of its pages exist now, so that filling it takes no longer than a copy.

        New small pages took a quarter of the processor time of a scan of 256 MiB in one slab.
        """
        if self._shared is not None and self._is_shared(memory):
            self._shared.back(memory)
            return self._huge_pages.available
        if (address := address_of(memory)) in self._fresh:
            self._fresh.discard(address)
            self._huge_pages.fill(memory)
            return memory.nbytes >= HUGE_PAGE and self._huge_pages.available
        return True

    def place(self, memory: NDArray[np.generic]) -> Place | None:
        """Where an array is in the shared memory; None if it is elsewhere."""
        return None if self._shared is None else self._shared.place(memory)

    def _is_shared(self, memory: NDArray[np.uint8]) -> bool:
        return self._shared is not None and self._shared.offset(memory) is not None

    @property
    def lent(self) -> int:
        """Bytes of the buffers that are lent."""
        return self._charged - self.kept

    def reclaim(self, wanted: int) -> int:
        """Free returned buffers of about ``wanted`` bytes; returns how many bytes were freed.

        The budget's lock is held.
        """
        freed = 0
        while freed < wanted:
            try:
                memory = self._free.popleft()
            except IndexError:
                break  # `lend` may have taken the last one meanwhile
            self._fresh.discard(address_of(memory))
            freed += memory.nbytes
        self._charged -= freed
        return freed
