"""Work that idle threads do together."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from zarrfs.jobs.loaders import LoaderPool


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
