"""The root directory of a local store, and the files opened below it."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Container
from contextlib import suppress

from zarrfs.errors import NodeNotFound, StoreAccessDenied, StoreError
from zarrfs.store.base import ObjectInfo
from zarrfs.store.local.beneath import (
    DIRECTORY,
    INSPECT,
    LeavesRoot,
    Open,
    all_readers_may_read,
    has_dangling_link,
    open_anywhere,
    open_beneath,
    open_checked,
    open_for_others,
    openat2_works,
)
from zarrfs.store.local.local_errors import store_error
from zarrfs.store.ranges import check_key

_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_NAME_MAX = 255
_PATH_MAX = 4095


_LEADS_OUT = "is a symbolic link that leads out of the store; -o follow_symlinks follows it"
_DANGLING = "is missing: a symbolic link on its path has no target"
_NOT_FOR_ALL = "may not be read by all who may enter its directory in the mount"


class DanglingLink(StoreError):
    """An object is not there because a symbolic link has no target."""


class LocalRoot:
    """The open root directory.

    path : opened once, and again if the directory is deleted.
    fd : of the open directory, always the same number; -1 once it is closed.
    follow_symlinks : also follow links that lead out of the directory.

    Raises `NodeNotFound` if it does not exist or is no directory, and `StoreAccessDenied` if it
    may not be opened.

    `close` must not run at the same time as other calls.
    """

    def __init__(self, path: str | os.PathLike[str], *, follow_symlinks: bool) -> None:
        self.path = os.path.abspath(os.fspath(path))
        try:
            self.fd = os.open(self.path, DIRECTORY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NodeNotFound(f"{self.path}: {error.strerror}") from error
        except OSError as error:
            raise store_error(self.path, error) from error
        self._lock = threading.Lock()
        self._guards_objects = False
        self._opener: Open
        if follow_symlinks:
            self._opener = open_anywhere
        elif openat2_works(self.fd):
            self._opener = open_beneath
        else:
            self._opener = open_checked

    def show_to_others(self) -> None:
        """Follow no link to a file that some readers of the link may not read."""
        self._opener = open_for_others(self._opener)

    def guard_objects(self) -> None:
        """Open no object that some users may not read who may enter its array or group."""
        self._guards_objects = True

    def open_object(self, key: str, path: bytes, flags: int) -> int | None:
        """As `open`, for what is shown without a mode of its own."""
        fd = self.open(key, path, flags)
        if fd is None or not self._guards_objects:
            return fd
        try:
            if all_readers_may_read(fd, self.fd, path):
                return fd
            raise StoreAccessDenied(key, _NOT_FOR_ALL)
        except BaseException as error:
            os.close(fd)
            if isinstance(error, OSError):
                raise self.failure(key, error) from error
            raise

    def open(self, key: str, path: bytes, flags: int) -> int | None:
        """A file descriptor, or None if there is no such file; raises `StoreError`.

        path : relative, from `encode` or a parent of such a path.
        flags : one of the flags that `zarrfs.store.local.beneath` names.
        """
        try:
            try:
                return self._opener(self.fd, path, flags)
            except (FileNotFoundError, NotADirectoryError):
                if not self.reopen_if_deleted(key):
                    raise
                return self._opener(self.fd, path, flags)
        except (FileNotFoundError, NotADirectoryError) as error:
            # A value that is not there reads as the fill value; one that is elsewhere must not.
            if has_dangling_link(self.fd, path):
                raise DanglingLink(key, _DANGLING) from error
            return None
        except LeavesRoot as error:
            raise StoreError(key, _LEADS_OUT) from error
        except OSError as error:
            if is_too_long(path):
                return None
            raise self.failure(key, error) from error

    def inspect(self, key: str, path: bytes) -> ObjectInfo | None:
        """The description of a file; None if it is missing. Raises `StoreError`."""
        fd = self.open_object(key, path, INSPECT)
        if fd is None:
            return None
        try:
            return object_info(key, os.fstat(fd))
        except OSError as error:
            raise self.failure(key, error) from error
        finally:
            os.close(fd)

    def identities(self, path: bytes) -> frozenset[tuple[int, int]]:
        """Device and inode of a directory and of its parents along ``path``."""
        found = set()
        parts = path.split(b"/")
        for count in range(len(parts) + 1):
            with suppress(OSError, LeavesRoot):  # another process replaced it meanwhile
                status = self._status(b"/".join(parts[:count]) or b".")
                found.add((status.st_dev, status.st_ino))
        return frozenset(found)

    def leads_to_directory(self, path: bytes, above: Container[tuple[int, int]]) -> bool | None:
        """Whether a link leads to a directory; None if that is in ``above``, or the link is gone.

        above : `identities` of the directory that holds the link.
        """
        try:
            status = self._status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False if has_dangling_link(self.fd, path) else None
        except (OSError, LeavesRoot):
            return False
        return None if (status.st_dev, status.st_ino) in above else stat.S_ISDIR(status.st_mode)

    def _status(self, path: bytes) -> os.stat_result:
        """Raises OSError, LeavesRoot."""
        fd = self._opener(self.fd, path, INSPECT)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def failure(self, key: str, error: OSError) -> StoreError:
        """The error to raise instead of ``error``."""
        return StoreError(key, "the store is closed") if self.fd < 0 else store_error(key, error)

    def reopen_if_deleted(self, key: str) -> bool:
        """Whether the root was deleted and another directory stands in its place.

        Without this check, a store that was deleted and written anew would look empty forever, and
        an empty store reads as fill values. For the same reason, raises `StoreError` if there is no
        root any more.
        """
        with self._lock:
            if os.fstat(self.fd).st_nlink > 0:
                return False
            try:
                fd = os.open(self.path, DIRECTORY)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise StoreError(key, f"the store {self.path} was deleted") from error
            # Readers use the descriptor number, so dup2 replaces its directory in one step.
            os.dup2(fd, self.fd, inheritable=False)
            os.close(fd)
            return True

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def encode(key: str) -> bytes:
    """The path of ``key``; raises `StoreError` if the key is malformed."""
    try:
        # Like `os.fsencode`, which also checks for other types.
        return check_key(key).encode(_ENCODING, _ERRORS)
    except UnicodeEncodeError as error:
        raise StoreError(key, "is not a valid key") from error


def is_too_long(path: bytes) -> bool:
    """Whether no file of this name can exist on Linux."""
    if len(path) <= _NAME_MAX:
        return False
    return len(path) > _PATH_MAX or max(map(len, path.split(b"/"))) > _NAME_MAX


def object_info(key: str, status: os.stat_result) -> ObjectInfo | None:
    """The file as an object; None for a directory, which is no object.

    Raises `StoreError` for a FIFO, socket or device.
    """
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            return None
        raise StoreError(key, "is not a regular file")
    # The ctime distinguishes states when an inode number was reused, or when contents were changed
    # in place and the mtime reset afterwards (rsync -t, cp -p, tar).
    size, mtime_ns = status.st_size, status.st_mtime_ns
    return ObjectInfo(size, mtime_ns, (mtime_ns, status.st_ino, size, status.st_ctime_ns))


def same_contents(info: ObjectInfo, status: os.stat_result) -> bool:
    """Whether a file is still in the state of ``info``, except for its ctime."""
    return (info.size, info.mtime_ns) == (status.st_size, status.st_mtime_ns)


# One read(2) on Linux returns at most a page less than 2 GiB.
_ONE_CALL = 1 << 30


def pread_exactly(fd: int, offset: int, length: int) -> bytes | memoryview | None:
    """``length`` bytes from ``offset``, or None if the file ends earlier.

    Raises `OSError` as ``pread(2)`` does.
    """
    if length <= _ONE_CALL:
        # os.pread reads into the object that it returns, without clearing it first. This is the
        # fastest way for any size (a bytearray is zeroed first).
        data = os.pread(fd, length, offset)
        if len(data) == length:
            return data
    return _read_in_parts(fd, offset, length)


def _read_in_parts(fd: int, offset: int, length: int) -> memoryview | None:
    if offset + length > os.fstat(fd).st_size:
        return None
    view = memoryview(bytearray(length))
    done = 0
    while done < length:
        count = os.preadv(fd, [view[done : done + _ONE_CALL]], offset + done)
        if count == 0:
            return None
        done += count
    return view.toreadonly()
