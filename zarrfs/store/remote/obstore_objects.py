"""Objects through ``obstore``, which takes 20 to 33 % of the processor time of fsspec's clients.

GETs and HEADs of whole objects and ranges, and PUTs with a condition. Reads block, because that
takes half the processor time of asynchronous ones. ``get_ranges`` of ``obstore`` does not return
the object's ETag, so several ranges are single GETs here. Its delete and its multipart uploads take
no condition, so other clients do these.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from zarrfs.store.base import ByteRange, Data, ObjectInfo
from zarrfs.store.remote.quiet import quiet
from zarrfs.store.remote.ranges.ranged_reader import Part, RangeNotSatisfiable, Reply
from zarrfs.store.remote.requests import RequestConfig, ServiceError, ServiceMissing

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")
_CAUSE = re.compile(r'message: "([^"]+)"|: ([A-Z]\w*Certificate\w*)')
_NOT_SERVED = (
    "NotPartial",
    "incorrectly configured region",
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "following redirect",
)
# Matches a failure on the way, as opposed to a reply that cannot be used.
_ON_THE_WAY = re.compile(r"(?:: |- )HTTP error: ")

# A body arrives in parts of about two seconds each, so that a slow link shows progress. A fast link
# takes few hops between threads, and a body that is one part is not copied again.
_PART_S = 2.0
_LARGEST_PART = 8 << 20
# Parts grow by this factor at most with each body.
_GROWTH = 4

# zarrfs decides what is retried and how long a request may take.
_ONE_ATTEMPT: RetryConfig = {"max_retries": 0}
_NO_LIMIT: ClientConfig = {
    "timeout": timedelta(days=1),
    "connect_timeout": timedelta(seconds=10),
    "allow_http": True,
}


class NotServed(Exception):
    """``obstore`` cannot handle the reply of the service, but another client may.

    The bucket is in another region than configured, the service sends whole objects for ranges, or
    a reply lacks a required field.
    """


class ObstoreObjects:
    """Objects with keys relative to the bucket, or to the server's root.

    open_store : makes the store of ``obstore``, with ``client_options`` and ``retry_config``. It is
        called again for writes, which may be silent for longer than reads.
    describe : maps size, time in nanoseconds since the epoch (0: the service does not report it),
        ETag and version to an `ObjectInfo`.
    config : how long a reply may be silent, and how slow.
    as_stored : whether to refuse replies that are compressed in transit, by `NotServed`. Default
        False.
    """

    def __init__(
        self,
        open_store: Callable[..., ObjectStore],
        describe: Callable[[int, int, str | None, str | None], ObjectInfo],
        config: RequestConfig,
        *,
        as_stored: bool = False,
    ) -> None:
        import obstore  # noqa: PLC0415 - a slow import that few stores need

        self._obstore = obstore
        silent = timedelta(seconds=config.timeout_s)
        self._open_store = partial(open_store, retry_config=_ONE_ATTEMPT)
        self._store = self._open_store(client_options={**_NO_LIMIT, "read_timeout": silent})
        self._writes: ObjectStore | None = None
        self._describe = describe
        self._as_stored = as_stored
        self._smallest_part = self._part = config.smallest_part

    def head(self, key: str) -> ObjectInfo:
        return self._described(self._ask(key, {"head": True}).meta)

    def get(self, key: str, wanted: ByteRange, etag: str | None = None) -> Reply:
        """Raises as `zarrfs.store.remote.ranges.ranged_reader.Service` does, and `NotServed`.

        etag : of the state that the object must be in; otherwise status 412 is raised.
        """
        options: Any = {"range": _range(wanted)}
        if etag is not None:
            options["if_match"] = etag
        begun = time.monotonic()
        result = self._ask(key, options)
        info = self._described(result.meta)
        start, stop = result.range
        body = self._body(result, stop - start, begun)
        return Reply(start, stop, info.size, lambda _size: info, body)

    def list_level(self, prefix: str) -> Any:
        """The objects and common prefixes directly below a prefix, as ``obstore`` returns them."""
        try:
            with quiet:
                return self._obstore.list_with_delimiter(self._store, prefix or None)
        except Exception as error:
            raise failure(error) from error

    async def put(
        self, key: str, parts: Sequence[Data], expected: Mapping[str, str] | None, *, new: bool
    ) -> tuple[str | None, str | None]:
        """Replace the object in one request; returns the new object's ETag and version.

        parts : not copied; must not change meanwhile.
        expected : ``e_tag``, ``version`` or both of the state that the object must be in.
        new : whether the object must not exist.
        """
        mode: Any = "create" if new else expected or "overwrite"
        body = [part for part in parts if len(part)]
        if self._writes is None:
            self._writes = self._open_store(client_options=_NO_LIMIT)
        try:
            with quiet:
                stored = await self._obstore.put_async(
                    self._writes, key, body, mode=mode, use_multipart=False
                )
        except Exception as error:
            raise failure(error) from error
        return stored["e_tag"], stored["version"]

    def slow_down(self) -> None:
        """Have later replies show progress earlier, because the link may have become slow."""
        self._part = self._smallest_part

    def _ask(self, key: str, options: Any) -> Any:
        try:
            with quiet:
                result = self._obstore.get(self._store, key, options=options)
        except Exception as error:
            found = failure(error)
            raise (RangeNotSatisfiable() if found.status == 416 else found) from error
        encoding = result.attributes.get("Content-Encoding") if self._as_stored else None
        if encoding not in (None, "identity", ""):
            raise NotServed
        return result

    def _body(self, result: Any, length: int, begun: float) -> Iterator[Part]:
        count = 0
        try:
            # Never `bytes`, which takes any amount that a server sends.
            parts = result.stream(min_chunk_size=min(self._part, length))
            while count < length:
                with quiet:
                    part = next(parts, None)
                if part is None:
                    break
                count += len(part)
                yield part
        except Exception as error:
            raise failure(error) from error
        finally:
            if count < length:
                self.slow_down()
        # With the time until the reply began, in which its first bytes may have come, too. So a
        # link is at least as fast, and a short body only tells that parts may be larger.
        rate = count / max(time.monotonic() - begun, 1e-6)
        most = min(_GROWTH * self._part, _LARGEST_PART)
        part = int(min(max(rate * _PART_S, self._smallest_part), most))
        if part > self._part or count >= self._part:
            self._part = part

    def _described(self, meta: Any) -> ObjectInfo:
        mtime_ns = int(meta["last_modified"].timestamp()) * 1_000_000_000
        return self._describe(meta["size"], mtime_ns, meta["e_tag"], meta["version"])


def failure(error: Exception) -> ServiceError:
    """Convert an exception of ``obstore``, which has status and code only in its text.

    Raises `ConnectionError` if the service could not be reached, `TimeoutError` if it does not
    answer, and `NotServed`.
    """
    text = str(error)
    head = text.partition("\n\nDebug source:")[0]
    status, code, message = _STATUS.search(head), _CODE.search(head), _MESSAGE.search(head)
    if any(sign in text for sign in _NOT_SERVED):
        raise NotServed from error
    if status is None:
        cause = _CAUSE.search(text)
        reason = next((part for part in (cause.groups() if cause else ()) if part), None)
        reason = reason or head.rpartition(": ")[2]
        if "ertificate" in reason:
            return ServiceError(reason, None, None)
        if _ON_THE_WAY.search(head) is None:
            raise NotServed from error
        if "kind: Timeout" in text:
            raise TimeoutError from error
        raise ConnectionError(reason) from error
    number = int(status[1])
    name = code[1] if code else str(number)
    said = f"{name}: {message[1]}" if message else name
    kind = ServiceMissing if number in (404, 410) else ServiceError
    return kind(said, number, name)


def _range(wanted: ByteRange) -> Any:
    if wanted.offset < 0:
        return {"suffix": -wanted.offset}
    return (wanted.offset, wanted.offset + wanted.length)
