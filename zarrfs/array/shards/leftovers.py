"""Bytes of shards that were fetched along with wanted bytes, kept for the next read.

A scan goes through a shard in several passes. In many shards the inner chunks of one pass are not
adjacent. From a remote store, fetching the next pass's chunks along with them needs one request
instead of many, and the scan needs these chunks soon. So each stored byte is fetched once.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from threading import Lock
from time import monotonic

from zarrfs.locks import KeyedLocks
from zarrfs.store.ranges import Span, merge

_GAP = 64 << 10
_LONGEST = 8 << 20
# A request also fetches the bytes in between if the total is at most so many times those wanted.
_COVER = 3
# Seconds after which bytes that no read has taken make room for another object.
_STALE_S = 30.0


@dataclass(slots=True)
class _Piece:
    """
    start : its place in the object.
    left : bytes that no read has taken yet.
    """

    start: int
    data: memoryview
    left: int


_start = attrgetter("start")


class Leftovers:
    """Kept by object and state; the least recently used object is dropped first.

    room : returns how many bytes may be kept now.
    size : bytes kept.
    fetching : one thread at a time per object: the next thread may find the bytes that it needs.

    Shared state, under ``_lock``: ``size``; ``_objects``, the pieces in order; ``_used``, when each
    object was last used; ``_promised``, bytes that scans are fetching.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self.room = room
        self._lock = Lock()
        self._objects: OrderedDict[tuple[object, ...], list[_Piece]] = OrderedDict()
        self._used: dict[tuple[object, ...], float] = {}
        self._promised = 0
        self.size = 0
        self.fetching = KeyedLocks()

    def take(self, name: tuple[object, ...], spans: Sequence[Span]) -> list[memoryview | None]:
        """The bytes of each span, if they are kept; each byte is taken only once."""
        with self._lock:
            pieces = self._objects.get(name)
            if pieces is None:
                return [None] * len(spans)
            self._use(name)
            found: list[memoryview | None] = []
            for start, stop in spans:
                at = bisect_right(pieces, start, key=_start) - 1
                piece = pieces[max(0, at)]
                if at < 0 or stop > piece.start + len(piece.data):
                    found.append(None)
                    continue
                found.append(piece.data[start - piece.start : stop - piece.start])
                piece.left -= stop - start
            left = self._objects[name] = [piece for piece in pieces if piece.left > 0]
            self.size -= _bytes(pieces) - _bytes(left)
            if not left:
                del self._objects[name], self._used[name]
            return found

    @contextmanager
    def planned(
        self, name: tuple[object, ...], spans: Sequence[Span], size: int | None
    ) -> Iterator[list[Span]]:
        """The ranges of an object to fetch for ``spans``, in order, from a remote store.

        size : of the object, if all of it is wanted soon. Then all is fetched, if ``spans`` take
            several requests, and there is room for it beside what is kept of other objects.
        """
        near = merge(spans, max_gap=_GAP, max_length=_LONGEST)
        promised = 0
        if len(near) > 1:
            wanted = sum(span.length for span in near)
            covered = near[-1].stop - near[0].start
            with self._lock:
                if size is not None and name not in self._objects and size <= self._free():
                    near, promised = _all_of(size, spans), size
                elif covered <= min(_COVER * wanted, self.room()):
                    near = merge(spans, max_gap=covered, max_length=_LONGEST)
                self._promised += promised
        try:
            yield near
        finally:
            with self._lock:
                self._promised -= promised

    def keep(self, name: tuple[object, ...], start: int, data: memoryview, used: int) -> None:
        """Keep the bytes fetched from ``start`` on; ``used`` of them were wanted."""
        left = len(data) - used
        with self._lock:
            if left <= 0 or len(data) > self.room():
                return
            pieces = self._objects.setdefault(name, [])
            self._use(name)
            insort(pieces, _Piece(start, data, left), key=_start)
            self.size += len(data)
        self.shrink()

    def shrink(self) -> None:
        """Drop pieces that there is no room for any more."""
        with self._lock:
            room = self.room()
            while self.size > room and self._objects:
                name, pieces = self._objects.popitem(last=False)
                del self._used[name]
                self.size -= _bytes(pieces)

    def _use(self, name: tuple[object, ...]) -> None:
        """With the lock held."""
        self._objects.move_to_end(name)
        self._used[name] = monotonic()

    def _free(self) -> int:
        """Bytes for which there is room beside those that are still wanted. With the lock held."""
        since = monotonic() - _STALE_S
        stale = sum(_bytes(p) for name, p in self._objects.items() if self._used[name] < since)
        return self.room() - self.size + stale - self._promised


def _all_of(size: int, spans: Sequence[Span]) -> list[Span]:
    """Requests for all bytes of an object, each of ``spans`` in one of them."""
    edges = {0, size}
    for at in range(_LONGEST, size, _LONGEST):
        # Not within a span.
        edges.add(next((start for start, stop in spans if start < at < stop), at))
    return [Span(*pair) for pair in pairwise(sorted(edges))]


def _bytes(pieces: Sequence[_Piece]) -> int:
    return sum(len(piece.data) for piece in pieces)
