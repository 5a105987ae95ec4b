"""Having the kernel write out what programs changed in mappings, before the mount ends.

Such pages are the kernel's alone until it hands them to the daemon, which it does at
msync, munmap or after a while. A connection that ends before that loses them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

import trio

from zarrfs.fuse.connection import Connection
from zarrfs.fuse.notify import NotificationThread
from zarrfs.fuse.unmount import call_libc

_log = logging.getLogger(__name__)


async def write_out(
    connection: Connection, notifications: NotificationThread, inodes: Callable[[], Iterable[int]]
) -> None:
    """Returns when the daemon has all changed pages. Requests must be served meanwhile.

    inodes : of the files that are open for writing; what is mapped counts as open.
    """
    # Hands over many pages at once, but does not wait for FUSE file systems to take them.
    try:
        await trio.to_thread.run_sync(_sync, connection, abandon_on_cancel=True)
    except OSError as error:
        _log.warning("cannot sync %s: %s", connection.path, error.strerror)
    # Waits for those, and hands over one by one what is left.
    for inode in inodes():
        notifications.drop(inode)
    await notifications.settled()


def _sync(connection: Connection) -> None:
    """Does nothing where the mount is not at its path any more. Blocks on the mount."""
    # Unlike pyfuse3.syncfs, which holds the GIL.
    directory = os.open(connection.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(directory).st_dev == os.makedev(*connection.device):
            call_libc("syncfs", directory)
    finally:
        os.close(directory)
