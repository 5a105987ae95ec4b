"""Deadlines and retries around any store."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from zarrfs.errors import StoreError, StoreTimeout, StoreUnavailable
from zarrfs.store.base import Blob, ByteRange, Conditional, Data, Expected, ObjectInfo, Store
from zarrfs.store.local.orphaned_writes import OrphanedWrites
from zarrfs.store.workers import NoProgress, TooManyAbandoned, Workers, WorkersClosed
from zarrfs.store.wrappers.wrapper import StoreWrapper

_T = TypeVar("_T")

# Names fetched per hop into a worker thread: few at first, so that the first name
# comes soon, then enough to make the hop cheap.
_FIRST_BATCH = 1
_LAST_BATCH = 4096


class RetryConfig(NamedTuple):
    """How long to wait for a store, and how often to ask again.

    attempt_timeout_s : an attempt that has received nothing for so many seconds is
        given up. Default 30.
    deadline_s : so many seconds after an operation began, no further attempt is made
        and one that receives nothing is given up. Default 120.
    max_attempts : attempts of one operation, the first included. Default 8.
    first_pause_s, max_pause_s : bounds in seconds of the pause between attempts,
        which doubles and of which a random part is waited. Default 0.1 and 10.
    max_abandoned : a hanging call that cannot be cancelled keeps its thread; once so
        many do, operations fail at once instead of adding to them. Default 64.
    """

    attempt_timeout_s: float = 30.0
    deadline_s: float = 120.0
    max_attempts: int = 8
    first_pause_s: float = 0.1
    max_pause_s: float = 10.0
    max_abandoned: int = 64


class Retrier:
    """Runs calls by the rules of a `RetryConfig`; thread-safe.

    What is tried again: `StoreUnavailable`, and calls that make no progress. Every
    other error is passed on at once.
    """

    def __init__(self, config: RetryConfig) -> None:
        self._config = config
        self._workers = Workers(max_abandoned=config.max_abandoned)
        self._closing = threading.Event()

    def call(self, key: str, function: Callable[[], _T]) -> _T:
        """What ``function`` returns; it may run several times, even at once.

        Raises `StoreTimeout` when the deadline passes, and otherwise what the last
        attempt raised.
        """
        config = self._config
        give_up_at = time.monotonic() + config.deadline_s
        pause = config.first_pause_s
        for attempt in itertools.count(1):
            failure: StoreError
            try:
                timeout = min(config.attempt_timeout_s, give_up_at - time.monotonic())
                return self._workers.run(function, timeout)
            except StoreUnavailable as error:
                failure = error
            except NoProgress:
                failure = StoreTimeout(key, "the store does not answer")
            except TooManyAbandoned as error:
                raise StoreTimeout(
                    key, f"{config.max_abandoned} earlier requests still hang"
                ) from error
            except WorkersClosed as error:
                raise StoreError(key, "the store is closed") from error
            wait = random.uniform(pause / 2, pause)
            if time.monotonic() + wait >= give_up_at:
                raise StoreTimeout(
                    key, f"gave up after {config.deadline_s:g} s: {failure.reason}"
                ) from failure
            if attempt >= config.max_attempts:
                raise failure
            if self._closing.wait(wait):
                raise StoreError(key, "the store is closed") from failure
            pause = min(2 * pause, config.max_pause_s)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Wakes whoever waits to try again, with an error. Idempotent."""
        self._closing.set()
        self._workers.close()


class RetryStore(StoreWrapper):
    """``inner``, each operation with a deadline and tried again.

    An attempt to write that was given up may still be under way. Until it has ended, the
    same object is not written anew: it could arrive last and undo that.

    A listing has its deadline per batch of names and is tried again until its first
    names came; after that a failure is passed on.
    """

    def __init__(self, inner: Store, config: RetryConfig, retrier: Retrier | None = None) -> None:
        super().__init__(inner)
        self._retrier = retrier or Retrier(config)
        self._orphans = OrphanedWrites()

    @property
    def conditional(self) -> Conditional:
        return self._retrier.call("", lambda: self._inner.conditional)

    def get(self, key: str, *, limit: int) -> Blob | None:
        return self._retrier.call(key, lambda: self._inner.get(key, limit=limit))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._retrier.call(key, lambda: self._inner.get_ranges(key, ranges))

    def info(self, key: str) -> ObjectInfo | None:
        return self._retrier.call(key, lambda: self._inner.info(key))

    def list_dir(self, prefix: str) -> Iterator[str]:
        def begin() -> tuple[Iterator[str], list[str]]:
            names = iter(self._inner.list_dir(prefix))
            return names, list(itertools.islice(names, _FIRST_BATCH))

        names, batch = self._retrier.call(prefix, begin)
        size = _FIRST_BATCH
        while batch:
            yield from batch
            size = min(4 * size, _LAST_BATCH)
            batch = self._next_batch(prefix, names, size)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        def put() -> ObjectInfo:
            return self._inner.put(key, parts, expected=expected)

        with self._orphans.operation(key, put) as attempt:
            return self._retrier.call(key, attempt)

    def delete(self, key: str, *, expected: Expected) -> None:
        def delete() -> None:
            self._inner.delete(key, expected=expected)

        with self._orphans.operation(key, delete) as attempt:
            self._retrier.call(key, attempt)

    def leftovers(self) -> list[str]:
        return self._retrier.call("", self._inner.leftovers)

    def remove_leftovers(self) -> list[str]:
        return self._retrier.call("", self._inner.remove_leftovers)

    def free_space(self) -> tuple[int, int] | None:
        return self._retrier.call("", self._inner.free_space)

    def close(self) -> None:
        self._retrier.close()
        self._inner.close()

    def _next_batch(self, prefix: str, names: Iterator[str], size: int) -> list[str]:
        started = False

        def take() -> list[str]:
            nonlocal started
            if started:
                # The iterator is dead, or still stuck in the attempt before.
                raise StoreError(prefix, "the listing broke off")
            started = True
            return list(itertools.islice(names, size))

        return self._retrier.call(prefix, take)
