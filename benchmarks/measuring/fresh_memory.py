"""Memory that is available without asking a host for it."""

from __future__ import annotations

import mmap
from contextlib import suppress

from zarrfs.memory.huge_pages import POPULATE_WRITE


def make_available(size: int) -> None:
    """Take ``size`` bytes of memory from the kernel and give them back.

    A virtual machine may have told its host which pages are free. It then waits milliseconds for
    each MiB that it uses again, and the contender that happens to be first pays for that. The
    kernel hands out first what it was given back last.
    """
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        try:
            memory.madvise(POPULATE_WRITE)
        except OSError:  # an older kernel
            for position in range(0, size, mmap.PAGESIZE):
                memory[position] = 1
