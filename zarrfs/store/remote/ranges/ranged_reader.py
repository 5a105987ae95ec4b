"""Reads from services whose every reply identifies the state of the object.

HTTP and S3 send the object's size and ETag with each part. So one round trip fetches the parts and
their generation. Replies of different generations mean that the object changed in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.ranges import Span, merge, resolve
from zarrfs.store.remote.foreign_errors import is_busy
from zarrfs.store.remote.ranges.assemble import Piece, cut
from zarrfs.store.remote.ranges.repeats import Repeats
from zarrfs.store.remote.ranges.window import Window
from zarrfs.store.remote.requests import (
    BadReply,
    BrokenReply,
    ObjectChanged,
    RequestConfig,
    TooLarge,
)
from zarrfs.store.workers import cancel_when_abandoned, progress_reporter

_T = TypeVar("_T")


Part: TypeAlias = Any
"""Bytes as they arrive: a buffer with a length."""

Into: TypeAlias = Callable[[int], memoryview | None]
"""Maps the size of an object to a buffer for all of it, in which the wanted bytes take their place;
None: they are returned alone."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A part of an object, or the whole object if the service ignored the range.

    size : the object's size in bytes; None: known only once ``body`` has ended.
    start, stop : the part that ``body`` holds; ``stop`` is None if ``size`` is.
    describe : maps the object's size to its `ObjectInfo`.
    """

    start: int
    stop: int | None
    size: int | None
    describe: Callable[[int], ObjectInfo]
    body: AsyncIterator[Part]


class RangeNotSatisfiable(Exception):
    """The range starts at or beyond the object's end."""


class Service(Protocol):
    """One kind of service. Coroutines run on ``loop``; `FileNotFoundError` for a missing object."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    async def head(self, path: str) -> ObjectInfo: ...

    def get(self, path: str, wanted: ByteRange) -> Any:
        """An async context manager of a `Reply`; raises `RangeNotSatisfiable`."""
        ...

    def list_pages(self, path: str) -> AsyncIterator[list[str]]: ...

    def close(self) -> None: ...


class RangedReader:
    """A `Reader` on top of a `Service`.

    redact : removes secrets from texts.
    """

    def __init__(
        self, service: Service, config: RequestConfig, redact: Callable[[str], str]
    ) -> None:
        self._service = service
        self._config = config
        self._redact = redact
        # Until a service has honoured a range, the first request of an operation is sent alone:
        # several whole objects at once could fill the memory.
        self._honours_ranges = False
        self._window = Window(config.concurrency, config.most_concurrency)

    @property
    def requests_at_once(self) -> int:
        """The current limit of requests in flight, which `Window` adapts."""
        return self._window.limit

    def info(self, path: str) -> ObjectInfo:
        return self._run(self._head(path))

    def get(self, path: str, limit: int) -> Blob:
        return self._run(self._reading().whole(path, limit))

    def get_many(self, paths: Sequence[str], limit: int) -> Iterator[Blob | Exception]:
        """For each path, in order, the result of `get` or its exception; requests run together."""
        reading = self._reading()
        ended: SimpleQueue[tuple[int, Blob | Exception]] = SimpleQueue()

        async def one(number: int, path: str) -> None:
            found: Blob | Exception = TimeoutError("the read was cancelled")
            try:
                found = await reading.whole(path, limit)
            except Exception as error:  # noqa: BLE001 - returned as a result
                found = error
            finally:
                ended.put((number, found))

        async def everything() -> None:
            async with asyncio.TaskGroup() as group:
                for number, path in enumerate(paths):
                    group.create_task(one(number, path))

        running = asyncio.run_coroutine_threadsafe(everything(), self._service.loop)
        cancel_when_abandoned(running.cancel)
        found: dict[int, Blob | Exception] = {}
        try:
            for number in range(len(paths)):
                while number not in found:
                    which, result = ended.get()
                    found[which] = result
                yield found.pop(number)
        finally:
            running.cancel()

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        requests = self._requests(ranges)
        cap = self._config.max_unranged

        reading = self._reading()

        async def parts() -> list[Blob]:
            if not requests:
                return cut([], ranges, await self._head(path))
            pieces: list[Piece] = []
            info: ObjectInfo | None = None
            remaining = list(requests)
            if not self._honours_ranges:
                piece, info = await reading.fetch(path, remaining.pop(0), cap)
                pieces.append(piece)
                if len(piece.data) == info.size:
                    blobs = cut(pieces, ranges, info)
                    return [blob._replace(whole=piece.data) for blob in blobs]
            for piece, state in await reading.gather(path, remaining, cap):
                if info is not None:
                    reading.check_same(info, state)
                info = state
                pieces.append(piece)
            assert info is not None
            return cut(pieces, ranges, info)

        return self._run(parts())

    def list_dir(self, path: str) -> Iterator[str]:
        return self._entries(self._service.list_pages(path))

    def list_all(self, path: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        """See `Store.list_all`."""
        list_below = getattr(self._service, "list_below", None)
        return None if list_below is None else self._entries(list_below(path))

    def _entries(self, pages: AsyncIterator[list[_T]]) -> Iterator[_T]:
        async def next_page() -> list[_T] | None:
            async with asyncio.timeout(self._config.timeout_s):
                return await anext(pages, None)

        while (page := self._run(next_page())) is not None:
            yield from page

    def close(self) -> None:
        self._service.close()

    def _requests(self, ranges: Sequence[ByteRange]) -> list[ByteRange]:
        """The ranges to request while the object's size is unknown."""
        spans = [Span(r.offset, r.offset + r.length) for r in ranges if r.offset >= 0]
        merged = merge(spans, max_gap=self._config.max_gap, max_length=self._config.max_request)
        requests = [ByteRange(span.start, span.stop - span.start) for span in merged]
        from_end = max((-r.offset for r in ranges if r.offset < 0 and r.length > 0), default=0)
        if from_end:
            requests.append(ByteRange(-from_end, from_end))
        return requests

    async def _head(self, path: str) -> ObjectInfo:
        async with asyncio.timeout(self._config.timeout_s):
            return self._config.state(await self._service.head(path))

    def _reading(self) -> _Reading:
        repeats = Repeats(self._redact)
        return _Reading(
            self._service,
            self._config,
            self._window,
            progress_reporter(),
            self._ranges_seen,
            repeats,
        )

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        running = asyncio.run_coroutine_threadsafe(work, self._service.loop)
        # No caller would use its reply any more, and it would delay other requests.
        cancel_when_abandoned(running.cancel)
        return running.result()

    def _ranges_seen(self) -> None:
        self._honours_ranges = True


