"""Reads members of an archive (zip, tar) that may be replaced while it is open.

A file system of an archive reads the table of contents once. So the generation of the container
is that of every member. When it changes, the archive is opened anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.requests import BadReply, ObjectChanged, RequestConfig

_T = TypeVar("_T")

_ATTEMPTS = 5


class _Members(PlainReader):
    """Describes each member by the state of ``container``, without which it cannot change."""

    def __init__(self, filesystem: Any, config: RequestConfig, container: ObjectInfo) -> None:
        super().__init__(filesystem, config._replace(immutable=True))
        self.container = container

    def _describe(self, path: str) -> tuple[ObjectInfo, bool]:
        info, sized = super()._describe(path)
        return self.container._replace(size=info.size), sized


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
        self._config = config
        self._lock = threading.Lock()
        self._opened = self._open()

    def info(self, path: str) -> ObjectInfo:
        return self._read(lambda members: members.info(path))

    def get(self, path: str, limit: int) -> Blob:
        return self._read(lambda members: members.get(path, limit))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        return self._read(lambda members: members.get_ranges(path, ranges))

    def list_dir(self, path: str) -> Iterator[str]:
        return iter(self._read(lambda members: list(members.list_dir(path))))

    def close(self) -> None:
        self._opened.close()

    def _read(self, read: Callable[[_Members], _T]) -> _T:
        if self._config.immutable:
            return read(self._opened)
        opened = self._current()
        try:
            return read(opened)
        finally:
            # Neither a result nor an error counts if the container changed meanwhile.
            if self._describe_container().generation != opened.container.generation:
                raise ObjectChanged

    def _current(self) -> _Members:
        opened = self._opened
        if self._describe_container().generation == opened.container.generation:
            return opened
        with self._lock:
            if self._opened is opened:
                self._opened = self._open()
            return self._opened

    def _open(self) -> _Members:
        for _ in range(_ATTEMPTS):
            before = self._describe_container()
            filesystem = self._open_archive()
            if self._describe_container().generation == before.generation:
                return _Members(filesystem, self._config, before)
        raise ObjectChanged

    def _describe_container(self) -> ObjectInfo:
        try:
            return self._container()
        except (FileNotFoundError, NotADirectoryError) as error:
            # Not as a missing member, which would read as fill values.
            raise BadReply("the archive was deleted") from error
