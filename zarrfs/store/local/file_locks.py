"""Locks (``flock``) of files and directories, which the kernel releases however a process ends."""

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
    """Lock a directory during the context, to replace one of its files.

    A file that is replaced on a condition must not change between the look at it and the
    replacement. So a writer that looks holds the lock alone. Writers that replace files in any
    state share it: a rename is atomic. ``flock`` locks the directory itself, for all zarrfs
    processes on this host, whichever root each one has. A file system without locks has none.

    directory_fd : a descriptor that only this holder uses.
    shared : whether others may share the lock.

    Raises `StoreTimeout` if another holder keeps the lock for too long, such as a stopped process.
    """
    give_up_at = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    # A wait in the kernel could not be ended, so this polls.
    while try_lock(directory_fd, shared=shared) is False:
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


def try_lock(fd: int, *, shared: bool = False) -> bool | None:
    """Whether a file or directory could be locked; None if its file system has no locks."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
