"""Deadlines and retries around any store."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from zarrfs.errors import StoreError, StoreTimeout, StoreUnavailable
from zarrfs.store.base import (
    Blob,
    Data,
    Expected,
    ObjectInfo,
    Store,
)
from zarrfs.store.workers import NoProgress, TooManyAbandoned, Workers, WorkersClosed
from zarrfs.store.wrappers.wrapper import StoreWrapper

log = logging.getLogger(__name__)

_T = TypeVar("_T")

# Names fetched per hop to a worker thread: few at first, so that the first name comes soon, then
# enough to make the hop cheap.
_FIRST_BATCH = 1
_LAST_BATCH = 4096
# Seconds after which an outage counts as over, if no request has noticed its end.
_FORGOTTEN_S = 300.0


class RetryConfig(NamedTuple):
    """How long to wait for a store. Only time limits the number of attempts.

    attempt_timeout_s : seconds after which an attempt that has received nothing is abandoned.
        Default 30.
    deadline_s : seconds after the beginning of an operation. Later no further attempt is made, and
        one that receives nothing is abandoned. Default 120.
    first_pause_s, max_pause_s : bounds in seconds of the pause between attempts. The pause doubles,
        and a random part of it is waited; or as long as the service asks for. Default 0.1 and 10.
    max_abandoned : a hanging call that cannot be cancelled keeps its thread. With so many hanging
        calls, operations fail at once instead of adding another one. Default 64.
    """

    attempt_timeout_s: float = 30.0
    deadline_s: float = 120.0
    first_pause_s: float = 0.1
    max_pause_s: float = 10.0
    max_abandoned: int = 64


class _Troubles:
    """Failures that were retried. The first failure is logged, and so is the recovery.

    Shared state, under ``_lock``: ``_since``, when the current trouble began, and ``_last``, its
    latest failure with the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._last: tuple[StoreError, float] | None = None

    def failed(self, failure: StoreError) -> None:
        """Record that an attempt failed in a way that may pass."""
        now = time.time()
        with self._lock:
            is_first = self._since is None
            if is_first:
                self._since = now
            self._last = failure.without_frames(), now
        if is_first:
            log.warning("the store is in trouble, and asked again: %s", failure)

    def over(self) -> None:
        """Record that the store answered a request."""
        # Checked without the lock first, because every request calls this.
        if self._since is None:
            return
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            log.info("the store answers again, after %.1f s", time.time() - since)

    def snapshot(self) -> dict[str, Any] | None:
        """The current trouble as JSON: since when, and its latest failure."""
        with self._lock:
            since, last = self._since, self._last
        if since is None or last is None or time.time() - last[1] > _FORGOTTEN_S:
            return None
        error, when = last
        return {"since": since, "time": when, "key": error.key, "reason": error.reason}


class _Attempts:
    """The attempts of one operation, and of single requests in it: whether to make another one,
    and after which pause."""

    def __init__(self, config: RetryConfig, closing: threading.Event, troubles: _Troubles) -> None:
        self._config = config
        self._closing = closing
        self._troubles = troubles
        self._give_up_at = time.monotonic() + config.deadline_s
        self._made = 0
        self._passed = False
        self._reason: str | None = None

    @property
    def timeout_s(self) -> float:
        """Seconds for which the next attempt may receive nothing."""
        return min(self._config.attempt_timeout_s, self._give_up_at - time.monotonic())

    def failed(self, key: str, error: Exception) -> None:
        """Wait until the next attempt.

        Raises `StoreTimeout` if the deadline passes, and ``error`` itself, as a `StoreError`, if a
        retry cannot help.
        """
        failure = _failure(key, error)
        if not isinstance(failure, StoreUnavailable) and not isinstance(error, NoProgress):
            raise failure from (None if failure is error else error)
        wait = self.pause(failure, self._made)
        self._made += 1
        if wait is None and not self._closing.is_set():
            # The last attempt may have had too little time for an answer.
            reason = self._reason or failure.reason
            raise StoreTimeout(
                key, f"gave up after {self._config.deadline_s:g} s: {reason}"
            ) from failure
        if wait is None or self._closing.wait(wait):
            raise StoreError(key, "the store is closed") from failure

    def pause(self, failure: StoreError, made: int) -> float | None:
        """Seconds until the next attempt after ``failure``, the attempt number ``made``.

        None if it would come too late. Then no other attempt of the operation follows either.
        """
        config = self._config
        self._troubles.failed(failure)
        longest = min(config.first_pause_s * 2.0 ** min(made, 64), config.max_pause_s)
        wait = random.uniform(longest / 2, longest)
        if isinstance(failure, StoreUnavailable):
            wait = max(wait, failure.retry_after_s)
            self._reason = failure.reason
        if self._closing.is_set() or time.monotonic() + wait >= self._give_up_at:
            self._passed = True
        return None if self._passed else wait


