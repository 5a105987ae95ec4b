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
from operator import attrgetter
from threading import Lock

from zarrfs.store.ranges import Span, merge

_GAP = 64 << 10
_LONGEST = 8 << 20
# A request also fetches the bytes in between if the total is at most so many times those wanted.
_COVER = 3


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

    Shared state, under ``_lock``: ``size``; ``_objects``, the pieces in order; ``_fetching``, by
    object the lock of the thread that fetches, and the number of threads that have or await it.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self.room = room
        self._lock = Lock()
        self._objects: OrderedDict[tuple[object, ...], list[_Piece]] = OrderedDict()
        self.size = 0
        self._fetching: dict[tuple[object, ...], tuple[Lock, int]] = {}

    @contextmanager
    def fetching(self, name: tuple[object, ...]) -> Iterator[None]:
        """One thread at a time per object: the next thread may find the bytes that it needs."""
        with self._lock:
            turn, waiting = self._fetching.get(name, (Lock(), 0))
            self._fetching[name] = turn, waiting + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, waiting = self._fetching[name]
                if waiting > 1:
                    self._fetching[name] = turn, waiting - 1
                else:
                    del self._fetching[name]

    def take(self, name: tuple[object, ...], spans: Sequence[Span]) -> list[memoryview | None]:
        """The bytes of each span, if they are kept; each byte is taken only once."""
        with self._lock:
            pieces = self._objects.get(name)
            if pieces is None:
                return [None] * len(spans)
            self._objects.move_to_end(name)
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
                del self._objects[name]
            return found

    def keep(self, name: tuple[object, ...], start: int, data: memoryview, used: int) -> None:
        """Keep the bytes fetched from ``start`` on; ``used`` of them were wanted."""
        left = len(data) - used
        with self._lock:
            if left <= 0 or len(data) > self.room():
                return
            pieces = self._objects.setdefault(name, [])
            self._objects.move_to_end(name)
            insort(pieces, _Piece(start, data, left), key=_start)
            self.size += len(data)
        self.shrink()

    def shrink(self) -> None:
        """Drop pieces that there is no room for any more."""
        with self._lock:
            room = self.room()
            while self.size > room and self._objects:
                self.size -= _bytes(self._objects.popitem(last=False)[1])


def _bytes(pieces: Sequence[_Piece]) -> int:
    return sum(len(piece.data) for piece in pieces)


def requests(spans: Sequence[Span], room: int) -> list[Span]:
    """The ranges to fetch for ``spans``, in order, from a remote store.

    room : bytes of leftovers that can be kept.
    """
    near = merge(spans, max_gap=_GAP, max_length=_LONGEST)
    if len(near) == 1:
        return near
    wanted = sum(stop - start for start, stop in near)
    covered = near[-1].stop - near[0].start
    if covered > _COVER * wanted or covered > room:
        return near
    return merge(spans, max_gap=covered, max_length=_LONGEST)
