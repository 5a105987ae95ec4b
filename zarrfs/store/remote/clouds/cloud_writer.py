"""Writes to Google's and Azure's stores, with conditions that the service itself checks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from zarrfs.store.base import ANY, Conditional, Data, Expected, ObjectInfo
from zarrfs.store.remote.clouds.cloud_service import Bucket, CloudService, generation
from zarrfs.store.remote.foreign_errors import SERVICE_GONE
from zarrfs.store.remote.requests import NotAsExpected, RequestConfig, ServiceError
from zarrfs.store.workers import progress_reporter

_T = TypeVar("_T")

# Bytes per second that an upload must reach, in addition to the time for a reply: ``obstore`` does
# not report its progress.
_SLOWEST_UPLOAD = 64 << 10
_NOT_AS_EXPECTED = frozenset(
    {"ConditionNotMet", "BlobAlreadyExists", "BlobNotFound", "PreconditionFailed", "412"}
)


class CloudWriter:
    """A `Writer` on a bucket; paths are ``bucket/key``. Each object is one request."""

    conditional = Conditional.ALWAYS

    def __init__(self, bucket: Bucket, service: CloudService, config: RequestConfig) -> None:
        self._bucket = bucket
        self._service = service
        self._config = config

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        views = [memoryview(part) for part in parts]
        size = sum(view.nbytes for view in views)
        # An empty view cannot be cast, and has no bytes to send.
        views = [view.cast("B") for view in views if view.nbytes]
        condition = None
        if isinstance(expected, tuple) and (condition := self._bucket.condition(expected)) is None:
            raise NotAsExpected
        sent = self._service.put(path, views, condition, new=expected is None)
        try:
            etag, version = self._run(sent, size, progress_reporter())
        except ServiceError as error:
            if expected is not ANY and error.code in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise
        mtime_ns = int(time.time()) * 1_000_000_000
        return ObjectInfo(size, mtime_ns, generation(etag, version, size))

    def delete(self, path: str, expected: Expected) -> None:
        with _missing_is_fine():
            try:
                if expected is ANY:
                    self._bucket.delete(self._service.key(path), None)
                elif isinstance(expected, tuple) and self._bucket.condition(expected) is not None:
                    self._bucket.delete(self._service.key(path), expected)
                else:
                    raise NotAsExpected
            except NotAsExpected:
                # A missing object is in no state, and missing is the aim of a delete.
                self._run(self._service.head(path), 0, progress_reporter())
                raise

    def _run(self, work: Coroutine[Any, Any, _T], size: int, progress: Callable[[], None]) -> _T:
        timeout_s = self._config.timeout_s

        async def in_time() -> _T:
            give_up = time.monotonic() + timeout_s + size / _SLOWEST_UPLOAD
            task = asyncio.ensure_future(work)
            try:
                while not task.done():
                    left = give_up - time.monotonic()
                    if left <= 0:
                        raise TimeoutError
                    await asyncio.wait({task}, timeout=min(left, timeout_s / 4))
                    progress()
                return task.result()
            finally:
                task.cancel()

        return asyncio.run_coroutine_threadsafe(in_time(), self._service.loop).result()


@contextlib.contextmanager
def _missing_is_fine() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if isinstance(error, ServiceError) and error.code in SERVICE_GONE:
            raise
