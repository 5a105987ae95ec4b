"""Threads that fetch and decode."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread

from zarrfs.errors import is_panic
from zarrfs.locks import Rank, ranked_lock

log = logging.getLogger(__name__)

_Job = tuple[Callable[[], None], Callable[[Exception], object] | None]


class LoaderPool:
    """Up to ``count`` threads that run jobs in the order of their arrival, urgent jobs first.

    A thread starts when a job comes and no thread sleeps.

    Every cache miss passes through the pool, so a job wakes one thread only. A thread that found no
    job would take the interpreter from the thread that has one. The pool wakes the thread that went
    to sleep last, because its memory is still in the processor's cache. More threads, other switch
    intervals of the interpreter, and threads tied to processors gained nothing.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = ranked_lock(Rank.LOADERS)
        self._urgent: deque[_Job] = deque()
        self._ahead: deque[_Job] = deque()
        # One lock per sleeping thread, which the thread waits for; the last one fell asleep last.
        self._asleep: list[Lock] = []
        self._closed = False
        self._threads: list[Thread] = []

    def submit(
        self,
        job: Callable[[], None],
        failed: Callable[[Exception], object] | None = None,
        *,
        ahead: bool = False,
    ) -> None:
        """Run ``job`` soon.

        failed : called with an exception of the job, for the readers that wait; None: none
            does, or the job answers them whatever happens.
        ahead : no caller waits for it yet, so it may come after urgent jobs.

        After `close` the job runs in the calling thread: the pool has no threads any more, and a
        caller may wait for the job. Raises RuntimeError if the system has no thread for it.
        """
        wake = None
        with self._lock:
            closed = self._closed
            if not closed:
                if self._asleep:
                    wake = self._asleep.pop()
                elif len(self._threads) < self.count:
                    self._start()
                (self._ahead if ahead else self._urgent).append((job, failed))
        if wake is not None:
            wake.release()
        if closed:
            _perform(job, failed)

    def _start(self) -> None:
        """Start one more thread. With the lock held."""
        name = f"loader-{len(self._threads)}"
        thread = Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # Others will come to the job.
            if not self._threads:
                raise
        else:
            self._threads.append(thread)

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
            _perform(*job)
            # Memory that the job refers to must be freed while the thread waits.
            del job

    def close(self, timeout: float = 5.0) -> None:
        """Stop after the queued jobs, and leave threads behind that hang after so many seconds."""
        with self._lock:
            self._closed = True
            asleep, self._asleep = self._asleep, []
        for wake in asleep:
            wake.release()
        give_up = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, give_up - time.monotonic()))


def _perform(
    job: Callable[[], object], failed: Callable[[Exception], object] | None = None
) -> None:
    try:
        job()
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        log.exception("a loader job failed")
        if failed is not None:
            failure = error if isinstance(error, Exception) else RuntimeError(str(error))
            _perform(partial(failed, failure))
