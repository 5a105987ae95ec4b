"""Reads from services whose every reply identifies the state of the object.

HTTP and S3 send the object's size and ETag with each part. So one round trip fetches the parts and
their generation. Replies of different generations mean that the object changed in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.ranges import Span, merge, resolve
from zarrfs.store.remote.ranges.assemble import Piece, cut
from zarrfs.store.remote.ranges.side_by_side import SideBySide
from zarrfs.store.remote.requests import (
    BadReply,
    BrokenReply,
    ObjectChanged,
    RequestConfig,
    TooLarge,
)
from zarrfs.store.workers import current_call
from zarrfs.threads import ThreadPool

Part: TypeAlias = Any
"""Bytes as they arrive: a buffer with a length."""

Into: TypeAlias = Callable[[int], memoryview | None]
"""Maps the size of an object to a buffer for all of it, in which the wanted bytes take their place;
None: they are returned alone."""


class Reply(NamedTuple):
    """A part of an object, or the whole object if the service ignored the range.

    size : the object's size in bytes; None: known only once ``body`` has ended.
    start, stop : the part that ``body`` holds; ``stop`` is None if ``size`` is.
    describe : maps the object's size to its `ObjectInfo`.
    body : an iterable of `Part` with a method ``close``. An asynchronous iterable in the replies
        that `zarrfs.store.remote.ranges.on_loop` converts.
    """

    start: int
    stop: int | None
    size: int | None
    describe: Callable[[int], ObjectInfo]
    body: Any


class RangeNotSatisfiable(Exception):
    """The range starts at or beyond the object's end."""


class Service(Protocol):
    """One kind of service, for any number of threads; `FileNotFoundError` for a missing object.

    A service that derives from this class need neither hear of slow requests nor release anything.
    """

    def head(self, path: str) -> ObjectInfo: ...

    def get(self, path: str, wanted: ByteRange) -> Reply:
        """Raises `RangeNotSatisfiable`."""
        ...

    def list_dir(self, path: str) -> Iterator[str]: ...

    def abandoned(self) -> None:
        """A request took so long that its operation was abandoned."""
        return

    def close(self) -> None:
        return


