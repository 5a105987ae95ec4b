"""How this process holds on to memory that it has freed."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of the GNU C library
_KEPT = 16 << 20
_LARGEST_KEPT = 32 << 20  # more it does not take


def keep_freed_memory() -> None:
    """Have each thread keep some megabytes that it has freed.

    Whoever encodes or decodes takes one chunk after the other. Memory that goes back to the
    kernel in between has to be cleared before it can be used again, page by page: a quarter of
    what Blosc takes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return  # another C library
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
