"""What the kernel has of a file."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_CACHESTAT = 451


def cached_pages(path: Path) -> int | None:
    """Pages of a file; None where the kernel does not tell."""
    whole, found = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    fd = os.open(path, os.O_RDONLY)
    try:
        failed = ctypes.CDLL(None).syscall(_CACHESTAT, fd, whole, found, 0)
    finally:
        os.close(fd)
    return None if failed else found[0]


def forget_pages(path: Path) -> None:
    """Have the kernel write and forget what it has of a file."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
