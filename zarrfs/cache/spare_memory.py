"""Memory for chunks that are yet to be asked for, with its pages there already.

The kernel finds and clears a page when it is first written to, which takes a third of the time
in which zstd fills it. Somebody who reads chunk after chunk leaves loader threads idle meanwhile.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.budget import MemoryBudget
from zarrfs.cache.shared_memory import POPULATE_WRITE

# Bytes of a chunk below which this is not worth it.
_LEAST = 256 << 10
_MOST_SPARES = 2
# Parts of the budget of which a spare may take one.
_PARTS = 16


class SpareMemory:
    """Hands out memory for chunks, and keeps some ready, charged to ``budget``.

    Spares are only made where there is room, and are what the budget takes back first.

    Shared state, under the lock: ``_spares``, the oldest first.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._spares: deque[NDArray[np.uint8]] = deque()
        self._lock = Lock()
        # What was handed out last, if it is in use: decoders need not take what they are given.
        self._last: weakref.ref[NDArray[np.uint8]] | None = None
        budget.add_reclaim(self._reclaim)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Memory of any content, which the caller has charged to the budget."""
        if size < _LEAST:
            return np.empty(size, np.uint8)
        with self._lock:
            found = next((spare for spare in self._spares if spare.nbytes == size), None)
            if found is not None:
                # Not with `remove`, which compares what they hold.
                self._spares = deque(spare for spare in self._spares if spare is not found)
        if found is None:
            found = np.empty(size, np.uint8)
        else:
            self._budget.release(size)
        self._last = weakref.ref(found)
        return found

    def prepare(self) -> None:
        """Make a spare like what was handed out last, if that is in use. Blocks.

        For a thread that has nothing better to do.
        """
        last = None if self._last is None else self._last()
        if last is None or not self._wants(size := last.nbytes):
            return
        del last
        budget = self._budget
        if not budget.try_reserve(size):
            return
        memory = np.empty(size, np.uint8)
        surplus = size
        if _populate(memory):
            with self._lock:
                self._spares.append(memory)
                surplus = self._drop_surplus()
        if surplus:
            budget.release(surplus)

    def clear(self) -> None:
        """Let go of every spare, whatever the budget thinks."""
        self._spares.clear()

    def _wants(self, size: int) -> bool:
        """Whether a spare of that size would be kept, and nothing has to go for it."""
        budget = self._budget
        if size > budget.total // _PARTS or budget.used + size > budget.total:
            return False
        with self._lock:
            return sum(spare.nbytes == size for spare in self._spares) < _MOST_SPARES

    def _drop_surplus(self) -> int:
        """Bytes of the spares that are too many; with the lock held."""
        surplus = 0
        while len(self._spares) > _MOST_SPARES:
            surplus += self._spares.popleft().nbytes
        return surplus

    def _reclaim(self, wanted: int) -> int:
        freed = 0
        with self._lock:
            while freed < wanted and self._spares:
                freed += self._spares.popleft().nbytes
        return freed


def _populate(memory: NDArray[np.uint8]) -> bool:
    """Have all pages that lie in ``memory`` ready to be written to; False if none could be."""
    address: int = memory.__array_interface__["data"][0]
    first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (address + memory.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if (madvise := _madvise()) is None:
        return False
    # Without the interpreter, unlike `mmap.madvise`. Not in every kernel.
    failed = madvise(ctypes.c_void_p(first), ctypes.c_size_t(stop - first), POPULATE_WRITE)
    return not failed


@cache
def _madvise() -> Callable[[ctypes.c_void_p, ctypes.c_size_t, int], int] | None:
    """None in a C library that is another one."""
    return getattr(ctypes.CDLL(None), "madvise", None)
