"""Bytes of shards that were fetched along with wanted bytes, kept for the next read.

A scan goes through a shard in several passes. In many shards the inner chunks of one pass are not
adjacent. From a remote store, fetching the next pass's chunks along with them needs one request
instead of many, and the scan needs these chunks soon. So each stored byte is fetched once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Object:
    pieces: list[_Piece] = field(default_factory=list)

    def find(self, span: Span) -> _Piece | None:
        at = bisect_right(self.pieces, span.start, key=lambda piece: piece.start) - 1
        if at < 0:
            return None
        piece = self.pieces[at]
        return piece if span.stop <= piece.start + len(piece.data) else None


class Leftovers:
    """Kept by object and state; the least recently used object is dropped first.

    room : returns how many bytes may be kept now.

    Shared state, under ``_lock``: ``_objects``, ``_size``, the bytes of all pieces, and
    ``_fetching``, by object the lock of the thread that fetches, and the number of threads that
    have or await it.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._lock = Lock()
        self._objects: OrderedDict[tuple[object, ...], _Object] = OrderedDict()
        self._size = 0
        self._fetching: dict[tuple[object, ...], tuple[Lock, int]] = {}

    @property
    def size(self) -> int:
        """Bytes kept."""
        return self._size

    @property
    def room(self) -> int:
        """Bytes that may be kept."""
        return self._room()

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
            kept = self._objects.get(name)
            if kept is None:
                return [None] * len(spans)
            self._objects.move_to_end(name)
            found: list[memoryview | None] = []
            for start, stop in spans:
                piece = kept.find(Span(start, stop))
                if piece is None:
                    found.append(None)
                    continue
                found.append(piece.data[start - piece.start : stop - piece.start])
                piece.left -= stop - start
            self._remove(name, kept, [piece for piece in kept.pieces if piece.left <= 0])
            return found

    def keep(self, name: tuple[object, ...], start: int, data: memoryview, used: int) -> None:
        """Keep the bytes fetched from ``start`` on; ``used`` of them were wanted."""
        left = len(data) - used
        with self._lock:
            if left <= 0 or len(data) > self._room():
                return
            kept = self._objects.setdefault(name, _Object())
            self._objects.move_to_end(name)
            kept.pieces.append(_Piece(start, data, left))
            kept.pieces.sort(key=lambda piece: piece.start)
            self._size += len(data)
        self.shrink()

    def shrink(self) -> None:
        """Drop pieces that there is no room for any more."""
        with self._lock:
            room = self._room()
            while self._size > room and self._objects:
                _, kept = self._objects.popitem(last=False)
                self._size -= sum(len(piece.data) for piece in kept.pieces)

    def _remove(self, name: tuple[object, ...], kept: _Object, gone: Sequence[_Piece]) -> None:
        if not gone:
            return
        self._size -= sum(len(piece.data) for piece in gone)
        kept.pieces = [piece for piece in kept.pieces if piece.left > 0]
        if not kept.pieces:
            del self._objects[name]


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
