"""A store behind any URL that fsspec knows.

Only single requests have a deadline here. For deadlines of operations, wrap the store in a
`zarrfs.store.wrappers.retry.RetryStore`, as `zarrfs.store.open.open_store` does.

A chain through ``simplecache::`` serves its copies forever, changed or not, as the user requested.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from zarrfs import bounds
from zarrfs.errors import (
    NodeNotFound,
    StoreConflict,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
    ZarrfsError,
)
from zarrfs.store.base import (
    ANY,
    Blob,
    ByteRange,
    Data,
    Expected,
    ObjectInfo,
    Store,
    StoreTraits,
)
from zarrfs.store.ranges import check_key
from zarrfs.store.redact import Redactor, shown_url
from zarrfs.store.remote.foreign_errors import converted
from zarrfs.store.remote.ranges.ranged_reader import RangedReader
from zarrfs.store.remote.readers import locate
from zarrfs.store.remote.requests import (
    NotAsExpected,
    ObjectChanged,
    RequestConfig,
    TooLarge,
    Writer,
)
from zarrfs.store.remote.s3.upload_body import slices

_T = TypeVar("_T")

_CHANGED = "was changed by another writer"
_ATTEMPTS = 8
_FIRST_PAUSE_S = 0.01


class FsspecStore(Store):
    """Objects below ``url``.

    url : any fsspec URL, also a chained one (``zip://…::s3://…``), or a link to a snapshot of an
        Icechunk repository.
    storage_options : passed to fsspec; those of an inner link under its protocol's name.
    requests : settings of the requests.

    Raises `UsageError` for a malformed URL or a missing package, `NodeNotFound` for a missing
    archive, and `StoreError`.
    """

    def __init__(
        self, url: str, *, storage_options: Mapping[str, object], requests: RequestConfig
    ) -> None:
        self._url = shown_url(url)
        redact = Redactor(without_public(storage_options), url)
        self._config = requests._replace(redact=redact)
        self._option_names = option_names(storage_options)
        self._closed = False
        try:
            location = locate(url, storage_options, self._config)
        except ZarrfsError:
            raise
        except ObjectChanged:
            raise StoreConflict(self._url, "keeps changing while it is opened") from None
        except Exception as error:  # noqa: BLE001 - the packages below raise any exception
            if (name := unknown_option(error, self._option_names)) is not None:
                raise StoreError(self._url, f"unknown storage option {name!r}") from None
            found = converted(self._url, self._url, error, redact=redact)
            raise found or NodeNotFound(f"{self._url}: no such file") from None
        if location.url is not None:
            self._url = location.url
        self._immutable = location.immutable
        self._reader, self._writer = location.reader, location.writer
        self._root, self._join = location.root, location.join

    @property
    def url(self) -> str:
        return self._url

    @property
    def traits(self) -> StoreTraits:
        return StoreTraits(
            near=False, in_flight=self._config.concurrency, immutable=self._immutable
        )

    @property
    def read_only(self) -> str | None:
        return self._writer if isinstance(self._writer, str) else None

    def get(self, key: str, *, limit: int) -> Blob | None:
        path = self._path(key)
        return self._ask(key, path, lambda: self._reader.get(path, limit))

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        reader = self._reader
        try:
            paths = [self._path(key) for key in keys]
        except StoreError:
            paths = []  # one key is malformed, and the others are read nevertheless
        if not isinstance(reader, RangedReader) or len(paths) <= 1:
            yield from super().get_many(keys, limit=limit)
            return
        for key, path, blob in zip(keys, paths, reader.get_many(paths, limit), strict=True):
            if isinstance(blob, Blob):
                yield blob
            elif isinstance(blob, ObjectChanged):
                yield from super().get_many([key], limit=limit)
            else:
                yield self._failed(key, path, blob)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        path = self._path(key)
        return self._ask(key, path, lambda: self._reader.get_ranges(path, ranges))

    def info(self, key: str) -> ObjectInfo | None:
        path = self._path(key)
        return self._ask(key, path, lambda: self._reader.info(path))

    def list_dir(self, prefix: str) -> Iterator[str]:
        """See `Store.list_dir`; only S3 sends a listing in parts."""
        path = self._path(prefix) if prefix else self._root
        names = self._ask(prefix, path, lambda: self._reader.list_dir(path))
        if names is None:
            return
        count = length = 0
        for name in self._each(prefix, path, names):
            count, length = count + 1, length + len(name)
            try:
                bounds.check_names(count, length)
            except bounds.OutOfBoundsError as error:
                raise StoreError(prefix, str(error)) from error
            if name.rstrip("/") not in ("", ".", ".."):
                yield name

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        path = self._path(prefix) if prefix else self._root
        reader = self._reader
        found = None
        if isinstance(reader, RangedReader):
            found = self._ask(prefix, path, lambda: reader.list_all(path))
        return None if found is None else self._each(prefix, path, found)

    def _each(self, prefix: str, path: str, found: Iterator[_T]) -> Iterator[_T]:
        while (entry := self._ask(prefix, path, lambda: next(found, None))) is not None:
            yield entry

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        """See `Store.put`.

        A put whose reply was lost is sent again, here or by the libraries below, and then finds
        its own object. So the bytes decide what is a conflict: if the object holds the bytes to be
        put, there is none.
        """
        path, writer = self._writable(key)

        def put() -> ObjectInfo:
            try:
                return writer.put(path, parts, expected)
            except NotAsExpected:
                landed = self._landed(path, parts)
            if landed is not None:
                return landed
            if expected is ANY:
                # Another writer removed the upload or a part of it.
                raise StoreUnavailable(key, "the upload was lost")
            raise StoreConflict(key, _CHANGED)

        info = self._ask(key, path, put)
        if info is None:
            raise StoreError(key, "has no place to be stored at")
        return info

    def delete(self, key: str, *, expected: Expected) -> None:
        path, writer = self._writable(key)

        def delete() -> None:
            try:
                writer.delete(path, expected)
            except NotAsExpected:
                raise StoreConflict(key, _CHANGED) from None

        self._ask(key, path, delete)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._reader.close()

    def _ask(self, key: str, path: str, ask: Callable[[], _T]) -> _T | None:
        pause = _FIRST_PAUSE_S
        reason = ""
        for _ in range(_ATTEMPTS):
            try:
                return ask()
            except ObjectChanged as error:
                reason = str(error)
                time.sleep(pause)
                pause *= 2
            except Exception as error:  # noqa: BLE001 - as above
                found = self._failed(key, path, error)
                if found is None:
                    return None
                raise found from None
        raise StoreConflict(key, reason or "keeps changing while it is read")

    def _failed(self, key: str, path: str, error: Exception) -> StoreError | None:
        """The error that a failed request means; None if it says that there is no such object."""
        if self._closed:
            return StoreError(key, "the store is closed")
        if (name := unknown_option(error, self._option_names)) is not None:
            return StoreError(key, f"unknown storage option {name!r}")
        return converted(key, path, error, redact=self._config.redact)

    def _writable(self, key: str) -> tuple[str, Writer]:
        if isinstance(self._writer, str):
            raise StoreReadOnly(key, self._writer)
        return self._path(key), self._writer

    def _landed(self, path: str, parts: Sequence[Data]) -> ObjectInfo | None:
        """The object, if it holds exactly the bytes of ``parts``; piece by piece, to the first
        difference, because there may be no memory for all of it."""
        size = sum(memoryview(part).nbytes for part in parts)
        info: ObjectInfo | None = None
        at = 0
        try:
            for piece in slices(parts, self._config.max_request):
                data = b"".join(piece)
                (blob,) = self._reader.get_ranges(path, [ByteRange(at, len(data))])
                same = info is None or info.generation == blob.info.generation
                # Not compared as memoryviews, which takes one step per byte.
                if not same or blob.info.size != size or bytes(blob.data) != data:
                    return None
                info = blob.info
                at += len(data)
            info = info or self._reader.info(path)
        except (FileNotFoundError, IsADirectoryError, TooLarge):
            return None
        return info if info.size == size else None

    def _path(self, key: str) -> str:
        try:
            check_key(key).encode()
        except UnicodeEncodeError as error:
            raise StoreError(key, "is not a valid key") from error
        return self._join(self._root, key)


# Options that a user needs to see in a message about them.
_PUBLIC = frozenset(
    {
        "addressing_style",
        "anon",
        "account_name",
        "endpoint_url",
        "profile",
        "project",
        "region_name",
        "signature_version",
    }
)
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


def without_public(options: Mapping[str, object]) -> Mapping[str, object]:
    """The options that may hold secrets."""
    return {
        name: without_public(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if name not in _PUBLIC
    }


def option_names(options: Mapping[str, object]) -> frozenset[str]:
    """The names of all options, nested ones included."""
    found = set(options)
    for value in options.values():
        if isinstance(value, Mapping):
            found |= option_names(value)
    return frozenset(found)


def unknown_option(error: Exception, given: frozenset[str]) -> str | None:
    """The storage option that a client does not accept, if ``error`` complains of one.

    given : the names of all options.
    """
    if not isinstance(error, TypeError) or (match := _UNKNOWN.search(str(error))) is None:
        return None
    return match[1] if match[1] in given else None
