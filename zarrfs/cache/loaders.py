"""Threads that fetch and decode."""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

log = logging.getLogger(__name__)


class LoaderPool:
    """``count`` threads that run jobs in the order they came.

    A plain queue, because the hop through it is the price of every cache miss.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._run, name=f"loader-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job`` soon. It must handle its own errors."""
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("a loader job failed")

    def close(self, timeout: float = 5.0) -> None:
        """Stop after the jobs that are queued. A thread that hangs is left behind."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout)
