"""Clients that are asynchronous, for threads that wait for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, TypeVar

from zarrfs.store.remote.ranges.ranged_reader import Part, Reply
from zarrfs.store.workers import current_call

_T = TypeVar("_T")

# How often a waiting thread looks whether its operation was abandoned.
_LOOK_S = 1.0
# The parts of a body are collected for so long, or up to so many bytes, for one thread hop.
_COLLECT_S = 0.1
_COLLECT = 1 << 20
_CLOSE_S = 5.0


class OnLoop:
    """Runs coroutines on an event loop.

    timeout_s : seconds after which a coroutine is cancelled.
    """

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop], timeout_s: float) -> None:
        self._loop = loop
        self._timeout_s = timeout_s

    def run(
        self,
        work: Callable[[], Awaitable[_T]],
        timeout_s: float | None = None,
        *,
        progress: Callable[[], None] | None = None,
    ) -> _T:
        """The result of what ``work`` makes on the loop.

        progress : called while that takes its time. Default none.

        Raises `TimeoutError` after the time limit, or if the call was abandoned.
        """

        async def in_time() -> _T:
            async with asyncio.timeout(timeout_s or self._timeout_s):
                return await work()

        waiting = in_time()
        try:
            running = asyncio.run_coroutine_threadsafe(waiting, self._loop())
        except BaseException:
            waiting.close()
            raise
        while True:
            try:
                return running.result(_LOOK_S)
            except TimeoutError:
                if running.done():
                    return running.result()
                if current_call().abandoned:
                    running.cancel()
                    raise
                if progress is not None:
                    progress()

    def reply(self, request: AbstractAsyncContextManager[Reply]) -> Reply:
        """The reply of an asynchronous client, with a body for this thread."""
        found = self.run(request.__aenter__)
        return found._replace(body=_Body(self, request, aiter(found.body)))


class _Body:
    """The body of a reply, in larger parts."""

    def __init__(
        self,
        on_loop: OnLoop,
        request: AbstractAsyncContextManager[Reply],
        parts: AsyncIterator[Part],
    ) -> None:
        self._on_loop = on_loop
        self._request = request
        self._parts = parts

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        found: list[Any] = self._on_loop.run(self._collect)
        if not found:
            raise StopIteration
        return found[0] if len(found) == 1 else b"".join(found)

    async def _collect(self) -> list[Part]:
        found: list[Part] = []
        length, begun = 0, time.monotonic()
        while length < _COLLECT and time.monotonic() < begun + _COLLECT_S:
            if (part := await anext(self._parts, None)) is None:
                break
            found.append(part)
            length += len(part)
        return found

    def close(self) -> None:
        with suppress(TimeoutError):
            self._on_loop.run(partial(self._request.__aexit__, None, None, None), _CLOSE_S)
