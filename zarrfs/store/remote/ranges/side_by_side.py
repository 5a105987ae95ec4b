"""Sends the requests of an operation side by side, and repeats each alone.

A client that blocks takes half the processor time of an asynchronous one, so each request in flight
has a thread. The operation's own limit decides whether to repeat a request: see
`zarrfs.store.wrappers.retry.Retrier`, which hands it to the worker thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from zarrfs.errors import StoreUnavailable
from zarrfs.store.remote.foreign_errors import converted
from zarrfs.store.workers import current_call, part_of_call
from zarrfs.threads import ThreadPool

_T = TypeVar("_T")

# Waits are cut into steps, after which an operation reports progress or notices its end.
_STEP_S = 1.0


class SideBySide(Generic[_T]):
    """Requests of one operation. Made in the worker thread that runs it.

    paths : that of each request, for messages.
    send : sends the request of a number, in any thread.
    redact : removes secrets from texts.

    Shared state, under ``_lock``: ``_begun``, how many requests were sent; ``_repeats``, when which
    ones are sent again, and how often they were sent; ``_stopped``, whether no request is sent any
    more. Each request that was sent and is not in ``_repeats`` comes to ``_ended`` once.
    """

    def __init__(
        self,
        threads: ThreadPool,
        paths: Sequence[str],
        send: Callable[[int], _T],
        redact: Callable[[str], str],
    ) -> None:
        self._threads = threads
        self._paths = paths
        self._send = send
        self._redact = redact
        self._call = current_call()
        self._lock = threading.Lock()
        self._begun = 0
        self._repeats: list[tuple[float, int, int]] = []
        self._stopped = False
        self._ended: SimpleQueue[tuple[int, _T | Exception]] = SimpleQueue()

    def in_order(self) -> Iterator[_T | Exception]:
        """The result of each request, or the exception of its last attempt."""
        count = len(self._paths)
        # This thread hands over results. It sends requests only if others are late.
        helped = count > 1 and self._have_help(count)
        found: dict[int, _T | Exception] = {}
        try:
            for number in range(count):
                while number not in found:
                    # A request that failed is sent again here, too.
                    while not helped and self._ended.empty() and (taken := self._take()):
                        self._try(*taken)
                    which, result = self._next()
                    found[which] = result
                yield found.pop(number)
        finally:
            self._stop()

    def all(self) -> list[_T]:
        """The results; raises the first failure.

        In both cases no request is under way any more, which could write into the caller's buffer.
        """
        count = len(self._paths)
        if count > 1:
            self._have_help(count - 1)
        self._run()
        results: dict[int, _T] = {}
        failure: Exception | None = None
        ended = 0
        while ended < (count if failure is None else self._stop()):
            try:
                which, result = self._next()
            except TimeoutError as error:
                failure = failure or error
                continue
            ended += 1
            if isinstance(result, Exception):
                failure = failure or result
            else:
                results[which] = result
        if failure is not None:
            raise failure
        return [results[number] for number in range(count)]

    def _have_help(self, helpers: int) -> bool:
        """Have other threads send requests, too; returns whether one of them begins now."""
        run = part_of_call(self._run)
        begins = False
        for _ in range(min(helpers, self._threads.count)):
            begins |= bool(self._threads.begin(run, wait=True))
        return begins

    def _next(self) -> tuple[int, _T | Exception]:
        """A request that has ended; raises `TimeoutError` if the operation was abandoned."""
        while True:
            try:
                return self._ended.get(timeout=_STEP_S)
            except Empty:
                if self._call.abandoned and not self._stopped:
                    raise TimeoutError("the operation was abandoned") from None

    def _stop(self) -> int:
        """Send no further request; returns how many have ended or will."""
        with self._lock:
            self._stopped = True
            return self._begun - len(self._repeats)

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            self._try(*taken)

    def _take(self) -> tuple[int, int] | None:
        """A request to be sent now, and how often it was sent; None if there is none left."""
        while not self._call.abandoned:
            with self._lock:
                if self._stopped:
                    break
                wait = self._repeats[0][0] - time.monotonic() if self._repeats else None
                if wait is not None and wait <= 0:
                    _, number, made = heappop(self._repeats)
                    return number, made
                if self._begun < len(self._paths):
                    self._begun += 1
                    return self._begun - 1, 0
                if wait is None:
                    break
            time.sleep(min(wait, _STEP_S))
            self._call.progress()
        return None

    def _try(self, number: int, made: int) -> None:
        result: _T | Exception
        try:
            result = self._send(number)
        except Exception as error:  # noqa: BLE001 - the operation raises or returns it
            pause, path = None, self._paths[number]
            failure = converted(self._redact(path), path, error, redact=self._redact)
            if isinstance(failure, StoreUnavailable):
                pause = self._call.rule(failure, made)
            with self._lock:
                if pause is not None and not self._stopped:
                    heappush(self._repeats, (time.monotonic() + pause, number, made + 1))
                    return
            result = error
        except BaseException as error:  # noqa: BLE001 - a panic of a package written in Rust
            result = RuntimeError(str(error))
        self._call.progress()
        self._ended.put((number, result))
