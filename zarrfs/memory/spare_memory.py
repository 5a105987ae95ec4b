"""Memory for chunks that are yet to be asked for, with its pages there already.

The kernel finds and clears a page when it is first written to, which takes a third of the time
in which zstd fills it, and threads wait for each other meanwhile. So the memory of a chunk that has
gone is used again; and somebody who reads chunk after chunk, all of which are kept, leaves loader
threads idle, which can make more of it ready.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.arena import lease
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.shared_memory import POPULATE_WRITE

# Bytes of a chunk below which this is not worth it.
_LEAST = 256 << 10
# Spares, and how many of them are made: while so many wait, others may come back.
_MOST_SPARES = 4
_MOST_MADE = 2
# Parts of the budget of which all spares may take one.
_PARTS = 8


class _Spares(NamedTuple):
    """Pieces of memory of one size; what comes last is used first, while it is hot."""

    size: int
    pieces: deque[NDArray[np.uint8]]


_NONE = _Spares(0, deque(maxlen=0))


class SpareMemory:
    """Hands out memory for chunks, and keeps some ready: of the size that was asked for last.

    Room for spares is charged to ``budget`` before there are any, because memory comes back
    where nobody can ask for it: when the last view of a chunk goes, in any thread, with any lock
    held. There is such room only where nothing has to go for it.

    Shared state, under the lock: ``_charged``, and which spares there are room for. What they are
    changes without it.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._spares = _NONE
        self._charged = 0
        self._lock = Lock()
        budget.add_reclaim(self._reclaim)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Memory of any content, which the caller has charged to the budget."""
        if size < _LEAST:
            return np.empty(size, np.uint8)
        if size != self._spares.size:
            self._make_room(size)
        spares = self._spares
        if size == spares.size:
            with suppress(IndexError):
                return lease(spares.pieces.pop(), size, self._back)
        return lease(np.empty(size, np.uint8), size, self._back)

    def prepare(self) -> None:
        """Make a spare, if there are few. Blocks. For a thread that has nothing better to do."""
        spares = self._spares
        if spares.size and len(spares.pieces) < _MOST_MADE:
            memory = np.empty(spares.size, np.uint8)
            if _populate(memory):
                spares.pieces.append(memory)

    def clear(self) -> None:
        """Let go of every spare, whatever the budget thinks."""
        self._spares = _NONE

    def _back(self, memory: NDArray[np.uint8]) -> None:
        """Nobody has a view of it any more."""
        spares = self._spares
        if memory.nbytes == spares.size:
            spares.pieces.append(memory)

    def _make_room(self, size: int) -> None:
        """Keep spares of that size from now on, if nothing has to go for it."""
        budget = self._budget
        room = _MOST_SPARES * size
        if room > budget.total // _PARTS or budget.used + room > budget.total:
            return
        if not budget.try_reserve(room):
            return
        with self._lock:
            unused, self._charged = self._charged, room
            self._spares = _Spares(size, deque(maxlen=_MOST_SPARES))
        if unused:
            budget.release(unused)

    def _reclaim(self, _wanted: int) -> int:
        with self._lock:
            freed, self._charged = self._charged, 0
            self._spares = _NONE
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
