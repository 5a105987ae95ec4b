"""A lock on a directory, held while one of its files is replaced.

A file that is replaced on a condition must not change between the look at it and the replacement.
So a writer that looks holds the lock alone. Writers that replace files in any state share it: a
rename is atomic.

``flock`` locks the directory itself. So all zarrfs processes on this host exclude each other,
whichever root each one has, and no lock file is needed. Each holder opens the directory for itself,
so threads exclude each other too.
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
def locked(
    directory_fd: int, key: str, timeout_s: float, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock during the context; no lock if the file system has none.

    directory_fd : a descriptor that only this holder uses.
    shared : whether others may share the lock.

    Raises `StoreTimeout` if another holder keeps the lock for too long, such as a stopped process.
    """
    if not _try(directory_fd, shared):
        # A wait in the kernel could not be ended, so this polls.
        give_up_at = time.monotonic() + timeout_s
        pause = _FIRST_PAUSE_S
        while not _try(directory_fd, shared):
            if time.monotonic() >= give_up_at:
                raise StoreTimeout(key, "another writer keeps its directory locked")
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, _MAX_PAUSE_S)
    try:
        yield
    finally:
        # Not left to close(2), before which the directory is synced, which takes long.
        with suppress(OSError):
            fcntl.flock(directory_fd, fcntl.LOCK_UN)


def locks_work(directory_fd: int) -> bool:
    """Whether the file system of the directory supports such locks."""
    try:
        fcntl.flock(directory_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def _try(directory_fd: int, shared: bool) -> bool:
    """Whether the lock was taken; False if another holder has it."""
    try:
        fcntl.flock(directory_fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
