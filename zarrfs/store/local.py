"""A store in a local directory: one file per object.

Names are bytes on disk and text here; one that is not UTF-8 is carried through with
surrogate escapes (``os.fsdecode``), so that whatever is listed can also be read.

A key that names a directory, or runs through a file, names no object: it is missing.
A FIFO, socket or device is an error, found out without waiting for its other end.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from zarrfs.errors import NodeNotFound, StoreAccessDenied, StoreConflict, StoreError
from zarrfs.store.base import Blob, ByteRange, ObjectInfo, check_key
from zarrfs.store.beneath import (
    DIRECTORY,
    INSPECT,
    READ,
    LeavesRoot,
    Open,
    open_anywhere,
    open_beneath,
    open_checked,
    openat2_works,
)
from zarrfs.store.pread import pread_exactly
from zarrfs.store.ranges import resolve

_T = TypeVar("_T")

_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.001
_NAME_MAX = 255
_PATH_MAX = 4095


class LocalStore:
    """Objects are the regular files below ``root``.

    root : a directory; it is opened once, and again by its path if it is deleted.
    follow_symlinks : follow links that lead out of ``root`` too. Links that stay
        below it are always followed.

    Raises `NodeNotFound` where ``root`` does not exist or is no directory, and
    `StoreAccessDenied` where it may not be opened.

    `close` must not run beside other calls.
    """

    def __init__(self, root: str | os.PathLike[str], *, follow_symlinks: bool = False) -> None:
        self._root = os.path.abspath(os.fspath(root))
        try:
            self._root_fd = os.open(self._root, DIRECTORY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NodeNotFound(f"{self._root}: {error.strerror}") from error
        except PermissionError as error:
            raise StoreAccessDenied(self._root, str(error.strerror)) from error
        except OSError as error:
            raise StoreError(self._root, str(error.strerror)) from error
        self._root_lock = threading.Lock()
        self._opener: Open
        if follow_symlinks:
            self._opener = open_anywhere
        elif openat2_works(self._root_fd):
            self._opener = open_beneath
        else:
            self._opener = open_checked

    @property
    def url(self) -> str:
        return f"file://{self._root}"

    @property
    def local_path(self) -> str | None:
        return self._root

    @property
    def cheap_stat(self) -> bool:
        return True

    def get(self, key: str, *, limit: int) -> Blob | None:
        def whole(fd: int, info: ObjectInfo) -> Blob | None:
            if info.size > limit:
                raise StoreError(key, f"has {info.size} bytes, more than the {limit} allowed")
            data = pread_exactly(fd, 0, info.size)
            return None if data is None else Blob(data, info)

        return self._read(key, whole)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        def parts(fd: int, info: ObjectInfo) -> list[Blob] | None:
            blobs = []
            for wanted in ranges:
                span = resolve(wanted, info.size)
                data = pread_exactly(fd, span.start, span.stop - span.start)
                if data is None:
                    return None
                blobs.append(Blob(data, info))
            return blobs

        return self._read(key, parts)

    def info(self, key: str) -> ObjectInfo | None:
        fd = self._open(key, _encode(key), INSPECT)
        if fd is None:
            return None
        try:
            return _object_info(key, os.fstat(fd))
        except OSError as error:
            raise self._failure(key, error) from error
        finally:
            os.close(fd)

    def list_dir(self, prefix: str) -> Iterator[str]:
        """See `Store.list_dir`; errors come with the first name.

        A link is listed as what it leads to: not at all where that is missing, and as
        an object where it leads out of the store, so that reading it tells why not.
        """
        path = _encode(prefix) if prefix else b"."
        fd = self._open(prefix, path, DIRECTORY)
        if fd is None:
            return
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        is_directory = self._link_to_directory(path, entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        is_directory = True
                    elif entry.is_file(follow_symlinks=False):
                        is_directory = False
                    else:
                        continue
                    if is_directory is not None:
                        yield entry.name + "/" if is_directory else entry.name
        except OSError as error:
            raise self._failure(prefix, error) from error
        finally:
            os.close(fd)

    def free_space(self) -> tuple[int, int] | None:
        try:
            status = os.statvfs(self._root_fd)
        except OSError:
            return None
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def close(self) -> None:
        with self._root_lock:
            fd, self._root_fd = self._root_fd, -1
        if fd >= 0:
            os.close(fd)

    def _read(self, key: str, take: Callable[[int, ObjectInfo], _T | None]) -> _T | None:
        """What ``take`` returns for one unchanging state of the object.

        ``take`` gets the open file and its description, and returns None where the
        file turns out to be shorter. A writer that replaces the file by a rename never
        disturbs: the open file stays what it was. One that rewrites it in place shows
        in its size or mtime afterwards (not in its ctime: being replaced changes that).
        """
        path = _encode(key)
        pause = _FIRST_PAUSE_S
        failed_before = False
        for _ in range(_ATTEMPTS):
            fd = self._open(key, path, READ)
            if fd is None:
                return None
            try:
                info = _object_info(key, os.fstat(fd))
                if info is None:
                    return None
                result = take(fd, info)
                after = os.fstat(fd)
            except OSError as error:
                # Once only: a network file system loses an open file that another
                # host replaced; opened anew, it is the new one.
                if failed_before:
                    raise self._failure(key, error) from error
                failed_before = True
                continue
            finally:
                os.close(fd)
            if result is not None and _same_contents(info, after):
                return result
            time.sleep(pause)
            pause *= 2
        raise StoreConflict(key, "keeps changing while it is read")

    def _open(self, key: str, path: bytes, flags: int) -> int | None:
        """A file descriptor, or None where there is no such file; raises `StoreError`."""
        try:
            try:
                return self._opener(self._root_fd, path, flags)
            except (FileNotFoundError, NotADirectoryError):
                if not self._root_reopened(key):
                    return None
                return self._opener(self._root_fd, path, flags)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except LeavesRoot as error:
            raise StoreError(key, "is a symbolic link that leads out of the store") from error
        except OSError as error:
            if _too_long(path):
                return None
            raise self._failure(key, error) from error

    def _root_reopened(self, key: str) -> bool:
        """Whether the root had been deleted and another one stands in its place.

        Without this, a store that was deleted and written anew would look empty for
        ever, and an empty store reads as fill values. Raises `StoreError` where there
        is no root any more, for the same reason.
        """
        with self._root_lock:
            if os.fstat(self._root_fd).st_nlink > 0:
                return False
            try:
                fd = os.open(self._root, DIRECTORY)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise StoreError(key, f"the store {self._root} was deleted") from error
            # Readers hold the number, so what it stands for is replaced in one step.
            os.dup2(fd, self._root_fd, inheritable=False)
            os.close(fd)
            return True

    def _link_to_directory(self, parent: bytes, name: str) -> bool | None:
        """Whether a link leads to a directory; None where it leads nowhere."""
        path = parent + b"/" + os.fsencode(name)
        try:
            fd = self._opener(self._root_fd, path, INSPECT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, LeavesRoot):
            return False
        try:
            return stat.S_ISDIR(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def _failure(self, key: str, error: OSError) -> StoreError:
        if self._root_fd < 0:
            return StoreError(key, "the store is closed")
        reason = error.strerror or type(error).__name__
        if isinstance(error, PermissionError):
            return StoreAccessDenied(key, reason)
        return StoreError(key, reason)


def _encode(key: str) -> bytes:
    try:
        return os.fsencode(check_key(key))
    except UnicodeEncodeError as error:
        raise StoreError(key, "is not a valid key") from error


def _too_long(path: bytes) -> bool:
    """Whether no file of this name can exist on Linux."""
    return len(path) > _PATH_MAX or max(map(len, path.split(b"/"))) > _NAME_MAX


def _object_info(key: str, status: os.stat_result) -> ObjectInfo | None:
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            return None
        raise StoreError(key, "is not a regular file")
    # ctime still tells where an inode number was used again, or contents were changed
    # in place, and the mtime then put back (rsync -t, cp -p, tar).
    size, mtime_ns = status.st_size, status.st_mtime_ns
    return ObjectInfo(size, mtime_ns, (mtime_ns, status.st_ino, size, status.st_ctime_ns))


def _same_contents(info: ObjectInfo, status: os.stat_result) -> bool:
    return (info.size, info.mtime_ns) == (status.st_size, status.st_mtime_ns)