class RangedReader:
    """A `Reader` on top of a `Service`."""

    def __init__(self, service: Service, config: RequestConfig) -> None:
        self._service = service
        self._config = config
        # Until a service has honoured a range, the first request of an operation is sent alone:
        # several whole objects at once could fill the memory.
        self._honours_ranges = False
        self._threads = ThreadPool(config.concurrency, "requests")

    def info(self, path: str) -> ObjectInfo:
        return self._config.state(self._service.head(path))

    def get(self, path: str, limit: int) -> Blob:
        """An object of at most ``limit`` bytes."""
        step = self._config.max_request
        # An object that is little longer, such as a shard with its index, takes one request.
        most = step + step // 8
        buffer: memoryview | None = None

        def room(size: int) -> memoryview | None:
            """Memory for an object that takes several requests."""
            nonlocal buffer
            if size > limit:
                raise TooLarge(size, limit)
            if size > most:
                buffer = np.empty(size, np.uint8).data
            return buffer

        # At least one byte: a range of no bytes is not valid.
        first, info = self._fetch(path, ByteRange(0, max(1, min(limit, most))), limit, room)
        if info.size > limit:
            raise TooLarge(info.size, limit)
        if buffer is None:
            return Blob(first.data, info)
        spans = [
            ByteRange(at, min(step, info.size - at))
            for at in range(len(first.data), info.size, step)
        ]
        whole = buffer

        def into(size: int) -> memoryview | None:
            return whole if size == len(whole) else None

        for piece, state in self._fetch_all(path, spans, limit, into):
            self._check_same(info, state)
            if len(piece.data) == len(whole):
                # A compressed reply has all of the object, and did not say so before it came.
                whole[:] = piece.data
        return Blob(whole.toreadonly(), info)

    def get_many(self, paths: Sequence[str], limit: int) -> Iterator[Blob | Exception]:
        """For each path, in order, the result of `get` or its exception; requests run together."""

        def send(number: int) -> Blob:
            return self.get(paths[number], limit)

        return SideBySide(self._threads, paths, send, self._config.redact).in_order()

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        requests = self._requests(ranges)
        if not requests:
            return cut([], ranges, self.info(path))
        cap = self._config.max_unranged
        found: list[tuple[Piece, ObjectInfo]] = []
        if not self._honours_ranges:
            found = self._fetch_all(path, requests[:1], cap)
            piece, info = found[0]
            if len(piece.data) == info.size:
                return [blob._replace(whole=piece.data) for blob in cut([piece], ranges, info)]
        found += self._fetch_all(path, requests[len(found) :], cap)
        info = found[0][1]
        for _, state in found:
            self._check_same(info, state)
        return cut([piece for piece, _ in found], ranges, info)

    def list_dir(self, path: str) -> Iterator[str]:
        return self._service.list_dir(path)

    def list_all(self, path: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        """See `Store.list_all`."""
        list_below = getattr(self._service, "list_below", None)
        return None if list_below is None else list_below(path)

    def close(self) -> None:
        self._service.close()

    def _requests(self, ranges: Sequence[ByteRange]) -> list[ByteRange]:
        """The ranges to request while the object's size is unknown."""
        spans = [Span(r.offset, r.offset + r.length) for r in ranges if r.offset >= 0]
        merged = merge(spans, max_gap=self._config.max_gap, max_length=self._config.max_request)
        requests = [ByteRange(span.start, span.length) for span in merged]
        from_end = max((-r.offset for r in ranges if r.offset < 0 and r.length > 0), default=0)
        if from_end:
            requests.append(ByteRange(-from_end, from_end))
        return requests

    def _fetch_all(
        self, path: str, wanted: Sequence[ByteRange], cap: int, into: Into | None = None
    ) -> list[tuple[Piece, ObjectInfo]]:
        """Run several `_fetch` at once; each is repeated alone."""

        def send(number: int) -> tuple[Piece, ObjectInfo]:
            return self._fetch(path, wanted[number], cap, into)

        return SideBySide(self._threads, [path] * len(wanted), send, self._config.redact).all()

    def _fetch(
        self, path: str, wanted: ByteRange, cap: int, into: Into | None
    ) -> tuple[Piece, ObjectInfo]:
        """The part ``wanted``, or instead the whole object of at most ``cap`` bytes."""
        current_call().cancel = self._service.abandoned
        try:
            reply = self._service.get(path, wanted)
        except RangeNotSatisfiable:
            info = self.info(path)
            span = resolve(wanted, info.size)
            if span.stop > span.start:
                # Most likely the object grew between the two requests: it is asked for anew.
                raise ObjectChanged("the server refuses a range that it has") from None
            return Piece(span.start, b""), info
        try:
            return self._receive(reply, wanted, cap, into)
        finally:
            reply.body.close()

    def _check_same(self, first: ObjectInfo, second: ObjectInfo) -> None:
        """Raises `ObjectChanged` if two replies are not of the same state."""
        if first.size != second.size or first.generation != second.generation:
            raise ObjectChanged

    def _receive(
        self, reply: Reply, wanted: ByteRange, cap: int, into: Into | None
    ) -> tuple[Piece, ObjectInfo]:
        if reply.size is None or reply.stop is None:
            data = b"".join(self._parts(reply.body, TooLarge(None, cap), cap))
            return Piece(0, data), self._config.state(reply.describe(len(data)))
        info = self._config.state(reply.describe(reply.size))
        asked = resolve(wanted, reply.size)
        if (reply.start, reply.stop) == (asked.start, asked.stop):
            if reply.stop - reply.start < reply.size:
                self._honours_ranges = True
        elif (reply.start, reply.stop) != (0, reply.size):
            raise BadReply("the server sent other bytes than were asked for")
        elif reply.size > cap:
            raise TooLarge(reply.size, cap, " and the server ignores ranges")
        length = reply.stop - reply.start
        buffer = None if into is None else into(reply.size)
        target = None if buffer is None else buffer[reply.start : reply.stop]
        done = 0
        too_much = BrokenReply("the server sent more bytes than it announced")
        for part in self._parts(reply.body, too_much, length):
            if target is None and len(part) == length:
                # The part is the whole body, so it needs no copy.
                target = memoryview(part)
            else:
                if target is None:
                    target = np.empty(length, np.uint8).data
                target[done : done + len(part)] = part
            done += len(part)
        if done != length:
            raise BrokenReply(f"the reply broke off after {done} of {length} bytes")
        return Piece(reply.start, b"" if target is None else target.toreadonly()), info

    def _parts(self, body: Iterable[Part], too_much: Exception, most: int) -> Iterator[Part]:
        """The parts of a body; raises ``too_much`` if they have more than ``most`` bytes.

        Raises `TimeoutError` for one that arrives in drops.
        """
        call = current_call()
        give_up = time.monotonic() + self._config.timeout_s
        slowest = self._config.slowest
        count = 0
        for part in body:
            count += len(part)
            if count > most:
                raise too_much
            yield part
            call.progress()
            if time.monotonic() > give_up + count / slowest:
                raise TimeoutError
