"""Any store, with a count of its requests and their duration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from threading import Lock
from typing import Any, TypeVar

from zarrfs.errors import StoreError
from zarrfs.store.base import (
    Blob,
    ByteRange,
    Data,
    Expected,
    ObjectInfo,
    Put,
    Store,
)
from zarrfs.store.wrappers.wrapper import StoreWrapper

T = TypeVar("T")

_SLOWEST = 8
# Seconds after which a slow key makes room for others.
_REMEMBERED_S = 600.0


class StoreTimes:
    """Counters for users. Adding to one counter is not atomic with reading the others.

    requests, failures : their number.
    read_bytes, written_bytes : of objects.
    seconds : the sum over all requests, of which several may have run at once.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.failures = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self.seconds = 0.0
        self._slowest: list[tuple[float, str, float]] = []
        # The shortest duration of a request that is recorded as slow.
        self._slow = 0.0
        self._lock = Lock()

    def measure(self, key: str, work: Callable[[], T]) -> T:
        """Return the result of ``work``, counted as one request for ``key``."""
        begun = time.monotonic()
        try:
            return work()
        except BaseException:
            self.failures += 1
            raise
        finally:
            self.took(key, time.monotonic() - begun)

    def took(self, key: str, seconds: float) -> None:
        """Count one request for ``key``."""
        self.requests += 1
        self.seconds += seconds
        if seconds > self._slow:
            self._remember(key, seconds)

    def add(
        self, requests: int, failures: int, read_bytes: int, written_bytes: int, seconds: float
    ) -> None:
        """Add counts that were measured elsewhere."""
        self.requests += requests
        self.failures += failures
        self.read_bytes += read_bytes
        self.written_bytes += written_bytes
        self.seconds += seconds

    def take(self) -> tuple[int, int, int, int, float]:
        """Return the counts, to be added elsewhere, and reset them."""
        taken = (
            self.requests, self.failures, self.read_bytes, self.written_bytes, self.seconds
        )  # fmt: skip
        self.requests = self.failures = self.read_bytes = self.written_bytes = 0
        self.seconds = 0.0
        return taken

    def snapshot(self) -> dict[str, Any]:
        """All counters as JSON, with the slowest requests of the last ten minutes."""
        with self._lock:
            self._forget_old()
            slowest = sorted(self._slowest, reverse=True)
        return {
            "requests": self.requests,
            "failures": self.failures,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "seconds": round(self.seconds, 6),
            "slowest": [
                {"key": key, "seconds": round(seconds, 6), "time": when}
                for seconds, key, when in slowest
            ],
        }

    def _remember(self, key: str, seconds: float) -> None:
        with self._lock:
            self._forget_old()
            # One entry for each key, so that a key that is always slow leaves room for others.
            for same in self._slowest:
                if same[1] == key:
                    if same[0] >= seconds:
                        return
                    self._slowest.remove(same)
                    break
            self._slowest.append((seconds, key, time.time()))
            if len(self._slowest) > _SLOWEST:
                self._slowest.remove(min(self._slowest, key=itemgetter(0)))
            full = len(self._slowest) == _SLOWEST
            self._slow = min(self._slowest, key=itemgetter(0))[0] if full else 0.0

    def _forget_old(self) -> None:
        since = time.time() - _REMEMBERED_S
        kept = [old for old in self._slowest if old[2] >= since]
        if len(kept) < len(self._slowest):
            self._slowest, self._slow = kept, 0.0


class TimedStore(StoreWrapper):
    """The store ``inner``, with its requests counted. Costs about a microsecond per request."""

    def __init__(self, inner: Store, times: StoreTimes) -> None:
        super().__init__(inner)
        self._times = times

    def get(self, key: str, *, limit: int) -> Blob | None:
        blob = self._times.measure(key, lambda: self._inner.get(key, limit=limit))
        if blob is not None:
            self._times.read_bytes += len(blob.data)
        return blob

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        """See `Store.get_many`; counts one request for each key."""
        times = self._times
        found = self._inner.get_many(keys, limit=limit)
        for key in keys:
            blob = times.measure(key, lambda: next(found))
            if isinstance(blob, Blob):
                times.read_bytes += len(blob.data)
            elif isinstance(blob, StoreError):
                times.failures += 1
            yield blob

    def may_exist(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Store.may_exist`. One request, however many directories it lists."""
        return self._times.measure(keys[0], lambda: self._inner.may_exist(keys)) if keys else keys

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        blobs = self._times.measure(key, lambda: self._inner.get_ranges(key, ranges))
        if blobs is not None:
            self._times.read_bytes += sum(len(blob.data) for blob in blobs)
        return blobs

    def info(self, key: str) -> ObjectInfo | None:
        return self._times.measure(key, lambda: self._inner.info(key))

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        info = self._times.measure(key, lambda: self._inner.put(key, parts, expected=expected))
        self._times.written_bytes += info.size
        return info

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        if len(puts) == 1:
            return super().put_many(puts)
        # The duration of each single request is unknown.
        begun = time.monotonic()
        results = self._inner.put_many(puts)
        seconds = time.monotonic() - begun
        stored = [info.size for info in results if isinstance(info, ObjectInfo)]
        self._times.add(len(puts), len(puts) - len(stored), 0, sum(stored), seconds)
        return results

    def delete(self, key: str, *, expected: Expected) -> None:
        self._times.measure(key, lambda: self._inner.delete(key, expected=expected))
