"""Reads from and writes to fsspec file systems, through their public interface alone.

Such a file system does not report the state of the object that it read, so the reader describes the
object before and after: three requests instead of the one of a `RangedReader`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import partial
from numbers import Integral
from typing import Any

from zarrfs.foreign import FSSPEC_CAT_FILE
from zarrfs.locks import KeyedLocks
from zarrfs.store.base import ANY, Blob, ByteRange, Data, Expected, ObjectInfo
from zarrfs.store.ranges import Span, merge, resolve
from zarrfs.store.remote.ranges.assemble import Piece, cut
from zarrfs.store.remote.ranges.on_loop import OnLoop
from zarrfs.store.remote.ranges.side_by_side import SideBySide
from zarrfs.store.remote.requests import (
    BadReply,
    BrokenReply,
    NotAsExpected,
    ObjectChanged,
    RequestConfig,
    TooLarge,
)
from zarrfs.threads import ThreadPool

_FOR_MANY_THREADS = frozenset(
    {
        "fsspec.implementations.local.LocalFileSystem",
        "fsspec.implementations.memory.MemoryFileSystem",
        "zarrfs.store.remote.archives.tar_members.TarMembers",
        "zarrfs.store.remote.archives.zip_members.ZipMembers",
    }
)

# The fields of info() that become part of the generation, as far as a file system has them.
_TELLS_STATE = frozenset(
    {
        "ETag",
        "etag",
        "VersionId",
        "version_id",
        "generation",
        "md5Hash",
        "content_md5",
        "crc32c",
        "CRC",
        "uid",
        "ino",
        "mtime",
        "LastModified",
        "Last-Modified",
        "last_modified",
        "updated",
        "modified",
        "created",
        "size",
    }
)
_TELLS_TIME = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


_LATEST_S = 2**63 // 10**9


class PlainReader:
    """A `Reader` on an fsspec file system; paths are those of the file system.

    Most file systems that are not asynchronous have one connection, or one file and its position,
    and do not document threads. So the reader sends them one request at a time.
    """

    def __init__(self, filesystem: Any, config: RequestConfig) -> None:
        self._filesystem = filesystem
        self._config = config
        kind = f"{type(filesystem).__module__}.{type(filesystem).__name__}"
        alone = not filesystem.async_impl and kind not in _FOR_MANY_THREADS
        self._turn: AbstractContextManager[object] = threading.Lock() if alone else nullcontext()
        self._threads = ThreadPool(0 if alone else config.concurrency, "requests")
        self._on_loop = OnLoop(lambda: filesystem.loop, config.timeout_s)

    def info(self, path: str) -> ObjectInfo:
        return self._describe(path)[0]

    def get(self, path: str, limit: int) -> Blob:
        info, sized = self._describe(path)
        if not sized:
            data = self._fetch(path, [Span(0, limit + 1)])[0]
            if len(data) > limit:
                raise TooLarge(None, limit)
            return Blob(data, info._replace(size=len(data)))
        if info.size > limit:
            raise TooLarge(info.size, limit)
        step = self._config.max_request
        if info.size <= step:
            return self._unchanged(path, info, [ByteRange(0, info.size)])[0]
        parts = [ByteRange(at, step) for at in range(0, info.size, step)]
        blobs = self._unchanged(path, info, parts)
        return Blob(b"".join(blob.data for blob in blobs), info)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        info, sized = self._describe(path)
        if not sized:
            whole = self.get(path, self._config.max_unranged)
            return cut([Piece(0, whole.data)], ranges, whole.info)
        return self._unchanged(path, info, ranges)

    def list_dir(self, path: str) -> Iterator[str]:
        """The whole listing at once: the public interface cannot list in parts."""
        parent = path.strip("/")
        with self._turn:
            entries = self._filesystem.ls(path, detail=True)
        for entry in entries:
            full = str(entry["name"]).strip("/")
            name = full.removeprefix(parent).strip("/") if full.startswith(parent) else full
            if name and full != parent:
                name = name.rpartition("/")[2]
                yield name + "/" if entry["type"] == "directory" else name

    def close(self) -> None:
        close = getattr(self._filesystem, "close", None)
        if close is not None:
            close()

    def _unchanged(self, path: str, info: ObjectInfo, ranges: Sequence[ByteRange]) -> list[Blob]:
        """The ranges, if the object is afterwards still as ``info`` describes."""
        config = self._config
        spans = merge(
            [resolve(wanted, info.size) for wanted in ranges],
            max_gap=config.max_gap,
            max_length=config.max_request,
        )
        fetched = self._fetch(path, spans)
        if fetched and not config.immutable:
            after, _ = self._describe(path)
            if after.generation != info.generation:
                raise ObjectChanged
        pieces = []
        for span, data in zip(spans, fetched, strict=True):
            if len(data) == span.length:
                pieces.append(Piece(span.start, data))
            elif len(data) == info.size:
                pieces.append(Piece(0, data))  # the file system ignored the range
            else:
                raise BrokenReply(f"{len(data)} bytes came where {span.length} were asked for")
        return cut(pieces, ranges, info)

    def _fetch(self, path: str, spans: Sequence[Span]) -> list[bytes]:
        """The bytes that the file system returns for each span, unchecked."""
        filesystem = self._filesystem

        def fetch(number: int) -> bytes:
            span = {"start": spans[number].start, "end": spans[number].stop}
            if filesystem.async_impl and FSSPEC_CAT_FILE.there:
                data: bytes = self._on_loop.run(partial(filesystem._cat_file, path, **span))
            else:
                with self._turn:
                    data = filesystem.cat_file(path, **span)
            return data

        return SideBySide(self._threads, [path] * len(spans), fetch, self._config.redact).all()

    def _describe(self, path: str) -> tuple[ObjectInfo, bool]:
        """The description of the object, and whether its size is known."""
        with self._turn:
            details = dict(self._filesystem.info(path))
        if details.get("type") == "directory":
            raise IsADirectoryError(path)
        if details.get("type") == "other":
            raise BadReply("is not a regular file")
        if details.keys() & _TELLS_STATE <= {"created", "size"}:
            # memory:// knows the modification time but omits it from info().
            with suppress(NotImplementedError), self._turn:
                details["modified"] = self._filesystem.modified(path)
        info, sized = describe(details)
        return self._config.state(info), sized


def describe(details: Mapping[str, Any]) -> tuple[ObjectInfo, bool]:
    """Convert an fsspec ``info()``; returns also whether the size is known (else it is 0).

    The generation consists of all fields that describe the object's state. If the size is the only
    one, a change that keeps the size goes unnoticed.
    """
    reported = details.get("size")
    size = int(reported) if isinstance(reported, Integral) and int(reported) >= 0 else None
    mtime_ns = None
    for name in _TELLS_TIME:
        if (when := _nanoseconds(details.get(name))) is not None:
            mtime_ns = when
            break
    generation = tuple(
        str(details[name]) for name in sorted(_TELLS_STATE) if details.get(name) is not None
    )
    return ObjectInfo(size or 0, mtime_ns, generation), size is not None


def _nanoseconds(when: object) -> int | None:
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return None
    if isinstance(when, datetime):
        try:
            when = when.timestamp()
        except (ValueError, OverflowError):
            return None  # in year 1 or 9999
    # A NaN, or a number beyond the times that a file can have, is no time.
    if isinstance(when, int | float) and abs(when) < _LATEST_S:
        # A float is exact to some 200 ns today, so whole microseconds are exact.
        return round(when * 1_000_000) * 1_000
    return None


class PlainWriter:
    """A `Writer` on an fsspec file system; paths are those of the file system.

    Only for file systems whose ``pipe_file`` replaces an object in one step.
    """

    def __init__(self, filesystem: Any, reader: PlainReader) -> None:
        self._filesystem = filesystem
        self._reader = reader
        self._locks = KeyedLocks()

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        data = b"".join(parts)
        with self._locks.held(path):
            self._check(path, expected)
            self._filesystem.pipe_file(path, data)
            return self._describe(path, data)

    def delete(self, path: str, expected: Expected) -> None:
        with self._locks.held(path), contextlib.suppress(FileNotFoundError):
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
