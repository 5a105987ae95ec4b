"""How far away the server is, what goes wrong on the way, and what went over it."""

import asyncio
import enum
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_STEP = 64 << 10


@dataclass(frozen=True)
class Link:
    """
    latency_s : added to each request, and once more to the first one of a connection.
    bandwidth : bytes a second of one connection, in each direction; 0: as many as it can.
    """

    latency_s: float = 0.0
    bandwidth: float = 0.0


class Fault(enum.Enum):
    """What goes wrong with one request."""

    BUSY = "it is refused with 503"
    DROP = "the connection breaks before it is done"
    LOST = "it is done, and the connection breaks before the reply"
    TORN = "the connection breaks after half of the reply"
    HANG = "it is never answered"
    DRIP = "the reply's body comes at a byte a second"


def random_faults(seed: int, *, busy: float, drop: float) -> Callable[[str, str], Fault | None]:
    """Of all requests ``busy`` are refused and ``drop`` break, half of these once they are done."""
    chance = random.Random(seed)

    def plan(_method: str, _target: str) -> Fault | None:
        number = chance.random()
        if number < busy:
            return Fault.BUSY
        if number < busy + drop:
            return chance.choice([Fault.DROP, Fault.LOST])
        return None

    return plan


def every(number: int) -> Callable[[str, str], Fault | None]:
    """One of so many requests is refused; 0: none."""
    numbers = itertools.count(1)

    def plan(_method: str, _target: str) -> Fault | None:
        return Fault.BUSY if number and not next(numbers) % number else None

    return plan


@dataclass
class Counts:
    """
    requests : by method and what was asked for: ``GET object``, ``GET list``, ….
    sent, received : bytes of bodies.
    most_in_flight : requests that were begun and not answered, at the worst moment.
    """

    requests: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    sent: int = 0
    received: int = 0
    most_in_flight: int = 0
    in_flight: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        """Requests of all kinds."""
        return self.requests.total()

    def begin(self, kind: str, asked: tuple[str, str, str]) -> None:
        with self.lock:
            self.requests[kind] += 1
            self.asked.append(asked)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self) -> None:
        with self.lock:
            self.in_flight -= 1

    def reset(self) -> None:
        """Count anew."""
        with self.lock:
            self.requests.clear()
            self.asked.clear()
            self.connections = self.sent = self.received = 0
            self.most_in_flight = self.in_flight

    def snapshot(self) -> dict[str, Any]:
        """As JSON."""
        with self.lock:
            return {
                "requests": dict(self.requests),
                "connections": self.connections,
                "sent": self.sent,
                "received": self.received,
                "most_in_flight": self.most_in_flight,
            }


class Pace:
    """Bytes of one direction of a connection, no faster than ``bandwidth``."""

    def __init__(self, bandwidth: float) -> None:
        self._bandwidth = bandwidth
        self._free_at = 0.0

    async def passed(self, count: int) -> None:
        """Wait until so many more bytes may have passed."""
        if not self._bandwidth:
            return
        now = time.monotonic()
        self._free_at = max(now, self._free_at) + count / self._bandwidth
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


async def send(writer: asyncio.StreamWriter, data: memoryview, pace: Pace) -> None:
    """Send a body over the link."""
    for at in range(0, len(data), _STEP):
        part = data[at : at + _STEP]
        await pace.passed(len(part))
        writer.write(part)
        await writer.drain()
