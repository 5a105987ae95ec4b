"""Reads members of an archive (zip, tar) that may be replaced while it is open.

A file system of an archive reads the table of contents once. So the generation of the container
is that of every member. When it changes, the archive is opened anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.requests import BadReply, ObjectChanged, RequestConfig

_T = TypeVar("_T")

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Opened:
    reader: PlainReader
    container: ObjectInfo


class ArchiveReader:
    """A `Reader` of an archive's members.

    open_archive : opens the archive's file system anew.
    container : describes the file that holds the archive.

    Shared state: ``_opened``, replaced under ``_lock``. A replaced archive is not closed, because
    other threads may still read from it.
    """

    def __init__(
        self,
        open_archive: Callable[[], Any],
        container: Callable[[], ObjectInfo],
        config: RequestConfig,
    ) -> None:
        self._open_archive = open_archive
        self._container = container
        # A member cannot change unless the container changes.
        self._member_config = config._replace(immutable=True)
        self._immutable = config.immutable
        self._lock = threading.Lock()
        self._opened = self._open()

    def info(self, path: str) -> ObjectInfo:
        return self._read(lambda opened: _of_container(opened.reader.info(path), opened))

    def get(self, path: str, limit: int) -> Blob:
        def get(opened: _Opened) -> Blob:
            blob = opened.reader.get(path, limit)
            return Blob(blob.data, _of_container(blob.info, opened))

        return self._read(get)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        def get_ranges(opened: _Opened) -> list[Blob]:
            blobs = opened.reader.get_ranges(path, ranges)
            return [Blob(blob.data, _of_container(blob.info, opened)) for blob in blobs]

        return self._read(get_ranges)

    def list_dir(self, path: str) -> Iterator[str]:
        return iter(self._read(lambda opened: list(opened.reader.list_dir(path))))

    def close(self) -> None:
        self._opened.reader.close()

    def _read(self, read: Callable[[_Opened], _T]) -> _T:
        if self._immutable:
            return read(self._opened)
        opened = self._current()
        try:
            return read(opened)
        finally:
            # Neither a result nor an error counts if the container changed meanwhile.
            if self._describe_container().generation != opened.container.generation:
                raise ObjectChanged

    def _current(self) -> _Opened:
        opened = self._opened
        if self._describe_container().generation == opened.container.generation:
            return opened
        with self._lock:
            if self._opened is opened:
                self._opened = self._open()
            return self._opened

    def _open(self) -> _Opened:
        for _ in range(_ATTEMPTS):
            before = self._describe_container()
            filesystem = self._open_archive()
            # fsspec's file system builds its table of contents on first use, without a lock.
            with suppress(FileNotFoundError):
                filesystem.info("")
            if self._describe_container().generation == before.generation:
                reader = PlainReader(filesystem, self._member_config)
                return _Opened(reader, before)
        raise ObjectChanged

    def _describe_container(self) -> ObjectInfo:
        try:
            return self._container()
        except (FileNotFoundError, NotADirectoryError) as error:
            # Not as a missing member, which would read as fill values.
            raise BadReply("the archive was deleted") from error


def _of_container(member: ObjectInfo, opened: _Opened) -> ObjectInfo:
    return ObjectInfo(member.size, opened.container.mtime_ns, opened.container.generation)
