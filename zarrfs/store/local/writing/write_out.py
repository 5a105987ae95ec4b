"""Has the kernel write files to the disk: before a sync waits for them, or all at once."""

from __future__ import annotations

import ctypes
import os

from zarrfs.store.local.local_errors import loses_data, store_error

_WRITE = 2  # SYNC_FILE_RANGE_WRITE
_ALL = 0, 0  # from the beginning to the end

_libc = ctypes.CDLL(None, use_errno=True)
_sync_file_range = getattr(_libc, "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def begin_to_write_out(fd: int) -> None:
    """Begin to write the dirty pages of a file to disk; `os.fsync` must follow.

    A caller that syncs many files then finds most of them written, and one commit of the journal
    covers many of them. Raises `OSError`, but most failures appear only at `os.fsync`.
    """
    if _sync_file_range is not None and _sync_file_range(fd, *_ALL, _WRITE):
        number = ctypes.get_errno()
        error = OSError(number, os.strerror(number))
        # If the system lacks this call, nothing was begun.
        if loses_data(error):
            raise error


def sync_file_system(path: str) -> None:
    """Wait until all files of the file system of a directory are on the disk.

    For many new files this takes a fraction of the time of a sync of each. Raises StoreError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _libc.syncfs(fd):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        finally:
            os.close(fd)
    except OSError as error:
        raise store_error(path, error) from error
