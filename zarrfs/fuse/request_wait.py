"""Waiting for the kernel's next request, without sleeping where it comes at once.

pyfuse3 goes to the event loop for each request: two tasks, two system calls and a sleep, from
which the kernel has to wake this process. That is three quarters of the time of a small read.
A program that reads at random asks again some microseconds after a reply. So a task that has just
replied looks for the next request for a moment before it returns to the loop. If the loop has
nothing else to do, the task sleeps a little longer for the request.
"""

from __future__ import annotations

import logging
import select
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import NamedTuple

import pyfuse3

from zarrfs.foreign import PYFUSE3_WAIT
from zarrfs.fs.loop.loop_times import LoopTimes

_log = logging.getLogger(__name__)

# Private to pyfuse3, whose tasks call it by this name.
_NAME = PYFUSE3_WAIT.path
_WAIT: Callable[[], Awaitable[bool]] | None = getattr(pyfuse3, _NAME, None)


class WaitConfig(NamedTuple):
    """How long to look for a request.

    patience : seconds. Where the last request came later than that after an answer, nobody
        looks for the next one.
    turn : seconds for which requests may be answered without letting others have the loop.
    rest : seconds to sleep until the next request comes, where nobody waits for anything else.
    lone_turn : as ``turn``, where nobody does.
    """

    patience: float = 30e-6
    turn: float = 1e-3
    rest: float = 1e-3
    lone_turn: float = 10e-3


class RequestWait:
    """Stands in for pyfuse3's own wait; used by the event loop alone.

    Requests are taken without a checkpoint after they were found to be there, and by
    the task that finds them first, so a task that the loop wakes looks again: reading
    what is not there would block the loop.
    """

    def __init__(
        self,
        descriptor: int,
        wait: Callable[[], Awaitable[bool]],
        config: WaitConfig,
        alone: Callable[[], bool] = lambda: False,
        times: LoopTimes | None = None,
        replied: Callable[[], object] = lambda: None,
    ) -> None:
        """
        alone : whether the loop has nothing to do but to wait for requests, and for times to come.
        descriptor : this process' end of the connection.
        wait : returns when there may be a request; False at the end.
        times : told when requests are looked for, and when not.
        replied : called before the next request is looked for.
        """
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        self._ready = poll.poll
        self._wait = wait
        self._alone = alone
        self._config = config
        self._times = LoopTimes() if times is None else times
        self._replied = replied
        self._quick = True
        self._answered = 0.0
        self._turn_began = 0.0

    async def __call__(self) -> bool:
        """Whether there is a request; False at the end."""
        self._replied()
        times = self._times
        times.end()
        self._answered = now = perf_counter()
        ready, config = self._ready, self._config
        alone = self._alone()
        if now - self._turn_began < (config.lone_turn if alone else config.turn):
            end = now + config.patience
            while self._quick and now < end:
                if ready(0):
                    times.begin()
                    return True
                now = perf_counter()
            if alone and ready(config.rest * 1e3):
                times.begin()
                self._woken(perf_counter())
                return True
        # Other tasks run until the loop looks for requests itself.
        times.begin()
        while await self._wait():
            if ready(0):
                self._turn_began = now = perf_counter()
                self._woken(now)
                return True
        return False

    def _woken(self, now: float) -> None:
        """A request came while this slept, which itself takes time."""
        self._quick = now - self._answered < 4 * self._config.patience


def install(
    descriptor: int,
    alone: Callable[[], bool],
    times: LoopTimes | None = None,
    replied: Callable[[], object] = lambda: None,
) -> bool:
    """Have pyfuse3 wait so for requests at ``descriptor``; False if nothing in it can be replaced.

    For the parameters see `RequestWait`.
    """
    if _WAIT is None:
        _log.info("this version of pyfuse3 waits for requests by itself, which is slower")
        return False
    setattr(pyfuse3, _NAME, RequestWait(descriptor, _WAIT, WaitConfig(), alone, times, replied))
    return True
