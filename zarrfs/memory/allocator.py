"""How much freed memory the C library keeps for this process."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of the GNU C library
_KEPT = 16 << 20
_LARGEST_KEPT = 32 << 20  # the GNU C library accepts no more


def keep_freed_memory() -> None:
    """Have each thread keep some megabytes that it has freed.

    A thread encodes or decodes one chunk after the other. The kernel must clear memory that was
    returned to it, page by page, before the thread can use it again. That takes a quarter of the
    time that Blosc takes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return  # another C library
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