def _failure(key: str, error: Exception) -> StoreError:
    """Convert the error of an attempt into that of the operation."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, NoProgress | TooManyAbandoned):
        return StoreTimeout(key, str(error))
    return StoreError(key, "the store is closed")


_GIVEN_UP = (NoProgress, TooManyAbandoned, WorkersClosed)


class Retrier:
    """Runs calls by the rules of a `RetryConfig`. Thread-safe.

    It retries after `StoreUnavailable`, and calls that make no progress. It passes on every other
    error at once. A function that sends several requests repeats each by itself, by the same rules
    (`zarrfs.store.workers.Call.rule`).

    troubles : records the failures that are retried.
    """

    def __init__(self, config: RetryConfig) -> None:
        self._config = config
        self._workers = Workers(max_abandoned=config.max_abandoned)
        self._closing = threading.Event()
        self.troubles = _Troubles()

    def call(self, key: str, function: Callable[[], _T]) -> _T:
        """The result of ``function``, which may run several times, even at once.

        Raises `StoreTimeout` if the deadline passes, and otherwise the error of the last attempt.
        """
        attempts = self._attempts()

        def rule(failure: StoreUnavailable, made: int) -> float | None:
            named = StoreUnavailable(key, failure.reason, failure.retry_after_s)
            return attempts.pause(named, made)

        while True:
            try:
                result = self._workers.run(function, attempts.timeout_s, rule)
            except (StoreUnavailable, *_GIVEN_UP) as error:
                attempts.failed(key, error)
            else:
                self.troubles.over()
                return result

    def call_many(
        self,
        keys: Sequence[str],
        begin: Callable[[Sequence[str]], Iterator[_T | StoreError]],
    ) -> Iterator[_T | StoreError]:
        """For each key, in order, the item that ``begin`` yields or the error of its last attempt.

        The keys that failed are retried together.
        """
        attempts = self._attempts()
        found: dict[int, _T | StoreError] = {}
        left, yielded = list(range(len(keys))), 0
        while left:
            again: dict[int, StoreError] = {}
            error: Exception = NoProgress("the store does not answer")
            waiting = iter(left)
            ask = partial(begin, [keys[number] for number in left])
            try:
                for item in self._workers.stream(ask, attempts.timeout_s, attempts.pause):
                    number = next(waiting)
                    if isinstance(item, StoreUnavailable):
                        again[number] = item.without_frames()
                        continue
                    found[number] = item
                    while yielded in found:
                        yield found.pop(yielded)
                        yielded += 1
            except _GIVEN_UP as failure:
                error = failure
            for number in waiting:
                again[number] = _failure(keys[number], error)
            left = list(again)
            if not left:
                self.troubles.over()
                break
            first = again[left[0]]
            try:
                attempts.failed(
                    keys[left[0]], first if isinstance(first, StoreUnavailable) else error
                )
            except StoreError as last:
                found.update((number, type(last)(keys[number], last.reason)) for number in left)
                break
        for number in range(yielded, len(keys)):
            yield found.pop(number)

    def _attempts(self) -> _Attempts:
        return _Attempts(self._config, self._closing, self.troubles)

    def give_up(self) -> None:
        """Fail all calls now, also those whose function still runs. Idempotent."""
        self._closing.set()
        self._workers.abandon_all()

    def close(self) -> None:
        """Fail all calls that wait for their next attempt. Idempotent."""
        self._closing.set()
        self._workers.close()


class OrphanedWrites:
    """Attempts that outlived their operation. No other write of their object begins.

    An attempt that made no progress is abandoned. It may still arrive after the next write, and
    would undo that.

    Shared state, under ``_lock``: ``_orphans`` counts them by key.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orphans = Counter[str]()

    @contextmanager
    def operation(self, key: str, write: Callable[[], _T]) -> Iterator[Callable[[], _T]]:
        """Return ``write`` in a form to be called once for each attempt of one operation.

        Attempts of one operation may overlap, because they write the same bytes. Each one
        raises `StoreUnavailable` while an orphan of an earlier operation is in flight.
        """
        running, ended = 0, False

        def attempt() -> _T:
            nonlocal running
            with self._lock:
                if self._orphans[key]:
                    raise StoreUnavailable(key, "an earlier write of it is still under way")
                running += 1
            try:
                return write()
            finally:
                with self._lock:
                    running -= 1
                    if ended:
                        self._orphans -= Counter((key,))

        try:
            yield attempt
        finally:
            with self._lock:
                ended = True
                if running:
                    self._orphans[key] += running


