"""Huge pages, as long as they are available at once.

256 MiB of private memory take 10 ms in huge pages and 75 ms in small ones, shared memory 15 and 140
ms, and then a third of that in each process that maps it. But where a virtual machine has told its
host which pages are free, one huge page may take 4 ms, and 6 ms where the system has to move other
pages. Small pages are mostly cheaper then.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

HUGE_PAGE = 2 << 20
# Since Linux 5.14; see madvise(2).
POPULATE_WRITE = 23
# Huge pages per request after the first, which is for one. One mostly takes 0.1 to 0.2 ms. If the
# requests for some memory have taken `_SLACK` seconds more than `_PATIENCE` seconds a page, or one
# of them fails, nobody requests further ones for `_PAUSE` seconds. Processor time decides: by the
# clock, a thread that waited for a processor gave them up in two of three overwrites, which then
# made 200 MiB of small pages.
_GROUP = 4
_PATIENCE = 0.0025
_SLACK = 0.01
_PAUSE = 60.0


def c_function(name: str) -> Callable[..., int] | None:
    """A function of the C library, which releases the GIL; None if the library lacks it."""
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function


def address_of(memory: NDArray[np.generic]) -> int:
    """The address of the first byte of an array."""
    address: int = memory.__array_interface__["data"][0]
    return address


class HugePages:
    """Requests huge pages for one process, unless the system was slow lately. Thread-safe."""

    def __init__(self) -> None:
        # The time, by `time.monotonic`, from which on huge pages are requested again.
        self._from = -math.inf
        # Not by mmap, which keeps the GIL: each call waits for all processors.
        self._madvise = c_function("madvise")

    @property
    def available(self) -> bool:
        """Whether to request huge pages now."""
        return self._madvise is not None and time.monotonic() >= self._from

    def request(
        self,
        address: int,
        size: int,
        advice: int,
        touch: Callable[[int], object] | None = None,
    ) -> None:
        """Back the huge pages in ``size`` bytes from ``address`` on, while `available`. Blocks.

        advice : of madvise(2), which makes several huge pages at once.
        touch : called with the address of each huge page before it is requested.
        """
        if self._madvise is None or not self.available:
            return
        first = address + -address % HUGE_PAGE
        pages = range(first, address + size - HUGE_PAGE + 1, HUGE_PAGE)
        groups = [pages[:1], *(pages[i : i + _GROUP] for i in range(1, len(pages), _GROUP))]
        begun, allowed = time.thread_time(), _SLACK
        for group in groups if pages else []:
            if touch is not None:
                for page in group:
                    touch(page)
            length = len(group) * HUGE_PAGE
            failed = self._madvise(ctypes.c_void_p(group[0]), ctypes.c_size_t(length), advice)
            allowed += _PATIENCE * len(group)
            # Some kernels lack the call, and fragmented memory makes it fail.
            if failed or time.thread_time() - begun > allowed:
                self._from = time.monotonic() + _PAUSE
                return

    def fill(self, memory: NDArray[np.uint8]) -> None:
        """Back private memory that no page exists of yet; the rest of it gets small pages. Blocks.

        memory : of `small_pages`.
        """
        address = address_of(memory)
        if self._madvise is None or not self.available or memory.nbytes < HUGE_PAGE:
            return
        place = ctypes.c_void_p(address), ctypes.c_size_t(memory.nbytes)
        if not self._madvise(*place, mmap.MADV_HUGEPAGE):
            self.request(address, memory.nbytes, POPULATE_WRITE)
            self._madvise(*place, mmap.MADV_NOHUGEPAGE)


def small_pages(size: int) -> NDArray[np.uint8]:
    """Fresh private memory of ``size`` bytes in pages of the usual size, none of which exists."""
    if not size:
        return np.empty(0, np.uint8)
    # Linux aligns a mapping to huge pages if it consists of whole ones. More of them fit then.
    whole = size if size < HUGE_PAGE else size + -size % HUGE_PAGE
    memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8, size)
