"""Memory that this process shares with the processes that it forks later."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from bisect import insort
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.huge_pages import HUGE_PAGE, POPULATE_WRITE, HugePages, address_of, c_function

# Since Linux 5.14; see madvise(2).
POPULATE_READ = 22
# Since Linux 6.1.
_COLLAPSE = 25
# The most calls that prepare the memory of one array. An array of more parts has the gaps between
# its parts prepared too, which costs less than one call for each part.
_MOST_SPANS = 64


class Place(NamedTuple):
    """A numpy array in shared memory.

    offset : of its first byte.
    dtype : as `numpy.dtype.str`.
    strides : in bytes.
    """

    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class SharedMemory:
    """At most ``size`` bytes; only the pieces that are in use take memory.

    Shared state, under the lock: ``_free``, the unused pieces as (start, stop), in order and with
    neighbours joined. A returned piece waits in ``_returned`` for the next call, because a
    finalizer returns it, and a finalizer may run with any lock held.

    Raises OSError if the system has no such memory.
    """

    def __init__(self, size: int) -> None:
        self._map = _map(size + HUGE_PAGE)
        self._start = _address(self._map)
        first = self._huge_page_from(0)
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._free: list[tuple[int, int]] = [(first, first + whole)]
        self._returned: deque[tuple[int, int]] = deque()
        self._lock = Lock()
        # Offsets of the pieces for which huge pages were requested.
        self._backed: set[int] = set()
        self.huge_pages = HugePages()
        self._mincore = c_function("mincore")
        # For each page, whether this process has prepared it for writing.
        self._ready = np.zeros(len(self._map) // mmap.PAGESIZE + 1, bool)

    def take(self, size: int) -> NDArray[np.uint8] | None:
        """A piece of ``size`` bytes of any content; None if no unused piece is large enough.

        Once everything made from the piece is out of use, the piece is free again and its pages
        return to the system.
        """
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        with self._lock:
            self._take_back()
            for i, (first, stop) in enumerate(self._free):
                start = self._huge_page_from(first) if size >= HUGE_PAGE else first
                if stop - start >= whole:
                    left = (first, start), (start + whole, stop)
                    self._free[i : i + 1] = [(begin, end) for begin, end in left if begin < end]
                    break
            else:
                return None
            self._backed.discard(start)
        memory = np.frombuffer(self._map, np.uint8, size, start)
        weakref.finalize(memory, self._give_back, start, start + whole).atexit = False
        return memory

    def back(self, memory: NDArray[np.uint8]) -> None:
        """Have the system back a piece with huge pages, until none is available at once. Blocks."""
        start = self.offset(memory)
        if start is None or start in self._backed or not self.huge_pages.available:
            return
        self._backed.add(start)

        def touch(page: int) -> None:
            self._map[page - self._start]  # only pages that exist can become a huge page

        self.huge_pages.request(self._start + start, memory.nbytes, _COLLAPSE, touch)

    def _huge_page_from(self, offset: int) -> int:
        return offset + -(self._start + offset) % HUGE_PAGE

    def offset(self, array: NDArray[np.generic]) -> int | None:
        """Offset of an array in this memory; None if the array is elsewhere."""
        offset = address_of(array) - self._start
        return offset if 0 <= offset < len(self._map) else None

    def place(self, array: NDArray[np.generic]) -> Place | None:
        """Where an array is in this memory; None if the array is elsewhere."""
        if (offset := self.offset(array)) is None:
            return None
        return Place(offset, array.dtype.str, array.shape, array.strides)

    def array(self, place: Place) -> NDArray[Any]:
        """In another process, the array that `place` was called with."""
        offset, dtype, shape, strides = place
        array = np.ndarray(shape, dtype, self._map, offset, strides)
        self.populate(array)
        return array

    def populate(self, array: NDArray[np.generic]) -> None:
        """Prepare this process's pages of an array in this memory for writing.

        Preparing page by page, on first access, costs several times as much. Few of the pages
        between the parts of the array are prepared: two processes that prepare the same pages at
        the same time wait for each other at each page.
        """
        offset = self.offset(array)
        if offset is None:
            return
        with suppress(OSError):  # some kernels lack the call
            for start, stop in _spans(array.transpose(in_order(array)), offset, _MOST_SPANS):
                first, last = start // mmap.PAGESIZE, -(-stop // mmap.PAGESIZE)
                missing = np.flatnonzero(~self._ready[first:last])
                if len(missing):
                    # Looking at pages that are prepared takes a tenth of the time for others.
                    first, last = first + int(missing[0]), first + int(missing[-1]) + 1
                    self._ready[first:last] = True
                    self._populate(first * mmap.PAGESIZE, last * mmap.PAGESIZE)

    def _populate(self, start: int, stop: int) -> None:
        """Prepare all pages between two positions. Raises OSError if the kernel lacks the call.

        Pages that exist already, because another process has prepared them, take a half to two
        thirds of the time if they are prepared for reading: the kernel then maps sixteen of them
        at once, and lets this process write to them, too. New pages take a sixth more then.
        """
        mostly_exist = 2 * self._existing(start, stop) > stop - start
        advice = POPULATE_READ if mostly_exist else POPULATE_WRITE
        self._map.madvise(advice, start, stop - start)

    def _existing(self, start: int, stop: int) -> int:
        """Bytes of the pages between two positions that exist, as other processes made them."""
        pages = bytearray((stop - start) // mmap.PAGESIZE)
        address = ctypes.c_void_p(self._start + start)
        # Not lseek(2) with SEEK_HOLE: it goes through all pages that follow up to the next hole.
        vector = (ctypes.c_char * len(pages)).from_buffer(pages)
        if self._mincore is None or self._mincore(address, ctypes.c_size_t(stop - start), vector):
            return 0  # unknown
        return int(np.count_nonzero(np.frombuffer(pages, np.uint8) & 1)) * mmap.PAGESIZE

    def _give_back(self, start: int, stop: int) -> None:
        with suppress(OSError):
            self._map.madvise(mmap.MADV_REMOVE, start, stop - start)
        self._ready[start // mmap.PAGESIZE : stop // mmap.PAGESIZE] = False
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


def in_order(array: NDArray[np.generic]) -> list[int]:
    """Axes in the order of memory, the slowest first."""
    return sorted(range(array.ndim), key=lambda axis: -array.strides[axis])


def _spans(array: NDArray[np.generic], offset: int, most: int) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) byte of each part of an array in C order.

    Neighbouring parts are joined if at most half of the joined bytes lie between them, or if there
    would be more than ``most`` parts.
    """
    if not array.size:
        return
    last = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    span = last + array.itemsize
    if array.ndim < 2 or span <= 2 * array.nbytes or len(array) > most:
        yield offset, offset + span
        return
    for i, part in enumerate(array):
        yield from _spans(part, offset + i * array.strides[0], most // len(array))


def _map(size: int) -> mmap.mmap:
    """Memory aligned for huge pages: its offset within a huge page equals that within its file."""
    try:
        file = os.memfd_create("zarrfs")
    except OSError:
        return mmap.mmap(-1, size)
    try:
        os.ftruncate(file, size + HUGE_PAGE)
        with mmap.mmap(file, size) as trial:
            within = _address(trial) % HUGE_PAGE
        # The kernel mostly chooses the same address as for the trial.
        return mmap.mmap(file, size, offset=within)
    except OSError:
        return mmap.mmap(-1, size)
    finally:
        os.close(file)


def _address(memory: mmap.mmap) -> int:
    return address_of(np.frombuffer(memory, np.uint8))
