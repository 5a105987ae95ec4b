"""The way from the event loop to work that blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from zarrfs.cache.stats import Stats
from zarrfs.errors import StoreError, StoreListingUnsupported, without_panics
from zarrfs.fs.loop.answers import Answers

if TYPE_CHECKING:
    from outcome import Outcome

T = TypeVar("T")

_THREADS = 32


class Threads:
    """Runs what asks the store in worker threads; counts what the store fails at."""

    def __init__(self, stats: Stats, answers: Answers) -> None:
        self._stats = stats
        self._answers = answers
        self._limiter = trio.CapacityLimiter(_THREADS)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of ``work``, done in a thread."""
        try:
            return await self._run(work)
        except StoreListingUnsupported:
            raise
        except StoreError as error:
            self._stats.error(error.key, error.reason)
            raise

    async def _run(self, work: Callable[[], T]) -> T:
        borrower = object()
        try:
            self._limiter.acquire_on_behalf_of_nowait(borrower)
        except trio.WouldBlock:
            await self._limiter.acquire_on_behalf_of(borrower)
        try:
            ask = partial(trio.lowlevel.start_thread_soon, without_panics(work))
            result: Outcome[T] = await self._answers.wait(ask)
        finally:
            self._limiter.release_on_behalf_of(borrower)
        return result.unwrap()
