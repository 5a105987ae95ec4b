"""Waiting on the event loop for what threads answer, without the loop where nothing else goes on.

Through the loop, an answer is a byte in a socket, a sleep from which the kernel has to wake this
process, three tasks and as many system calls: a quarter of the time of a read that has to decode
some small chunks. So the only one that waits sleeps for a moment himself, until he has his answer
or another task asks for something else.
"""

from __future__ import annotations

import logging
import os
import select
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import TypeVar

import trio

from zarrfs.fs.loop.loop_times import LoopTimes

T = TypeVar("T")

# Seconds for which the loop may be kept from what it does by the clock, and from tasks that wait
# for something else.
_PATIENCE = 8e-3


class Waiter:
    """A task that waits through the loop. Made by the loop."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self.ready = trio.Event()

    def wake(self) -> None:
        """Callable in any thread."""
        # The loop may have ended meanwhile.
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self.ready.set)


class Answers:
    """Who waits for threads on one event loop. Loop only, but for what answers.

    loop_times : how long the loop is held; sleeping here does not count.
    """

    def __init__(self) -> None:
        self.loop_times = LoopTimes()
        self._waiting = 0
        self._quick = True
        self._poll: select.poll | None = None
        self._bell = -1

    def watch(self, descriptor: int) -> None:
        """Sleep without the loop from now on, for as long as there is nothing to read there."""
        if self._poll is None:
            self._poll = select.poll()
            self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            # Not before every thread that may yet ring has let go of this: the number may then
            # be that of another file.
            weakref.finalize(self, os.close, self._bell).atexit = False
            self._poll.register(self._bell, select.POLLIN)
        self._poll.register(descriptor, select.POLLIN)

    def idle(self) -> bool:
        """Whether nobody waits."""
        return not self._waiting

    async def wait(self, ask: Callable[[Callable[[T], None]], object]) -> T:
        """The answer of a thread.

        ask : begins the work. It is given the function to call with the answer: once, in any
            thread, maybe at once.
        """
        answers: list[T] = []
        # Whom to wake through the loop; None while this task sleeps without it.
        waiter: Waiter | None = None

        def answer(data: T) -> None:
            answers.append(data)
            # A task that wakes for another reason looks for an answer after that.
            if waiter is None:
                os.eventfd_write(self._bell, 1)
            else:
                waiter.wake()

        begun = perf_counter()
        self._waiting += 1
        try:
            poll = self._poll if self._quick and self._waiting == 1 else None
            if poll is None:
                waiter = Waiter()
            ask(answer)
            if poll is not None:
                self._sleep(poll, answers, begun + _PATIENCE)
            if not answers:
                # An answer that comes before the next line rings in vain, but is there then.
                waiter = waiter or Waiter()
                if not answers:
                    await waiter.ready.wait()
        finally:
            self._waiting -= 1
        # Where answers take longer than that, sleeping for them is in vain.
        self._quick = perf_counter() - begun < _PATIENCE
        return answers[0]

    def _sleep(self, poll: select.poll, answers: list[T], end: float) -> None:
        """Return when there is an answer, something else to do, or it is late."""
        self.loop_times.end()
        try:
            while not answers and (left := end - perf_counter()) > 0:
                for descriptor, _ in poll.poll(left * 1e3):
                    if descriptor != self._bell:
                        return
                    # Maybe of an earlier answer, that was seen before it rang.
                    with suppress(BlockingIOError):
                        os.eventfd_read(self._bell)
        finally:
            self.loop_times.begin()


log = logging.getLogger(__name__)


class AfterReply:
    """Work that the loop does after a reply, while the program prepares its next one. Loop only.

    Handing the copy of a write to a thread takes several switches of the interpreter's lock, each
    of which wakes a thread. So copies that take less than that are done here: overwrites take a
    tenth less processor time.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._runs = False

    def begin(self) -> None:
        """From now on the loop calls `run` after each reply."""
        self._runs = True

    def add(self, work: Callable[[], None]) -> bool:
        """Have ``work`` called after the reply to this request; False if nobody calls `run`.

        work : takes a fraction of a millisecond. Nobody gets its errors, which are logged.
        """
        if self._runs:
            self._due.append(work)
        return self._runs

    def run(self) -> None:
        """A reply was sent."""
        while self._due:
            work = self._due.popleft()
            try:
                work()
            except Exception:  # it would end the mount
                log.exception("what was put off until a reply has failed")
