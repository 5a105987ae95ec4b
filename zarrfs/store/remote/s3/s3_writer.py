"""Writes to S3: conditional PutObject, and multipart uploads of large objects.

``obstore`` puts whole objects. Its multipart uploads and its delete take no conditions, so ``s3fs``
does these.

A part of an upload is sent again by itself. Every other request is sent once, but for the client
library, which sends it again after a broken connection. The caller decides about all other
retries, because it knows the whole write.

A multipart upload that a killed writer left unfinished is invisible. But the service keeps it, and
charges for it, until a lifecycle rule of the bucket removes it. It cannot be distinguished from the
upload of a running writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from zarrfs.store.base import ANY, Conditional, Data, Expected, ObjectInfo
from zarrfs.store.local.scratch import RESERVED
from zarrfs.store.object_locks import ObjectLocks
from zarrfs.store.remote.foreign_errors import s3_code
from zarrfs.store.remote.ranges.repeats import Repeats
from zarrfs.store.remote.requests import NotAsExpected, RequestConfig, ServiceError
from zarrfs.store.remote.s3.s3_service import S3Service, generation
from zarrfs.store.remote.s3.upload_body import UploadBody, slices
from zarrfs.store.workers import progress_reporter

_T = TypeVar("_T")

_SMALLEST_PART = 5 << 20
_MOST_PARTS = 10_000
_ABORT_S = 5.0
_ABORTS = 5
_ABORT_PAUSE_S = 0.1
_NO_ETAG = f'"{"0" * 32}"'
_NOT_AS_EXPECTED = frozenset({"PreconditionFailed", "412", "NoSuchKey", "NoSuchUpload", "404"})
_REFUSES_CONDITIONS = frozenset({"NotImplemented", "501"})


class S3Writer:
    """A `Writer` on an ``s3fs`` file system; paths are ``bucket/key``.

    root : the path below which objects may be written.

    Shared state: ``_compares``, whether the service compares and replaces in one step; determined
    under ``_lock``, None before. ``_slow``, used on the loop only: whether the link is slow.
    """

    def __init__(
        self,
        filesystem: Any,
        service: S3Service,
        root: str,
        config: RequestConfig,
        redact: Callable[[str], str],
    ) -> None:
        self._redact = redact
        self._filesystem = filesystem
        self._service = service
        self._loop = service.loop
        self._root = root
        self._config = config
        self._lock = threading.Lock()
        self._compares: bool | None = None
        self._slow = False
        self._locks = ObjectLocks()

    @property
    def conditional(self) -> Conditional:
        return Conditional.ALWAYS if self._finds_compares() else Conditional.CHECKED

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        progress, repeats = progress_reporter(), Repeats(self._redact)
        if expected is not ANY and self._finds_compares() and (conditions := _if(expected)):
            return self._run(self._put(path, parts, conditions, progress, repeats))
        if expected is ANY and self._compares is not False:
            return self._run(self._put(path, parts, {}, progress, repeats))
        with self._locks.of(path):
            if expected is not ANY and self._run(self._generation(path)) != expected:
                raise NotAsExpected
            return self._run(self._put(path, parts, {}, progress, repeats))

    def delete(self, path: str, expected: Expected) -> None:
        with self._locks.of(path):
            if expected is ANY:
                self._run(self._delete(path, {}))
                return
            generation = self._run(self._generation(path))
            if generation is None:
                return
            if generation != expected:
                raise NotAsExpected
            conditions = _if(expected) if self._finds_compares() else {}
            try:
                self._run(self._delete(path, conditions))
            except OSError as error:
                # Services supported conditions for deletes later than for puts.
                if s3_code(error) not in _REFUSES_CONDITIONS:
                    raise
                self._run(self._delete(path, {}))

    def _finds_compares(self) -> bool:
        """Determined by a trial, because some services ignore conditions silently.

        A service that honours them refuses the trial and stays unchanged.
        """
        with self._lock:
            if self._compares is None:
                self._compares = self._run(self._probe(Repeats(self._redact)))
            return self._compares

    async def _probe(self, repeats: Repeats) -> bool:
        path = f"{self._root.rstrip('/')}/{RESERVED}{secrets.token_hex(8)}"
        try:
            await self._put(path, [], {"IfMatch": _NO_ETAG}, lambda: None, repeats)
        except NotAsExpected:
            return True
        except (OSError, ServiceError) as error:
            if s3_code(error) in _REFUSES_CONDITIONS:
                return False
            raise
        await self._delete(path, {})
        return False

    async def _generation(self, path: str) -> object:
        try:
            async with asyncio.timeout(self._config.timeout_s):
                return (await self._service.head(path)).generation
        except FileNotFoundError:
            return None

    async def _put(
        self,
        path: str,
        parts: Sequence[Data],
        conditions: dict[str, str],
        progress: Callable[[], None],
        repeats: Repeats,
    ) -> ObjectInfo:
        size = sum(memoryview(part).nbytes for part in parts)
        length = max(_SMALLEST_PART, 2 * self._config.max_request, -(-size // _MOST_PARTS))
        pieces = slices(parts, length)
        try:
            if len(pieces) <= 1:
                reply = await self._put_whole(
                    path, pieces[0] if pieces else [], conditions, progress
                )
            else:
                reply = await self._put_parts(path, pieces, conditions, progress, repeats)
        except (OSError, ServiceError) as error:
            if s3_code(error) in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise
        return _described(reply, size)

    async def _put_whole(
        self,
        path: str,
        parts: Sequence[memoryview],
        conditions: dict[str, str],
        progress: Callable[[], None],
    ) -> Any:
        """Put the object in one request. The faster client does not report how much it has sent.

        So after one such put took too long, the other client sends. It is cancelled only if it
        makes no progress.
        """
        if not self._slow:
            try:
                async with asyncio.timeout(self._config.timeout_s):
                    reply = await self._service.put(path, parts, conditions)
            except TimeoutError:
                self._slow = True
                raise
            if reply is not None:
                progress()
                return reply
        return await self._send("put_object", path, UploadBody(parts, progress), **conditions)

    async def _put_parts(
        self,
        path: str,
        pieces: Sequence[Sequence[memoryview]],
        conditions: dict[str, str],
        progress: Callable[[], None],
        repeats: Repeats,
    ) -> Any:
        created = await self._ask("create_multipart_upload", path)
        upload = {"UploadId": created["UploadId"]}
        slots = asyncio.Semaphore(self._config.concurrency)

        async def once(number: int, piece: Sequence[memoryview]) -> dict[str, object]:
            async with slots:
                body = UploadBody(piece, progress)
                reply = await self._send("upload_part", path, body, PartNumber=number, **upload)
            return {"PartNumber": number, "ETag": reply["ETag"]}

        async def send(number: int, piece: Sequence[memoryview]) -> dict[str, object]:
            return await repeats.send(path, lambda: once(number, piece))

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(send(n, p)) for n, p in enumerate(pieces, 1)]
            listed = {"Parts": [task.result() for task in tasks]}
            return await self._ask(
                "complete_multipart_upload", path, MultipartUpload=listed, **upload, **conditions
            )
        except BaseException as error:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_ABORT_S):
                    await self._abort(path, upload)
            if isinstance(error, BaseExceptionGroup):
                failure = error.exceptions[0]
            else:
                raise
        # With its original cause, which contains the reply of the service.
        raise failure

    async def _abort(self, path: str, upload: dict[str, Any]) -> None:
        """Abort the upload, a few times at most, until the service does not know it any more.

        A part whose request was cancelled may still be arriving. The service then refuses to abort,
        or keeps that part, until it gets another request (S3's AbortMultipartUpload).
        """
        for attempt in range(_ABORTS):
            if attempt:
                await asyncio.sleep(_ABORT_PAUSE_S * 2 ** (attempt - 1))
            try:
                await self._service.call("abort_multipart_upload", path, **upload)
            except FileNotFoundError:
                return
            except OSError as error:
                if s3_code(error) in _NOT_AS_EXPECTED:
                    return

    async def _delete(self, path: str, conditions: dict[str, str]) -> None:
        try:
            await self._ask("delete_object", path, **conditions)
        except FileNotFoundError as error:
            if s3_code(error) == "NoSuchBucket":
                raise
        except OSError as error:
            if s3_code(error) in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise

    async def _send(self, method: str, path: str, body: UploadBody, **arguments: Any) -> Any:
        request = self._service.call(method, path, Body=body, **arguments)
        return await body.sent(request, self._config.timeout_s)

    async def _ask(self, method: str, path: str, **arguments: Any) -> Any:
        async with asyncio.timeout(self._config.timeout_s):
            return await self._service.call(method, path, **arguments)

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _if(expected: object) -> dict[str, str]:
    """The equivalent conditions of S3; empty if S3 cannot express them."""
    if expected is None:
        return {"IfNoneMatch": "*"}
    etag = expected[0] if isinstance(expected, tuple) and expected else None
    return {"IfMatch": etag} if isinstance(etag, str) else {}


def _described(reply: Any, size: int) -> ObjectInfo:
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    # obstore does not report the time of the put.
    mtime_ns = int(time.time()) * 1_000_000_000
    with contextlib.suppress(ValueError, TypeError):
        # The reply has no other time; only a request for the object returns its own.
        mtime_ns = int(parsedate_to_datetime(headers.get("date")).timestamp()) * 1_000_000_000
    return ObjectInfo(size, mtime_ns, generation(reply, mtime_ns, size))
