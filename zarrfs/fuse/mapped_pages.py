"""Writing out what programs changed in mappings of the mount, before it ends.

Such pages are the kernel's alone until it hands them to the daemon, which it does at
msync, munmap or after a while. A connection that ends before that loses them.
"""

from __future__ import annotations

import ctypes
import os

from zarrfs.errors import MountError
from zarrfs.fuse.connection import Connection


def write_out(connection: Connection) -> None:
    """Returns when the daemon has all changed pages. Blocks on the mount: for a thread.

    The event loop has to go on serving meanwhile. Does nothing where the mount is not at
    its path any more. Raises `MountError` where pages could not be written.
    """
    try:
        # These calls release the GIL, which pyfuse3.syncfs does not.
        directory = os.open(connection.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(directory).st_dev == os.makedev(*connection.device):
                _syncfs(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise MountError(f"writing out mapped pages: {error.strerror}") from error


def _syncfs(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(descriptor) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
