"""A store in a local directory: one file per object.

Names are bytes on disk and text here. A name that is not UTF-8 is kept with surrogate escapes
(``os.fsdecode``), so that every listed name can also be read.

A key that names a directory, or has a file as a parent, names no object: the object is missing.
A FIFO, socket or device is an error, which is detected without waiting for its other end.

Reads go through the page cache: `O_DIRECT` and `RWF_DONTCACHE` took 0.9 to 1.04 of the processor
time and no less time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from zarrfs.errors import StoreConflict, StoreError, StoreTooLarge
from zarrfs.store.base import (
    Blob,
    ByteRange,
    ObjectInfo,
    StoreTraits,
)
from zarrfs.store.local.beneath import DIRECTORY, INSPECT, READ, descriptor_path, shown_mode
from zarrfs.store.local.files_ahead import read_ahead
from zarrfs.store.local.local_errors import lacks_kernel_copy
from zarrfs.store.local.local_root import (
    LocalRoot,
    encode,
    object_info,
    pread_exactly,
    same_contents,
)
from zarrfs.store.local.names_there import may_exist
from zarrfs.store.local.scratch import RESERVED
from zarrfs.store.local.writing.local_writer import LocalWriter
from zarrfs.store.ranges import resolve
from zarrfs.store.write_parts import write_parts

_T = TypeVar("_T")
_TRAITS = StoreTraits(near=True)

_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.001
# Bytes in memory at once where the kernel does not copy.
_PIECE = 4 << 20


class LocalStore(LocalWriter):
    """The objects are the regular files below ``root``.

    root : a directory. It is opened once, and again by its path if it is deleted.
    follow_symlinks : also follow links that lead out of ``root``. Links that stay below it are
        always followed.
    durable : see `StoreConfig`.

    Raises `NodeNotFound` if ``root`` does not exist or is no directory, and
    `StoreAccessDenied` if it may not be opened.

    `close` must not run at the same time as other calls.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        follow_symlinks: bool = False,
        durable: bool = True,
    ) -> None:
        super().__init__(LocalRoot(root, follow_symlinks=follow_symlinks), durable=durable)

    @property
    def url(self) -> str:
        return f"file://{self._root.path}"

    @property
    def local_path(self) -> str | None:
        return self._root.path

    @property
    def traits(self) -> StoreTraits:
        return _TRAITS

    def get(self, key: str, *, limit: int) -> Blob | None:
        def whole(fd: int, info: ObjectInfo) -> Blob | None:
            if info.size > limit:
                raise StoreTooLarge(key, f"has {info.size} bytes, more than the {limit} allowed")
            data = pread_exactly(fd, 0, info.size)
            return None if data is None else Blob(data, info)

        return self._read(key, whole)

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        if len(keys) <= 1:
            yield from super().get_many(keys, limit=limit)
            return
        yield from read_ahead(
            self._root,
            keys,
            limit,
            otherwise=lambda key: next(super(LocalStore, self).get_many([key], limit=limit)),
        )

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._read(key, lambda fd, info: _read_parts(fd, info, ranges))

    def get_file_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        """As `get_ranges`, for a file that is shown with its own mode."""
        return self._read(key, lambda fd, info: _read_parts(fd, info, ranges), self._root.open)

    def copy_range(self, key: str, info: ObjectInfo, span: ByteRange, fd: int) -> bool:
        """See `CopiesRanges`."""
        source = self._root.open_object(key, encode(key), READ)
        if source is None:
            return False
        try:
            if object_info(key, os.fstat(source)) != info:
                return False
            return _copy(source, span, fd) and same_contents(info, os.fstat(source))
        finally:
            os.close(source)

    def may_exist(self, keys: Sequence[str]) -> Sequence[str]:
        return may_exist(self._root, keys)

    def real_key(self, key: str) -> str:
        root = os.path.realpath(self._root.path)
        real = os.path.realpath(os.path.join(root, key))
        inside = os.path.commonpath((root, real)) == root
        return os.path.relpath(real, root).removeprefix(".") if inside else real

    def info(self, key: str) -> ObjectInfo | None:
        return self._root.inspect(key, encode(key))

    def show_to_others(self) -> None:
        """Follow no link to a file that some readers of the link may not read."""
        self._root.show_to_others()

    def guard_objects(self) -> None:
        """Give no object that some users may not read who may enter its array or group."""
        self._root.guard_objects()

    def open_file(self, key: str) -> int | None:
        """A descriptor of a regular file; None if it is missing. Raises `StoreError`."""
        fd = self._root.open(key, encode(key), READ)
        if fd is None:
            return None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise StoreError(key, "is not a regular file")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def status(self, key: str) -> tuple[os.stat_result, int] | None:
        """The ``stat`` and `shown_mode` of a file or directory; of the root for ``""``.

        None if it is missing. Raises `StoreError`.
        """
        fd = self._root.open(key, encode(key) if key else b".", INSPECT)
        if fd is None:
            return None
        try:
            status = os.fstat(fd)
            return status, shown_mode(status, descriptor_path(fd))
        except OSError as error:
            raise self._root.failure(key, error) from error
        finally:
            os.close(fd)

    def list_dir(self, prefix: str) -> Iterator[str]:
        """See `Store.list_dir`; errors come with the first name.

        A link is listed as its target. It is left out if the target is a directory above the link,
        because a walk would then never end. A link that leads out of the store, or has no target,
        is listed as an object, so that reading it returns the error.
        """
        path = encode(prefix) if prefix else b"."
        fd = self._root.open(prefix, path, DIRECTORY)
        if fd is None:
            return
        above: frozenset[tuple[int, int]] | None = None
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.name.startswith(RESERVED):
                        continue
                    if entry.is_symlink():
                        above = above or self._root.identities(path)
                        is_directory = self._root.leads_to_directory(
                            path + b"/" + os.fsencode(entry.name), above
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

    def free_space(self) -> tuple[int, int] | None:
        try:
            status = os.statvfs(self._root.fd)
        except OSError:
            return None
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def _read(
        self,
        key: str,
        take: Callable[[int, ObjectInfo], _T | None],
        open_one: Callable[[str, bytes, int], int | None] | None = None,
    ) -> _T | None:
        """Return the result of ``take`` for one unchanging state of the object.

        ``take`` gets the open file and its description, and returns None if the file is shorter.
        A writer that replaces the file by a rename never disturbs: the open file stays unchanged.
        A writer that rewrites the file in place changes its size or mtime, which are compared
        afterwards. The ctime is not compared, because replacing the file changes it.
        """
        path, open_one = encode(key), open_one or self._root.open_object
        pause = _FIRST_PAUSE_S
        failed_before = False
        for _ in range(_ATTEMPTS):
            fd = open_one(key, path, READ)
            if fd is None:
                return None
            try:
                info = object_info(key, os.fstat(fd))
                if info is None:
                    return None
                result = take(fd, info)
                after = os.fstat(fd)
            except OSError as error:
                # Retried once only. A network file system loses an open file that another
                # host replaced; opening it anew gives the new file.
                if failed_before:
                    raise self._root.failure(key, error) from error
                failed_before = True
                continue
            finally:
                os.close(fd)
            if result is not None and same_contents(info, after):
                return result
            time.sleep(pause)
            pause *= 2
        raise StoreConflict(key, "keeps changing while it is read")


def _read_parts(fd: int, info: ObjectInfo, ranges: Sequence[ByteRange]) -> list[Blob] | None:
    """Ranges of an open file; None if it is shorter than ``info`` says. Raises `OSError`."""
    blobs = []
    for wanted in ranges:
        span = resolve(wanted, info.size)
        data = pread_exactly(fd, span.start, span.length)
        if data is None:
            return None
        blobs.append(Blob(data, info))
    return blobs


def _copy(source: int, span: ByteRange, target: int) -> bool:
    """Append bytes of one file to another one; False if the file ends earlier."""
    at, stop = span.offset, span.offset + span.length
    try:
        while at < stop:
            if not (copied := os.copy_file_range(source, target, stop - at, at)):
                return False
            at += copied
        return True
    except OSError as error:
        if not lacks_kernel_copy(error):
            raise
    while at < stop:
        data = pread_exactly(source, at, min(_PIECE, stop - at))
        if data is None:
            return False
        at += len(data)
        write_parts(target, [data])
    return True
