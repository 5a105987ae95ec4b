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
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from zarrfs.locks import KeyedLocks
from zarrfs.store.base import ANY, Data, Expected, ObjectInfo
from zarrfs.store.local.scratch import RESERVED
from zarrfs.store.remote.foreign_errors import s3_code
from zarrfs.store.remote.ranges.side_by_side import SideBySide
from zarrfs.store.remote.requests import NotAsExpected, RequestConfig, ServiceError
from zarrfs.store.remote.s3.s3_service import S3Service, generation
from zarrfs.store.remote.s3.upload_body import UploadBody, slices
from zarrfs.store.workers import current_call
from zarrfs.threads import ThreadPool

_SMALLEST_PART = 5 << 20
_MOST_PARTS = 10_000
# An upload is cancelled when it makes no progress.
_UPLOAD_S = 86400.0
_ABORT_S = 5.0
_ABORTS = 5
_ABORT_PAUSE_S = 0.1
_NO_ETAG = f'"{"0" * 32}"'
_NOT_AS_EXPECTED = frozenset({"PreconditionFailed", "412", "NoSuchKey", "NoSuchUpload", "404"})
_REFUSES_CONDITIONS = frozenset({"NotImplemented", "501"})


class S3Writer:
    """A `Writer` beside an `S3Service`; paths are ``bucket/key``.

    root : the path below which objects may be written.

    Shared state: ``_compares``, whether the service compares and replaces in one step; determined
    under ``_lock``, None before. ``_slow``: whether the link is slow.
    """

    def __init__(self, service: S3Service, root: str, config: RequestConfig) -> None:
        self._service = service
        self._on_loop = service.on_loop
        self._threads = ThreadPool(config.concurrency, "requests")
        self._root = root
        self._config = config
        self._lock = threading.Lock()
        self._compares: bool | None = None
        self._slow = False
        self._locks = KeyedLocks()

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        if expected is not ANY and self._finds_compares() and (conditions := _if(expected)):
            return self._put(path, parts, conditions)
        if expected is ANY and self._compares is not False:
            return self._put(path, parts, {})
        with self._locks.held(path):
            if expected is not ANY and self._generation(path) != expected:
                raise NotAsExpected
            return self._put(path, parts, {})

    def delete(self, path: str, expected: Expected) -> None:
        with self._locks.held(path):
            if expected is ANY:
                self._delete(path, {})
                return
            generation = self._generation(path)
            if generation is None:
                return
            if generation != expected:
                raise NotAsExpected
            conditions = _if(expected) if self._finds_compares() else {}
            try:
                self._delete(path, conditions)
            except OSError as error:
                # Services supported conditions for deletes later than for puts.
                if s3_code(error) not in _REFUSES_CONDITIONS:
                    raise
                self._delete(path, {})

    def _finds_compares(self) -> bool:
        """Determined by a trial, because some services ignore conditions silently.

        A service that honours them refuses the trial and stays unchanged.
        """
        with self._lock:
            if self._compares is None:
                self._compares = self._probe()
            return self._compares

    def _probe(self) -> bool:
        path = f"{self._root.rstrip('/')}/{RESERVED}{secrets.token_hex(8)}"
        try:
            self._put(path, [], {"IfMatch": _NO_ETAG})
        except NotAsExpected:
            return True
        except (OSError, ServiceError) as error:
            if s3_code(error) in _REFUSES_CONDITIONS:
                return False
            raise
        self._delete(path, {})
        return False

    def _generation(self, path: str) -> object:
        try:
            return self._service.head(path).generation
        except FileNotFoundError:
            return None

    def _put(self, path: str, parts: Sequence[Data], conditions: dict[str, str]) -> ObjectInfo:
        size = sum(memoryview(part).nbytes for part in parts)
        length = max(_SMALLEST_PART, 2 * self._config.max_request, -(-size // _MOST_PARTS))
        pieces = slices(parts, length)
        try:
            if len(pieces) <= 1:
                reply = self._put_whole(path, pieces[0] if pieces else [], conditions)
            else:
                reply = self._put_parts(path, pieces, conditions)
        except (OSError, ServiceError) as error:
            if s3_code(error) in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise
        return _described(reply, size)

    def _put_whole(self, path: str, parts: Sequence[memoryview], conditions: dict[str, str]) -> Any:
        """Put the object in one request. The faster client does not report how much it has sent.

        So after one such put took too long, the other client sends. It is cancelled only if it
        makes no progress.
        """
        if not self._slow:
            try:
                reply = self._service.put(path, parts, conditions)
            except TimeoutError:
                self._slow = True
                raise
            if reply is not None:
                current_call().progress()
                return reply
        return self._send("put_object", path, parts, **conditions)

    def _put_parts(
        self, path: str, pieces: Sequence[Sequence[memoryview]], conditions: dict[str, str]
    ) -> Any:
        created = self._ask("create_multipart_upload", path)
        upload = {"UploadId": created["UploadId"]}

        def send(number: int) -> dict[str, object]:
            part = {"PartNumber": number + 1, **upload}
            reply = self._send("upload_part", path, pieces[number], **part)
            return {"PartNumber": number + 1, "ETag": reply["ETag"]}

        try:
            parts = SideBySide(self._threads, [path] * len(pieces), send, self._config.redact).all()
            listed = {"Parts": parts}
            return self._ask(
                "complete_multipart_upload", path, MultipartUpload=listed, **upload, **conditions
            )
        except BaseException:
            with contextlib.suppress(Exception):
                self._on_loop.run(partial(self._abort, path, upload), _ABORT_S)
            raise

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

    def _delete(self, path: str, conditions: dict[str, str]) -> None:
        try:
            self._ask("delete_object", path, **conditions)
        except FileNotFoundError as error:
            if s3_code(error) == "NoSuchBucket":
                raise
        except OSError as error:
            if s3_code(error) in _NOT_AS_EXPECTED:
                raise NotAsExpected from error
            raise

    def _send(self, method: str, path: str, parts: Sequence[memoryview], **arguments: Any) -> Any:
        body = UploadBody(parts, current_call().progress)
        request = partial(self._service.call, method, path, Body=body, **arguments)
        return self._on_loop.run(partial(body.sent, request, self._config.timeout_s), _UPLOAD_S)

    def _ask(self, method: str, path: str, **arguments: Any) -> Any:
        return self._on_loop.run(partial(self._service.call, method, path, **arguments))


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
