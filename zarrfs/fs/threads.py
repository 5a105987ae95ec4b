"""The way from the event loop to work that blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from zarrfs.cache.stats import Stats
from zarrfs.errors import StoreError, StoreListingUnsupported

T = TypeVar("T")

_THREADS = 32


class Threads:
    """Runs what asks the store in worker threads; counts what the store fails at."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._limiter = trio.CapacityLimiter(_THREADS)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of ``work``, done in a thread."""
        try:
            return await trio.to_thread.run_sync(
                work, limiter=self._limiter, abandon_on_cancel=True
            )
        except StoreListingUnsupported:
            raise
        except StoreError as error:
            self._stats.error(error.key, error.reason)
            raise
