"""Memory that this process shares with those it forks later."""

from __future__ import annotations

import mmap
import weakref
from bisect import insort
from collections import deque
from contextlib import suppress
from threading import Lock

import numpy as np
from numpy.typing import NDArray

# Of Linux 5.14; see madvise(2).
_POPULATE_WRITE = 23


class SharedMemory:
    """``size`` bytes at most, of which only what is handed out takes any.

    Shared state, under the lock: ``_free``, what is not handed out as (start, stop), in
    order and without neighbours. What comes back waits in ``_returned`` for the next call,
    because it comes from a finalizer, which may run with any lock held.

    Raises OSError where the system has no such memory.
    """

    def __init__(self, size: int) -> None:
        self._map = mmap.mmap(-1, max(size, mmap.PAGESIZE))
        self._start: int = np.frombuffer(self._map, np.uint8).__array_interface__["data"][0]
        self._free: list[tuple[int, int]] = [(0, len(self._map))]
        self._returned: deque[tuple[int, int]] = deque()
        self._lock = Lock()
        # Where arrays began that this process has had.
        self._populated: set[int] = set()

    def take(self, size: int) -> NDArray[np.uint8] | None:
        """Memory of any content; None where there is no such piece.

        It comes back, and its pages to the system, when nothing made from it is in use.
        """
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        with self._lock:
            self._take_back()
            for i, (start, stop) in enumerate(self._free):
                if stop - start >= whole:
                    self._free[i : i + 1] = [(start + whole, stop)] * (stop - start > whole)
                    break
            else:
                return None
        memory = np.frombuffer(self._map, np.uint8, size, start)
        weakref.finalize(memory, self._give_back, start, start + whole).atexit = False
        return memory

    def offset(self, array: NDArray[np.generic]) -> int | None:
        """Where in this memory an array begins; None if it is elsewhere."""
        offset: int = array.__array_interface__["data"][0] - self._start
        return offset if 0 <= offset < len(self._map) else None

    def array(
        self, offset: int, dtype: np.dtype[np.generic], shape: list[int], strides: list[int]
    ) -> NDArray[np.generic]:
        """The array that `offset` was asked for, in another process."""
        array = np.ndarray(shape, dtype, self._map, offset, strides)
        if offset not in self._populated:
            # A fault for each page costs several times as much.
            self._populated.add(offset)
            start = offset - offset % mmap.PAGESIZE
            with suppress(OSError):  # not in every kernel
                self._map.madvise(_POPULATE_WRITE, start, offset + array.nbytes - start)
        return array

    def _give_back(self, start: int, stop: int) -> None:
        with suppress(OSError):
            self._map.madvise(mmap.MADV_REMOVE, start, stop - start)
        self._returned.append((start, stop))

    def _take_back(self) -> None:
        while self._returned:
            insort(self._free, self._returned.popleft())
        joined: list[tuple[int, int]] = []
        for start, stop in self._free:
            if joined and joined[-1][1] == start:
                joined[-1] = joined[-1][0], stop
            else:
                joined.append((start, stop))
        self._free = joined
