"""Objects of Google's and Azure's stores, through ``obstore``.

``gcsfs`` and ``adlfs`` follow the conventions of the ecosystem: options, environment, endpoints,
files of credentials. So they find the endpoint and the credentials, and ``obstore`` sends the
requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from zarrfs.store.base import ANY, ByteRange, Data, Expected, Generation, ObjectInfo
from zarrfs.store.ranges import resolve
from zarrfs.store.remote.foreign_errors import SERVICE_GONE
from zarrfs.store.remote.obstore_objects import NotServed, ObstoreObjects
from zarrfs.store.remote.ranges.on_loop import OnLoop
from zarrfs.store.remote.ranges.ranged_reader import RangeNotSatisfiable, Reply, Service
from zarrfs.store.remote.requests import (
    BadReply,
    NotAsExpected,
    ObjectChanged,
    RequestConfig,
    ServiceError,
)
from zarrfs.store.workers import current_call

if TYPE_CHECKING:
    from obstore.store import ObjectStore


# Bytes per second that an upload must reach, in addition to the time for a reply: ``obstore`` does
# not report its progress.
_SLOWEST_UPLOAD = 64 << 10
_NOT_AS_EXPECTED = frozenset(
    {"ConditionNotMet", "BlobAlreadyExists", "BlobNotFound", "PreconditionFailed", "412"}
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or container, and the properties of its service.

    open_store : as `ObstoreObjects` takes it; keys are relative to the bucket.
    condition : maps the state of an object to the argument of ``obstore`` for a put on the
        condition that the object is in that state; None if the state does not suffice.
    delete : deletes the object at a key if it is in the given state (None: in any state), with the
        client that supports conditions. Blocks. Raises
        `zarrfs.store.remote.requests.NotAsExpected`, FileNotFoundError, and the errors of that
        client.
    suffixes : whether the service supports ranges counted from an object's end.
    """

    name: str
    open_store: Callable[..., ObjectStore]
    condition: Callable[[Generation], dict[str, str] | None]
    delete: Callable[[str, Generation | None], None]
    suffixes: bool


class CloudService(Service):
    """A `Service` and a `Writer` on a bucket; paths are ``bucket/key``. Each object is one request.

    loop : the event loop on which requests are sent.
    """

    def __init__(
        self, bucket: Bucket, loop: asyncio.AbstractEventLoop, config: RequestConfig
    ) -> None:
        self._bucket = bucket
        self._objects = ObstoreObjects(bucket.open_store, _known, config)
        self._on_loop = OnLoop(lambda: loop, config.timeout_s)
        self._timeout_s = config.timeout_s

    def head(self, path: str) -> ObjectInfo:
        try:
            return self._objects.head(self._key(path))
        except NotServed as error:
            raise _unusable(error) from error

    def get(self, path: str, wanted: ByteRange) -> Reply:
        etag = None
        if wanted.offset < 0 and not self._bucket.suffixes:
            info = self.head(path)
            span = resolve(wanted, info.size)
            if span.stop == span.start:
                raise RangeNotSatisfiable
            wanted, etag = ByteRange(span.start, span.length), str(info.generation[0])
        try:
            return self._objects.get(self._key(path), wanted, etag)
        except NotServed as error:
            # If the object has no byte of the range, services answer differently.
            span = resolve(wanted, self.head(path).size)
            if span.stop > span.start:
                raise _unusable(error) from error
            raise RangeNotSatisfiable from error
        except ServiceError as error:
            if etag is not None and error.status == 412:
                raise ObjectChanged from error
            raise

    def abandoned(self) -> None:
        self._objects.slow_down()

    def list_dir(self, path: str) -> Iterator[str]:
        """All names at once: ``obstore`` returns a level of a listing once it is complete."""
        prefix = path.partition("/")[2].rstrip("/")
        found = self._objects.list_level(prefix)
        names = [f"{name.rstrip('/')}/" for name in found["common_prefixes"]]
        names += [str(entry["path"]) for entry in found["objects"]]
        for name in names:
            if name.rstrip("/") != prefix:
                yield name[len(prefix) :].lstrip("/")

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        views = [memoryview(part) for part in parts]
        size = sum(view.nbytes for view in views)
        # An empty view cannot be cast, and has no bytes to send.
        views = [view.cast("B") for view in views if view.nbytes]
        condition = None
        if isinstance(expected, tuple) and (condition := self._bucket.condition(expected)) is None:
            raise NotAsExpected
        key = self._key(path)
        send = partial(self._objects.put, key, views, condition, new=expected is None)
        most_s = self._timeout_s + size / _SLOWEST_UPLOAD
        try:
            etag, version = self._on_loop.run(send, most_s, progress=current_call().progress)
        except NotServed as error:
            raise _unusable(error) from error
        except ServiceError as error:
            if expected is not ANY and error.code in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise
        mtime_ns = int(time.time()) * 1_000_000_000
        return _known(size, mtime_ns, etag, version)

    def delete(self, path: str, expected: Expected) -> None:
        try:
            self._delete(path, expected)
        except FileNotFoundError as error:
            if isinstance(error, ServiceError) and error.code in SERVICE_GONE:
                raise

    def _delete(self, path: str, expected: Expected) -> None:
        try:
            if expected is not ANY and (
                expected is None or self._bucket.condition(expected) is None
            ):
                raise NotAsExpected
            self._bucket.delete(self._key(path), None if expected is ANY else expected)
        except NotAsExpected:
            # A missing object is in no state, and missing is the aim of a delete.
            self.head(path)
            raise

    def _key(self, path: str) -> str:
        """The key in the bucket. Raises FileNotFoundError if the path names only the bucket."""
        if not (key := path.partition("/")[2]):
            raise FileNotFoundError(path)
        return key


def _unusable(error: NotServed) -> BadReply:
    cause = str(error.__cause__).partition("\n")[0]
    return BadReply(f"the service answers with what cannot be used: {cause}")


def _known(size: int, mtime_ns: int, etag: str | None, version: str | None) -> ObjectInfo:
    return ObjectInfo(size, mtime_ns, (etag, version, size))
