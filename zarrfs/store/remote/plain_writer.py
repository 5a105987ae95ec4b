"""Writes to fsspec file systems of object stores, through their public interface alone.

Only for file systems whose ``pipe_file`` replaces an object in one step.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from zarrfs.store.base import ANY, Conditional, Data, Expected, ObjectInfo
from zarrfs.store.local.writing.object_locks import ObjectLocks
from zarrfs.store.remote.plain_reader import PlainReader, describe
from zarrfs.store.remote.requests import NotAsExpected, TooLarge


class PlainWriter:
    """A `Writer` on an fsspec file system; paths are those of the file system."""

    conditional = Conditional.CHECKED

    def __init__(self, filesystem: Any, reader: PlainReader) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._locks = ObjectLocks()

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        data = b"".join(parts)
        with self._locks.of(path):
            self._check(path, expected)
            self._filesystem.pipe_file(path, data)
            return self._describe(path, data)

    def delete(self, path: str, expected: Expected) -> None:
        with self._locks.of(path), contextlib.suppress(FileNotFoundError):
            if expected is not ANY and self._reader.info(path).generation != expected:
                raise NotAsExpected
            self._filesystem.rm_file(path)

    def _check(self, path: str, expected: Expected) -> None:
        if expected is ANY:
            return
        generation = None
        with contextlib.suppress(FileNotFoundError):
            generation = self._reader.info(path).generation
        if generation != expected:
            raise NotAsExpected

    def _describe(self, path: str, data: bytes) -> ObjectInfo:
        """The object just put; its generation equals no other if a writer has replaced it since."""
        try:
            details = self._filesystem.info(path)
            if (digest := details.get("md5Hash")) and digest == _md5(data):  # Google's
                return describe(details)[0]
            blob = self._reader.get(path, len(data))
            if blob.data == data:
                return blob.info
        except (FileNotFoundError, TooLarge):
            pass
        return ObjectInfo(len(data), None, ("replaced since", object()))


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
