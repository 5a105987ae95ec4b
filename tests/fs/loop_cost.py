"""What the event loop does between two moments at which it can take requests, in counts.

A clock would measure the machine and its other users. So the calls that the loop makes are
counted, and the bytes that it copies where the file system copies elements.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import trio

from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.format import copying
from zarrfs.views.elements.elements import Elements

# Seconds of a slow processor for a call, with what it does, and for a byte that is copied.
A_CALL = 0.5e-6
A_BYTE = 1 / 1e9

_COPIES: dict[CodeType, Callable[[dict[str, Any]], int]] = {
    copying.copy_elements.__code__: lambda frame: frame["part"].nbytes,
    Elements._copy.__code__: lambda frame: frame["row"].target.nbytes,
    TileChanges._write.__code__: lambda frame: frame["values"].nbytes,
    TileChanges.over.__code__: lambda frame: frame["base"].nbytes,
    TileChanges._own_memory.__code__: lambda frame: frame["self"].copies_to_change(),
    Gathering._scatter.__code__: lambda frame: frame["self"].nbytes,
}
"""Bytes that a call of each of these may copy at most, by its arguments."""


class LoopCost(trio.abc.Instrument):
    """Counts on the loop that it is added to, from one wait of that loop to the next.

    longest : seconds that the most expensive stretch would take.
    stretches : how many there were.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.stretches = 0
        self._longest_calls: dict[str, int] = {}
        self._calls = self._bytes = 0
        self._names: dict[str, int] = {}

    def report(self) -> str:
        """Which functions the most expensive stretch called most often."""
        most = sorted(self._longest_calls.items(), key=lambda each: -each[1])[:20]
        return ", ".join(f"{count} {name}" for name, count in most)

    def after_io_wait(self, timeout: float) -> None:
        self._calls = self._bytes = 0
        self._names = {}
        sys.setprofile(self._count)

    def before_io_wait(self, timeout: float) -> None:
        sys.setprofile(None)
        cost = self._calls * A_CALL + self._bytes * A_BYTE
        self.stretches += 1
        if cost > self.longest:
            self.longest, self._longest_calls = cost, self._names

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "c_call"):
            return
        self._calls += 1
        if event == "call":
            name = frame.f_code.co_qualname
            self._names[name] = self._names.get(name, 0) + 1
            if (size := _COPIES.get(frame.f_code)) is not None:
                self._bytes += size(frame.f_locals)
