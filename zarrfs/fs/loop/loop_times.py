"""How long the event loop is held by one thing, while every request that comes must wait."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import trio

LONG_SECONDS = 0.02


class LoopTimes(trio.abc.Instrument):
    """Measures from the moment the loop has something to do until it next looks for more.

    An instrument of the loop: `begin` after each wait of the loop, `end` before the next one. Code
    on the loop that looks for requests, or sleeps until one comes, calls `end` before and `begin`
    after that. Event loop only. A call takes some tenths of a microsecond.

    longest : seconds, since the mount began.
    long : how often it was more than `LONG_SECONDS`.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.longest = 0.0
        self.long = 0
        self._clock = clock
        # Infinite while the loop waits.
        self._begun = math.inf

    def begin(self) -> None:
        self._begun = self._clock()

    def end(self) -> None:
        held = self._clock() - self._begun
        self._begun = math.inf
        self.longest = max(self.longest, held)
        if held > LONG_SECONDS:
            self.long += 1

    def after_io_wait(self, timeout: float) -> None:
        self._begun = self._clock()

    def before_io_wait(self, timeout: float) -> None:
        self.end()

    def snapshot(self) -> dict[str, Any]:
        """As JSON."""
        return {"longest_held_seconds": round(self.longest, 6), "held_over_20_ms": self.long}
