"""Runs calls and abandons those that make no progress.

A thread that waits for a dead server cannot be stopped. So each call runs in a worker thread while
the caller waits for it with a timeout. After the timeout the caller abandons the worker, and its
late result is dropped. The number of abandoned workers is limited. Workers are daemon threads, so
they never keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from zarrfs.errors import StoreUnavailable
from zarrfs.threads import ThreadPool

_T = TypeVar("_T")

_current = threading.local()

# More calls than ever run at once.
_MANY = 1 << 20


def current_call() -> Call[Any]:
    """The call that this thread runs, or is part of; one without a caller in any other thread."""
    call: Call[Any] | None = getattr(_current, "call", None)
    return call or Call(_nothing, _never)


def part_of_call(work: Callable[[], None]) -> Callable[[], None]:
    """``work`` for another thread, in which it counts as part of the call in this worker."""
    call = current_call()

    def run() -> None:
        _current.call = call
        try:
            work()
        finally:
            _current.call = None

    return run


RepeatRule: TypeAlias = Callable[[StoreUnavailable, int], float | None]
"""Maps the failure of a request and the number of its failures before to the seconds after which
to send it again; None: not again."""


class NoProgress(Exception):
    """The call made no progress for its timeout; it was abandoned."""


class TooManyAbandoned(Exception):
    """Too many abandoned calls still hang, so no further call is started."""


class WorkersClosed(Exception):
    """The call was not started, because the workers are closed."""


class Call(Generic[_T]):
    """A call of a worker. Its function may use these, in any thread.

    rule : when to repeat single requests.
    abandoned : whether nobody waits for the result any more.
    cancel : called, in any thread, if the call is abandoned; to be replaced.
    """

    def __init__(self, function: Callable[[], _T], rule: RepeatRule) -> None:
        self.function = function
        self.rule = rule
        self.progress_at = time.monotonic()
        self.done = threading.Event()
        self.abandoned = False
        self.cancel: Callable[[], object] = _nothing
        self.wake: Callable[[], object] = _nothing
        self.result: _T | None = None
        self.error: BaseException | None = None

    def progress(self) -> None:
        """Restart the timeout."""
        self.progress_at = time.monotonic()

    def outcome(self) -> _T:
        """The result of the function, or its exception; only once, after the function has ended."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                # The traceback holds this frame, which holds the error: a cycle.
                self.error = None
        return self.result  # type: ignore[return-value]


def _nothing() -> None:
    pass


def _never(_failure: StoreUnavailable, _made: int) -> None:
    return None


class Workers:
    """Threads that run calls for other threads.

    max_abandoned : number of abandoned calls that may hang; beyond it no call is started.

    Shared state: ``_busy``, ``_abandoned``, ``_closed`` and each call's ``abandoned`` and ``done``
    change only under ``_lock``, so a call is either finished or abandoned, never both.
    """

    def __init__(self, *, max_abandoned: int) -> None:
        self._max_abandoned = max_abandoned
        self._lock = threading.Lock()
        self._threads = ThreadPool(_MANY, "store")
        self._busy: set[Call[Any]] = set()
        self._abandoned = 0
        self._closed = False

    def run(self, function: Callable[[], _T], timeout_s: float, rule: RepeatRule = _never) -> _T:
        """Run ``function`` in a worker; returns its result or raises its exception.

        rule : for requests of the function that it can repeat alone. Default: none is repeated.

        Raises `NoProgress` if the call neither ended nor reported progress for ``timeout_s``
        seconds, `TooManyAbandoned`, or `WorkersClosed`.
        """
        call = Call(function, rule)
        self._begin_call(call)
        while not call.done.wait(_left(call, timeout_s)):
            self._abandon_overdue(call, timeout_s)
        return call.outcome()

    def stream(
        self, begin: Callable[[], Iterator[_T]], timeout_s: float, rule: RepeatRule = _never
    ) -> Iterator[_T]:
        """Yield the items of the iterator that ``begin`` returns; one call consumes all of it.

        The iterator does not wait for the consumer, so all its items may be in memory. Raises as
        `run`, if no item came for ``timeout_s`` seconds, and the exceptions of the iterator.
        """
        items: SimpleQueue[tuple[_T] | None] = SimpleQueue()

        def produce() -> None:
            source = begin()
            try:
                for item in source:
                    items.put((item,))
                    call.progress()
                    if call.abandoned:
                        return
            finally:
                items.put(None)

        call: Call[None] = Call(produce, rule)
        call.wake = lambda: items.put(None)
        self._begin_call(call)
        ended = False
        try:
            while not ended:
                try:
                    item = items.get(timeout=_left(call, timeout_s))
                except Empty:
                    self._abandon_overdue(call, timeout_s)
                    continue
                ended = item is None
                if item is not None:
                    yield item[0]
        finally:
            # The function refers to its call. This cycle would keep items that were not consumed.
            call.function = _nothing
            if not ended:
                self._abandon(call)
        call.done.wait()
        call.outcome()

    def abandon_all(self) -> None:
        """Abandon every call, which raises `WorkersClosed` there, and close. Idempotent."""
        self.close()
        with self._lock:
            busy = [call for call in self._busy if not call.abandoned]
            for call in busy:
                call.abandoned = True
                call.error = WorkersClosed()
                self._abandoned += 1
                call.done.set()
        for call in busy:
            call.wake()
            call.cancel()

    def close(self) -> None:
        """End idle threads now, and busy threads after their call. Idempotent."""
        with self._lock:
            self._closed = True
        self._threads.close(0)

    def _begin_call(self, call: Call[_T]) -> None:
        with self._lock:
            if self._closed:
                raise WorkersClosed
            if self._abandoned >= self._max_abandoned:
                raise TooManyAbandoned(f"{self._abandoned} earlier requests still hang")
            if not self._threads.begin(partial(self._perform, call)):
                raise RuntimeError("can't start new thread")
            self._busy.add(call)

    def _abandon_overdue(self, call: Call[_T], timeout_s: float) -> None:
        """Raises `NoProgress` if the call has made no progress for ``timeout_s`` seconds."""
        if _left(call, timeout_s) == 0 and self._abandon(call):
            raise NoProgress("the store does not answer")

    def _abandon(self, call: Call[_T]) -> bool:
        """Abandon a call; False if it has ended."""
        with self._lock:
            if call.done.is_set() or call.abandoned:
                return False
            call.abandoned = True
            self._abandoned += 1
        call.cancel()
        return True

    def _perform(self, call: Call[_T]) -> None:
        _current.call = call
        call.progress()
        error: BaseException | None = None
        try:
            call.result = call.function()
        except BaseException as failure:  # noqa: BLE001 - the caller raises it
            error = failure
        _current.call = None
        with self._lock:
            self._busy.discard(call)
            if call.abandoned:
                self._abandoned -= 1
                call.result = None
            else:
                call.error = error
            call.cancel = _nothing
            call.done.set()


def _left(call: Call[_T], timeout_s: float) -> float:
    """Seconds until a call without further progress is abandoned."""
    return max(0.0, call.progress_at + timeout_s - time.monotonic())
