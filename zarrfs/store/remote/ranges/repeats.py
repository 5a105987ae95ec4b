"""Repeats single requests of an operation that takes several, so that no other one is sent again.

The operation's own limit decides: see `zarrfs.store.wrappers.retry.Retrier`, which hands it to the
worker thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from zarrfs.errors import StoreUnavailable
from zarrfs.store.remote.foreign_errors import converted
from zarrfs.store.workers import progress_reporter, repeat_rule

_T = TypeVar("_T")

# A longer pause is cut, so that the operation does not seem to make no progress.
_STEP_S = 1.0


class Repeats:
    """The requests of one operation. Made in the worker thread that runs it.

    redact : removes secrets from texts; see `zarrfs.store.redact`.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._progress = progress_reporter()
        self._rule = repeat_rule()

    async def send(self, path: str, request: Callable[[], Awaitable[_T]]) -> _T:
        """The result of ``request``, sent again after a failure that may pass.

        Raises the exception of the last attempt.
        """
        made = 0
        while True:
            try:
                return await request()
            except Exception as error:
                pause = self._pause(path, error, made)
                if pause is None:
                    raise
            made += 1
            await self._wait(pause)

    def send_here(self, path: str, request: Callable[[], _T]) -> _T:
        """The same for a request that blocks."""
        made = 0
        while True:
            try:
                return request()
            except Exception as error:
                pause = self._pause(path, error, made)
                if pause is None:
                    raise
            made += 1
            time.sleep(pause)

    def _pause(self, path: str, error: Exception, made: int) -> float | None:
        failure = converted(self._redact(path), path, error, redact=self._redact)
        return self._rule(failure, made) if isinstance(failure, StoreUnavailable) else None

    async def _wait(self, pause: float) -> None:
        self._progress()
        while pause > 0:
            await asyncio.sleep(min(pause, _STEP_S))
            pause -= _STEP_S
            self._progress()