class RetryStore(StoreWrapper):
    """The store ``inner``, with a deadline and retries for each operation.

    An abandoned write may still be in flight. Until it has ended, the same object is not written
    again, because the abandoned write could arrive last and undo the later one.

    A listing has its deadline per batch of names. It is retried until its first names have come;
    a later failure is passed on.
    """

    def __init__(self, inner: Store, retrier: Retrier) -> None:
        super().__init__(inner)
        self._retrier = retrier
        self._orphans = OrphanedWrites()

    @property
    def trouble(self) -> Mapping[str, Any] | None:
        return self._retrier.troubles.snapshot()

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        return self._retrier.call(key, lambda: ask(self._inner, key))

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        return self._retrier.call_many(keys, lambda left: self._inner.get_many(left, limit=limit))

    def list_dir(self, prefix: str) -> Iterator[str]:
        return self._listing(prefix, lambda: self._inner.list_dir(prefix)) or iter(())

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        return self._listing(prefix, lambda: self._inner.list_all(prefix))

    def _listing(self, prefix: str, ask: Callable[[], Iterator[_T] | None]) -> Iterator[_T] | None:
        def begin() -> tuple[Iterator[_T], list[_T]] | None:
            if (listed := ask()) is None:
                return None
            entries = iter(listed)
            return entries, list(itertools.islice(entries, _FIRST_BATCH))

        if (begun := self._retrier.call(prefix, begin)) is None:
            return None
        return self._rest(prefix, *begun)

    def _rest(self, prefix: str, entries: Iterator[_T], batch: list[_T]) -> Iterator[_T]:
        size = _FIRST_BATCH
        while batch:
            yield from batch
            size = min(4 * size, _LAST_BATCH)
            batch = self._next_batch(prefix, entries, size)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        put = partial(self._inner.put, key, parts, expected=expected)
        with self._orphans.operation(key, put) as attempt:
            return self._retrier.call(key, attempt)

    def delete(self, key: str, *, expected: Expected) -> None:
        delete = partial(self._inner.delete, key, expected=expected)
        with self._orphans.operation(key, delete) as attempt:
            self._retrier.call(key, attempt)

    def give_up(self) -> None:
        self._retrier.give_up()

    def close(self) -> None:
        self._retrier.close()
        self._inner.close()

    def _next_batch(self, prefix: str, names: Iterator[_T], size: int) -> list[_T]:
        started = False

        def take() -> list[_T]:
            nonlocal started
            if started:
                # The iterator is dead, or still stuck in the previous attempt.
                raise StoreError(prefix, "the listing broke off")
            started = True
            return list(itertools.islice(names, size))

        return self._retrier.call(prefix, take)
