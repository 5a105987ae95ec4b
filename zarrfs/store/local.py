"""A store in a local directory: one file per object.

Names are bytes on disk and text here; one that is not UTF-8 is carried through with
surrogate escapes (``os.fsdecode``), so that whatever is listed can also be read.

A key that names a directory, or runs through a file, names no object: it is missing.
A FIFO, socket or device is an error, found out without waiting for its other end.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from zarrfs.errors import StoreConflict, StoreError
from zarrfs.store.base import (
    Blob,
    ByteRange,
    Conditional,
    Data,
    Expected,
    ObjectInfo,
    Put,
    get_one_by_one,
)
from zarrfs.store.beneath import DIRECTORY, READ
from zarrfs.store.local_root import LocalRoot, encode, object_info
from zarrfs.store.local_writer import LocalWriter
from zarrfs.store.pread import pread_exactly
from zarrfs.store.ranges import resolve
from zarrfs.store.scratch import RESERVED

_T = TypeVar("_T")

# Files that the kernel reads while earlier ones are used: as many requests as a disk of today
# works on at once.
_AHEAD = 32
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.001


class _Opened(NamedTuple):
    fd: int
    info: ObjectInfo


_MISSING = _Opened(-1, ObjectInfo(0, None, ()))


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
        self._root = LocalRoot(root, follow_symlinks=follow_symlinks)
        self._writer = LocalWriter(self._root)

    @property
    def url(self) -> str:
        return f"file://{self._root.path}"

    @property
    def local_path(self) -> str | None:
        return self._root.path

    @property
    def cheap_stat(self) -> bool:
        return True

    @property
    def read_only(self) -> str | None:
        return self._writer.read_only

    @property
    def conditional(self) -> Conditional:
        return self._writer.conditional

    def get(self, key: str, *, limit: int) -> Blob | None:
        def whole(fd: int, info: ObjectInfo) -> Blob | None:
            if info.size > limit:
                raise StoreError(key, f"has {info.size} bytes, more than the {limit} allowed")
            data = pread_exactly(fd, 0, info.size)
            return None if data is None else Blob(data, info)

        return self._read(key, whole)

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        if len(keys) == 1:
            yield from get_one_by_one(self, keys, limit)
            return
        waiting: deque[tuple[str, _Opened | None]] = deque()
        try:
            for key in keys:
                waiting.append((key, self._open_ahead(key, limit)))
                if len(waiting) > _AHEAD:
                    yield self._take(*waiting.popleft(), limit)
            while waiting:
                yield self._take(*waiting.popleft(), limit)
        finally:
            for _, opened in waiting:
                if opened is not None and opened is not _MISSING:
                    os.close(opened.fd)

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
        return self._root.inspect(key, encode(key))

    def list_dir(self, prefix: str) -> Iterator[str]:
        """See `Store.list_dir`; errors come with the first name.

        A link is listed as what it leads to: not at all where that is missing, and as
        an object where it leads out of the store, so that reading it tells why not.
        """
        path = encode(prefix) if prefix else b"."
        fd = self._root.open(prefix, path, DIRECTORY)
        if fd is None:
            return
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.name.startswith(RESERVED):
                        continue
                    if entry.is_symlink():
                        is_directory = self._root.leads_to_directory(
                            path + b"/" + os.fsencode(entry.name)
                        )
                    elif entry.is_dir(follow_symlinks=False):
                        is_directory = True
                    elif entry.is_file(follow_symlinks=False):
                        is_directory = False
                    else:
                        continue
                    if is_directory is not None:
                        yield entry.name + "/" if is_directory else entry.name
        except OSError as error:
            raise self._root.failure(prefix, error) from error
        finally:
            os.close(fd)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        return self._writer.put(Put(key, parts, expected))

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        return self._writer.put_many(puts)

    def delete(self, key: str, *, expected: Expected) -> None:
        self._writer.delete(key, expected)

    def leftovers(self) -> list[str]:
        return self._writer.leftovers(remove=False)

    def remove_leftovers(self) -> list[str]:
        return self._writer.leftovers(remove=True)

    def free_space(self) -> tuple[int, int] | None:
        try:
            status = self._root.space()
        except OSError:
            return None
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def close(self) -> None:
        self._writer.close()
        self._root.close()

    def _open_ahead(self, key: str, limit: int) -> _Opened | None:
        """Have the kernel begin to read a file; None where `get` has to look for itself."""
        opened = None
        with suppress(OSError, StoreError):
            fd = self._root.open(key, encode(key), READ)
            if fd is None:
                return _MISSING
            try:
                info = object_info(key, os.fstat(fd))
                if info is not None and info.size <= limit:
                    os.posix_fadvise(fd, 0, info.size, os.POSIX_FADV_WILLNEED)
                    opened = _Opened(fd, info)
            finally:
                if opened is None:
                    os.close(fd)
        return opened

    def _take(self, key: str, opened: _Opened | None, limit: int) -> Blob | StoreError | None:
        """What was opened ahead; what is wrong with it is found out by opening it anew."""
        if opened is _MISSING:
            return None
        if opened is not None:
            try:
                data = pread_exactly(opened.fd, 0, opened.info.size)
                if data is not None and _same_contents(opened.info, os.fstat(opened.fd)):
                    return Blob(data, opened.info)
            except OSError:
                pass
            finally:
                os.close(opened.fd)
        (found,) = get_one_by_one(self, [key], limit)
        return found

    def _read(self, key: str, take: Callable[[int, ObjectInfo], _T | None]) -> _T | None:
        """What ``take`` returns for one unchanging state of the object.

        ``take`` gets the open file and its description, and returns None where the
        file turns out to be shorter. A writer that replaces the file by a rename never
        disturbs: the open file stays what it was. One that rewrites it in place shows
        in its size or mtime afterwards (not in its ctime: being replaced changes that).
        """
        path = encode(key)
        pause = _FIRST_PAUSE_S
        failed_before = False
        for _ in range(_ATTEMPTS):
            fd = self._root.open(key, path, READ)
            if fd is None:
                return None
            try:
                info = object_info(key, os.fstat(fd))
                if info is None:
                    return None
                result = take(fd, info)
                after = os.fstat(fd)
            except OSError as error:
                # Once only: a network file system loses an open file that another
                # host replaced; opened anew, it is the new one.
                if failed_before:
                    raise self._root.failure(key, error) from error
                failed_before = True
                continue
            finally:
                os.close(fd)
            if result is not None and _same_contents(info, after):
                return result
            time.sleep(pause)
            pause *= 2
        raise StoreConflict(key, "keeps changing while it is read")


def _same_contents(info: ObjectInfo, status: os.stat_result) -> bool:
    return (info.size, info.mtime_ns) == (status.st_size, status.st_mtime_ns)
