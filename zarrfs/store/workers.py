"""Calls that are given up when they make no progress.

A thread that waits for a dead server cannot be stopped. So each call runs in a worker
thread of its own while the caller waits for it with a timeout, after which the worker
is abandoned: whatever it still returns is dropped. Abandoned workers are bounded in
number, and are daemon threads, so that they never keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

_T = TypeVar("_T")

_current = threading.local()


def progress_reporter() -> Callable[[], None]:
    """A function, for any thread, that starts the timeout of the call run here anew."""
    call: _Call[object] | None = getattr(_current, "call", None)
    return (lambda: None) if call is None else call.progress


class NoProgress(Exception):
    """The call made no progress for its timeout; it was abandoned."""


class TooManyAbandoned(Exception):
    """So many abandoned calls still hang that no other one is started."""


class WorkersClosed(Exception):
    """The call was not started, for the workers are closed."""


class _Call(Generic[_T]):
    def __init__(self, function: Callable[[], _T]) -> None:
        self.function = function
        self.progress_at = time.monotonic()
        self.done = threading.Event()
        self.abandoned = False
        self.result: _T | None = None
        self.error: BaseException | None = None

    def progress(self) -> None:
        self.progress_at = time.monotonic()


class Workers:
    """Threads that run calls for other threads.

    max_abandoned : so many calls may hang abandoned; beyond it none is started.

    Shared state: ``_idle``, ``_abandoned``, ``_closed`` and each call's ``abandoned``
    and ``done`` change under ``_lock`` only, so that a call is either finished or
    abandoned, never both.
    """

    def __init__(self, *, max_abandoned: int) -> None:
        self._max_abandoned = max_abandoned
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Call[object] | None]] = []
        self._abandoned = 0
        self._closed = False

    @property
    def abandoned(self) -> int:
        """How many abandoned calls still hang."""
        return self._abandoned

    def run(self, function: Callable[[], _T], timeout_s: float) -> _T:
        """What ``function`` returns or raises.

        Raises `NoProgress` where it neither ended nor reported progress for
        ``timeout_s`` seconds, `TooManyAbandoned`, or `WorkersClosed`.
        """
        call = _Call(function)
        with self._lock:
            if self._closed:
                raise WorkersClosed
            if self._abandoned >= self._max_abandoned:
                raise TooManyAbandoned
            queue = self._idle.pop() if self._idle else self._start()
        queue.put(call)  # type: ignore[arg-type]
        while not call.done.wait(max(0.0, call.progress_at + timeout_s - time.monotonic())):
            with self._lock:
                overdue = time.monotonic() - call.progress_at >= timeout_s
                if overdue and not call.done.is_set():
                    call.abandoned = True
                    self._abandoned += 1
                    raise NoProgress
        if call.error is not None:
            try:
                raise call.error
            finally:
                # The traceback holds this frame, which holds the error: a cycle.
                call.error = None
        return call.result  # type: ignore[return-value]

    def close(self) -> None:
        """Ends the idle threads now and the busy ones after their call. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for queue in idle:
            queue.put(None)

    def _start(self) -> SimpleQueue[_Call[object] | None]:
        queue: SimpleQueue[_Call[object] | None] = SimpleQueue()
        threading.Thread(target=self._serve, args=(queue,), daemon=True, name="store").start()
        return queue

    def _serve(self, queue: SimpleQueue[_Call[object] | None]) -> None:
        while (call := queue.get()) is not None:
            _current.call = call
            call.progress_at = time.monotonic()
            try:
                call.result = call.function()
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                call.error = error
            _current.call = None
            with self._lock:
                if call.abandoned:
                    self._abandoned -= 1
                    call.error = call.result = None
                call.done.set()
                closed = self._closed
                if not closed:
                    self._idle.append(queue)
            # What was returned must not live on until the next call comes.
            del call
            if closed:
                return
