"""A lock on a directory, for the moment in which one of its files is replaced.

The directory itself is locked (``flock``), so that every zarrfs on this host excludes
every other one whatever root each was given, and nothing has to be made for it. Each
holder has opened the directory for itself, so threads exclude each other too.
"""

from __future__ import annotations

import fcntl
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from zarrfs.errors import StoreTimeout

_FIRST_PAUSE_S = 0.0001
_MAX_PAUSE_S = 0.005


@contextmanager
def locked(directory_fd: int, key: str, timeout_s: float) -> Iterator[None]:
    """Holds the lock; or nothing where the file system has no locks.

    directory_fd : open for this holder alone.

    Raises `StoreTimeout` where another holder keeps it: a process that was stopped.
    """
    if not _try(directory_fd):
        # Waiting in the kernel could not be ended.
        give_up_at = time.monotonic() + timeout_s
        pause = _FIRST_PAUSE_S
        while not _try(directory_fd):
            if time.monotonic() >= give_up_at:
                raise StoreTimeout(key, "another writer keeps its directory locked")
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, _MAX_PAUSE_S)
    try:
        yield
    finally:
        # Not left to close(2): the directory is synced before that, which takes long.
        with suppress(OSError):
            fcntl.flock(directory_fd, fcntl.LOCK_UN)


def locks_work(directory_fd: int) -> bool:
    """Whether the file system of the directory has such locks."""
    try:
        fcntl.flock(directory_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def _try(directory_fd: int) -> bool:
    """False where another one holds the lock."""
    try:
        fcntl.flock(directory_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
