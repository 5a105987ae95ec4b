"""Threads that fetch and decode, and work that idle ones do together."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition, Lock, Thread

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
    except Exception as error:
        log.exception("a loader job failed")
        if failed is not None:
            _perform(partial(failed, error))


class SharedWork:
    """``work(i)`` for each ``i`` below ``count``, each once.

    The thread that calls `run` does all work that no helper has taken, and waits for the helpers
    that have begun. It waits for no other thread.

    Shared state, under ``_changed``: all attributes.
    """

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        self._work: Callable[[int], None] | None = work
        self._count = count
        self._next = 0
        self._busy = 0
        self._error: BaseException | None = None
        self._changed = Condition()

    def run(self) -> None:
        """Returns when all work is done. Raises the first failure; the rest is not begun then."""
        self.help()
        with self._changed:
            while self._busy:
                self._changed.wait()
            # Helpers that come too late must not keep the objects that the work refers to.
            self._work = None
        if self._error is not None:
            raise self._error

    def help(self) -> None:
        """Do work that no other thread has taken. Raises nothing."""
        while True:
            with self._changed:
                work, number = self._work, self._next
                if work is None or number >= self._count:
                    return
                self._next += 1
                self._busy += 1
            error: BaseException | None = None
            try:
                work(number)
            except BaseException as failure:  # noqa: BLE001 - `run` raises it
                error = failure
            with self._changed:
                self._busy -= 1
                if error is not None:
                    self._error = self._error or error
                    self._next = self._count
                self._changed.notify_all()


def share(pool: LoaderPool, helpers: int, work: Callable[[int], None], count: int) -> None:
    """Do ``work`` with the help of idle threads of ``pool``; see `SharedWork.run`."""
    if count == 1:
        work(0)
        return
    shared = SharedWork(work, count)
    for _ in range(min(helpers, count - 1)):
        pool.submit(shared.help, ahead=True)
    shared.run()
