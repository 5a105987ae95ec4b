"""How much freed memory the C library keeps for this process."""

from __future__ import annotations

import ctypes
import resource

from zarrfs.memory.huge_pages import c_function

# malloc.h of the GNU C library
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_KEPT = 16 << 20
_LARGEST_KEPT = 32 << 20  # the GNU C library accepts no more
# Address space that the first thread has at once.
_AT_ONCE = 12 << 20
# Bytes of a block that is used again from the start; more than most chunks have.
_USUAL = 4 << 20


def reuse_freed_memory() -> None:
    """Have the C library use freed blocks of up to some megabytes again.

    It begins to do so for blocks of a size when it first frees one that large. Until then, blocks
    come from the kernel and return to it. So the kernel would clear the memory of every chunk that
    replaces one of those that first filled a cache: 1 GiB of page faults, a tenth of the time of
    1024 random reads.

    All threads share what is freed. Eight loaders of chunks of 16 MiB would otherwise keep 200 MiB
    that no budget counts, each its own.
    """
    if (mallopt := c_function("mallopt")) is not None:
        mallopt(_M_ARENA_MAX, 1)
    _take_and_free(_USUAL)


def keep_freed_memory() -> None:
    """Have each thread keep some megabytes that it has freed.

    A thread encodes or decodes one chunk after the other. The kernel must clear memory that was
    returned to it, page by page, before the thread can use it again. That takes a quarter of the
    time that Blosc takes.

    The first thread also gets address space for the writes that wait to be copied. While another
    thread makes huge pages, to extend the heap takes up to 25 ms, for which the event loop waits.

    Under a limit of address space (``ulimit -v``), all threads share what is freed: each would take
    64 MiB of it for its own.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        reuse_freed_memory()
        return
    if (mallopt := c_function("mallopt")) is None:
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    _take_and_free(_AT_ONCE)


def _take_and_free(size: int) -> None:
    """Take a block from the C library, untouched, and return it."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free(ctypes.c_void_p(library.malloc(ctypes.c_size_t(size))))
