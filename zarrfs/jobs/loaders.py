"""Threads that fetch and decode."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread

from zarrfs.locks import Rank, ranked_lock

log = logging.getLogger(__name__)


class LoaderPool:
    """``count`` threads that run jobs in the order they came, urgent ones first.

    A pass through it is part of the price of every cache miss, so a job wakes one thread, and
    none that finds nothing to do: that would only want the interpreter from the one that has
    something. It is the thread that went to sleep last, whose memory is still hot.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = ranked_lock(Rank.LOADERS)
        self._urgent: deque[Callable[[], None]] = deque()
        self._ahead: deque[Callable[[], None]] = deque()
        # What each thread that sleeps waits for; who went to sleep last is the last.
        self._asleep: list[Lock] = []
        self._closed = False
        self._threads = [
            Thread(target=self._run, name=f"loader-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Callable[[], None], *, ahead: bool = False) -> None:
        """Run ``job`` soon. It must handle its own errors.

        ahead : nobody waits for it yet, so it may come after what is urgent.

        After `close` the job runs here: no thread would take it, and somebody may wait for it.
        """
        wake = None
        with self._lock:
            closed = self._closed
            if not closed:
                (self._ahead if ahead else self._urgent).append(job)
                wake = self._asleep.pop() if self._asleep else None
        if wake is not None:
            wake.release()
        if closed:
            _perform(job)

    def _run(self) -> None:
        wake = Lock()
        wake.acquire()
        while True:
            with self._lock:
                jobs = self._urgent or self._ahead
                job = jobs.popleft() if jobs else None
                if job is None:
                    if self._closed:
                        return
                    self._asleep.append(wake)
            if job is None:
                wake.acquire()
                continue
            _perform(job)
            # While the thread waits, memory that the job refers to must be free.
            del job

    def close(self, timeout: float = 5.0) -> None:
        """Stop after the jobs that are queued. A thread that hangs is left behind."""
        with self._lock:
            self._closed = True
            asleep, self._asleep = self._asleep, []
        for wake in asleep:
            wake.release()
        for thread in self._threads:
            thread.join(timeout)


def _perform(job: Callable[[], None]) -> None:
    try:
        job()
    except Exception:
        log.exception("a loader job failed")
