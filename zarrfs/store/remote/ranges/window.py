"""Adapts how many requests to one service are in flight: more, as long as more are faster.

The best number is bandwidth times delay, which is unknown. So the number grows while the throughput
grows, and shrinks when the service says that it is busy.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from types import TracebackType
from typing import Self

# Cost of a request apart from its bytes, in bytes, so that requests without bytes count too.
_REQUEST = 16 << 10
# A larger number is kept only if it is faster by this factor.
_GAIN = 1.1
_LEAST = 4
# The number is reduced if more than one of so many requests in a round is refused.
_REFUSED = 4
# Rounds after which a larger number is tried again.
_REST = 16


class Window:
    """A context around each request. Belongs to one event loop, and is used on that loop only.

    first, most : requests in flight at the beginning, and at most.
    limit : most requests in flight now.
    """

    def __init__(self, first: int, most: int) -> None:
        self.limit = first
        self._most = most
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        # The current round: requests that have ended, their bytes, those refused, whether the
        # window was full all the time, and when the round began.
        self._ended = self._bytes = self._refused = 0
        self._full = False
        self._begun = time.monotonic()
        # The throughput with the previous number, and rounds left until a larger one is tried.
        self._before = 0.0
        self._rest = 0

    async def __aenter__(self) -> Self:
        while self._in_flight >= self.limit:
            self._full = True
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
        if not self._in_flight:
            self._begin_round()
        self._in_flight += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        self._in_flight -= 1
        self._ended += 1
        self._bytes += _REQUEST
        if self._ended >= self.limit:
            self._end_round()
        self._wake()

    def received(self, count: int) -> None:
        """Count ``count`` received bytes."""
        self._bytes += count

    def busy(self) -> None:
        """Count a request that the service refused as one too many.

        If it refuses many of them, the number is reduced. It is not after single ones, because
        some services refuse a few requests however many there are.
        """
        self._refused += 1
        if self._refused * _REFUSED <= self.limit:
            return
        self.limit = max(_LEAST, self.limit // 2)
        self._rest = _REST
        self._begin_round()

    def _wake(self) -> None:
        free = self.limit - self._in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def _begin_round(self) -> None:
        self._ended = self._bytes = self._refused = 0
        self._full = False
        self._begun = time.monotonic()

    def _end_round(self) -> None:
        took = max(time.monotonic() - self._begun, 1e-6)
        rate = self._bytes / took
        if self._full:
            if self._rest:
                self._rest -= 1
                self._before = max(self._before, rate) if self._rest else rate / _GAIN
            elif rate >= _GAIN * self._before:
                self._before = rate
                self.limit = min(2 * self.limit, self._most)
            else:
                # The smaller number was as fast.
                self.limit = max(_LEAST, self.limit // 2)
                self._rest = _REST
        self._begin_round()
