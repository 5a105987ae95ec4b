"""Threads that fetch and decode."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

log = logging.getLogger(__name__)


class LoaderPool:
    """``count`` threads that run jobs in the order they came, urgent ones first.

    Built of a plain queue and deques, because a pass through it is the price of every
    cache miss.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._waiting: SimpleQueue[bool] = SimpleQueue()
        self._urgent: deque[Callable[[], None]] = deque()
        self._ahead: deque[Callable[[], None]] = deque()
        self._threads = [
            Thread(target=self._run, name=f"loader-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Callable[[], None], *, ahead: bool = False) -> None:
        """Run ``job`` soon. It must handle its own errors.

        ahead : nobody waits for it yet, so it may come after what is urgent.
        """
        (self._ahead if ahead else self._urgent).append(job)
        self._waiting.put(True)

    def _run(self) -> None:
        # There is one True for each job, so one of the two has a job for whoever got it.
        while self._waiting.get():
            try:
                job = self._urgent.popleft()
            except IndexError:
                job = self._ahead.popleft()
            try:
                job()
            except Exception:
                log.exception("a loader job failed")
            # While the thread waits, memory that the job refers to must be free.
            del job

    def close(self, timeout: float = 5.0) -> None:
        """Stop after the jobs that are queued. A thread that hangs is left behind."""
        for _ in self._threads:
            self._waiting.put(False)
        for thread in self._threads:
            thread.join(timeout)