class _Reading:
    """One operation: its requests, as many in flight together as the window allows."""

    def __init__(
        self,
        service: Service,
        config: RequestConfig,
        window: Window,
        progress: Callable[[], None],
        ranges_seen: Callable[[], None],
        repeats: Repeats,
    ) -> None:
        self._repeats = repeats
        self._service = service
        self._config = config
        self._progress = progress
        self._ranges_seen = ranges_seen
        self._window = window

    async def whole(self, path: str, limit: int) -> Blob:
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
                buffer = memoryview(bytearray(size))
            return buffer

        # At least one byte: a range of no bytes is not valid.
        first, info = await self.fetch(path, ByteRange(0, max(1, min(limit, most))), limit, room)
        if info.size > limit:
            raise TooLarge(info.size, limit)
        if buffer is None:
            return Blob(first.data, info)
        spans = [
            Span(at, min(at + step, info.size)) for at in range(len(first.data), info.size, step)
        ]
        await self.fetch_all(path, spans, info, limit, buffer)
        return Blob(buffer.toreadonly(), info)

    async def fetch(
        self, path: str, wanted: ByteRange, cap: int, into: Into | None = None
    ) -> tuple[Piece, ObjectInfo]:
        """The part ``wanted``, or instead the whole object of at most ``cap`` bytes."""
        return await self._repeats.send(path, lambda: self._fetch(path, wanted, cap, into))

    async def _fetch(
        self, path: str, wanted: ByteRange, cap: int, into: Into | None
    ) -> tuple[Piece, ObjectInfo]:
        timeout_s, slowest = self._config.timeout_s, self._config.slowest
        async with self._window as window, asyncio.timeout(timeout_s) as timeout:
            now = asyncio.get_running_loop().time
            # The time limit for a reply that arrives in drops.
            most = now() + timeout_s

            def progress(count: int) -> None:
                nonlocal most
                most += count / slowest
                window.received(count)
                self._progress()
                timeout.reschedule(min(now() + timeout_s, most))

            try:
                async with self._service.get(path, wanted) as reply:
                    progress(0)
                    return await self._receive(reply, wanted, cap, into, progress)
            except RangeNotSatisfiable:
                info = self._config.state(await self._service.head(path))
                span = resolve(wanted, info.size)
                if span.stop > span.start:
                    # Most likely the object grew between the two requests: it is asked for anew.
                    raise ObjectChanged("the server refuses a range that it has") from None
                return Piece(span.start, b""), info
            except Exception as error:
                if is_busy(error):
                    window.busy()
                raise

    async def gather(
        self, path: str, requests: Sequence[ByteRange], cap: int
    ) -> list[tuple[Piece, ObjectInfo]]:
        """Run several `fetch` at once; the first failure cancels the others."""
        tasks = [asyncio.ensure_future(self.fetch(path, r, cap)) for r in requests]
        return await _all(tasks)

    async def fetch_all(
        self, path: str, spans: Sequence[Span], info: ObjectInfo, cap: int, buffer: memoryview
    ) -> None:
        """Fill the ``spans`` of ``buffer``, which is for all bytes; raises `ObjectChanged`."""

        def into(size: int) -> memoryview | None:
            return buffer if size == len(buffer) else None

        async def one(span: Span) -> None:
            wanted = ByteRange(span.start, span.stop - span.start)
            _, state = await self.fetch(path, wanted, cap, into)
            self.check_same(info, state)

        await _all([asyncio.ensure_future(one(span)) for span in spans])

    def check_same(self, first: ObjectInfo, second: ObjectInfo) -> None:
        """Raises `ObjectChanged` if two replies are not of the same state."""
        if first.size != second.size or first.generation != second.generation:
            raise ObjectChanged

    async def _receive(
        self,
        reply: Reply,
        wanted: ByteRange,
        cap: int,
        into: Into | None,
        progress: Callable[[int], None],
    ) -> tuple[Piece, ObjectInfo]:
        if reply.size is None or reply.stop is None:
            data = await _collect_unsized(reply, cap, progress)
            return Piece(0, data), self._config.state(reply.describe(len(data)))
        info = self._config.state(reply.describe(reply.size))
        asked = resolve(wanted, reply.size)
        if (reply.start, reply.stop) == (asked.start, asked.stop):
            if reply.stop - reply.start < reply.size:
                self._ranges_seen()
        elif (reply.start, reply.stop) != (0, reply.size):
            raise BadReply("the server sent other bytes than were asked for")
        elif reply.size > cap:
            raise TooLarge(reply.size, cap, " and the server ignores ranges")
        length = reply.stop - reply.start
        buffer = None if into is None else into(reply.size)
        target = None if buffer is None else buffer[reply.start : reply.stop]
        done = 0
        async for part in reply.body:
            if done + len(part) > length:
                raise BrokenReply("the server sent more bytes than it announced")
            if target is None and len(part) == length:
                # The part is the whole body, so it needs no copy.
                target = memoryview(part)
            else:
                if target is None:
                    target = memoryview(bytearray(length))
                target[done : done + len(part)] = part
            done += len(part)
            progress(len(part))
        if done != length:
            raise BrokenReply(f"the reply broke off after {done} of {length} bytes")
        return Piece(reply.start, b"" if target is None else target.toreadonly()), info


async def _collect_unsized(reply: Reply, cap: int, progress: Callable[[int], None]) -> bytes:
    data = bytearray()
    async for part in reply.body:
        if len(data) + len(part) > cap:
            raise TooLarge(None, cap)
        data += part
        progress(len(part))
    return bytes(data)


async def _all(tasks: Sequence[asyncio.Future[_T]]) -> list[_T]:
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # Until the tasks have ended, they may still write into a buffer of the caller.
        await asyncio.gather(*tasks, return_exceptions=True)
