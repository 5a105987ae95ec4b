"""Threads that do jobs, and work that several of them do together."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition, Lock, Thread, current_thread

from zarrfs.errors import is_panic
from zarrfs.locks import Rank, ranked_lock

log = logging.getLogger(__name__)

# A thread without a job ends after this time.
IDLE_S = 10.0

_Job = tuple[Callable[[], None], Callable[[Exception], object] | None]


class ThreadPool:
    """Up to ``count`` threads that do jobs in the order of their arrival, urgent jobs first.

    A thread starts when a job comes and no thread sleeps. Threads are daemons, so a job that hangs
    does not keep the process from ending.

    Every cache miss passes through such threads, so a job wakes one thread only. A thread that
    found no job would take the interpreter from the thread that has one. The thread that went to
    sleep last is woken, because its memory is still in the processor's cache. More threads, other
    switch intervals of the interpreter, and threads tied to processors gained nothing.

    keeps : whether threads without a job stay, for jobs that come when the system has no more.
    """

    def __init__(self, count: int, name: str = "loader", *, keeps: bool = False) -> None:
        self.count = count
        self._name = name
        self._keeps = keeps
        self._lock = ranked_lock(Rank.THREADS)
        self._urgent: deque[_Job] = deque()
        self._ahead: deque[_Job] = deque()
        # One lock per sleeping thread, which the thread waits for; the last one fell asleep last.
        self._asleep: list[Lock] = []
        self._closed = False
        self._threads: set[Thread] = set()

    def submit(
        self,
        job: Callable[[], None],
        failed: Callable[[Exception], object] | None = None,
        *,
        ahead: bool = False,
    ) -> None:
        """Do ``job`` soon.

        failed : called with an exception of the job, for the readers that wait; None: none
            does, or the job answers them whatever happens.
        ahead : no caller waits for it yet, so it may come after urgent jobs.

        After `close` the job runs in the calling thread: there are no threads any more, and a
        caller may wait for the job. Raises RuntimeError if the system has no thread for it.
        """
        if self.begin(job, failed, ahead=ahead, wait=True) is None:
            if not self._closed:
                raise RuntimeError("can't start new thread")
            _perform(job, failed)

    def begin(
        self,
        job: Callable[[], None],
        failed: Callable[[Exception], object] | None = None,
        *,
        ahead: bool = False,
        wait: bool = False,
    ) -> bool | None:
        """Have a thread do ``job`` now; None if there is no thread for it.

        wait : whether the job may also wait for one of the threads there are. False is returned
            then.

        The other arguments are those of `submit`.
        """
        with self._lock:
            wake = self._asleep.pop() if self._asleep else None
            begins = wake is not None or self._start()
            taken = begins or (wait and bool(self._threads) and not self._closed)
            if taken:
                (self._ahead if ahead else self._urgent).append((job, failed))
        if wake is not None:
            wake.release()
        return begins if taken else None

    def close(self, timeout: float = 5.0) -> bool:
        """Stop after the queued jobs, and leave threads behind that hang after so many seconds.

        Returns whether all threads have ended, but the one that may call this in its job. May be
        called again.
        """
        with self._lock:
            self._closed = True
            asleep, self._asleep = self._asleep, []
            threads = self._threads - {current_thread()}
        for wake in asleep:
            wake.release()
        give_up = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, give_up - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _start(self) -> bool:
        """Start one more thread, if that may be and the system has it. With the lock held."""
        if self._closed or len(self._threads) >= self.count:
            return False
        name = f"{self._name}-{len(self._threads)}"
        thread = Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._threads.add(thread)
        return True

    def _run(self) -> None:
        wake = Lock()
        wake.acquire()
        while True:
            with self._lock:
                jobs = self._urgent or self._ahead
                job = jobs.popleft() if jobs else None
                if job is None:
                    if self._closed:
                        break
                    self._asleep.append(wake)
            if job is None:
                idle = -1 if self._keeps else IDLE_S
                if not wake.acquire(timeout=idle) and self._ends(wake):
                    break
                continue
            _perform(*job)
            # Memory that the job refers to must be freed while the thread waits.
            del job

    def _ends(self, wake: Lock) -> bool:
        """Whether a thread that has slept for long may end; else it has been woken meanwhile."""
        with self._lock:
            if wake in self._asleep:
                self._asleep.remove(wake)
                self._threads.discard(current_thread())
                return True
        wake.acquire()
        return False


def _perform(
    job: Callable[[], object], failed: Callable[[Exception], object] | None = None
) -> None:
    try:
        job()
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        log.exception("a job of a thread failed")
        if failed is not None:
            failure = error if isinstance(error, Exception) else RuntimeError(str(error))
            _perform(partial(failed, failure))


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
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001 - `run` raises it
                with self._changed:
                    self._error = self._error or error
                    self._next = self._count
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()


def share(
    threads: ThreadPool,
    helpers: int,
    work: Callable[[int], None],
    count: int,
    *,
    ahead: bool = True,
) -> None:
    """Do ``work`` with the help of other threads, if there are any; see `SharedWork.run`.

    ahead : whether urgent jobs of theirs come before it.
    """
    if count == 1:
        work(0)
        return
    shared = SharedWork(work, count)
    for _ in range(min(helpers, count - 1)):
        threads.begin(shared.help, ahead=ahead, wait=True)
    shared.run()
