"""Bytes of shards that came along with what was wanted, kept for who wants them next.

A scan goes through a shard in several passes, and in many shards the inner chunks of one pass
do not lie together. From a store that is a round trip away the next pass's chunks come along
for one request instead of many, and are wanted soon: so each stored byte is fetched once.
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
# All that lies between is fetched where that is at most so many times what is wanted.
_COVER = 3


@dataclass(slots=True)
class _Piece:
    """
    start : its place in the object.
    left : bytes that nobody has had yet.
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
    """Kept by object and its state; those of the object used least recently go first.

    room : tells how many bytes may be kept now.

    Shared state, under ``_lock``: ``_objects``, ``_size``, the bytes of all pieces, and
    ``_fetching``, who fetches from an object and how many wait for that.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._lock = Lock()
        self._objects: OrderedDict[tuple[object, ...], _Object] = OrderedDict()
        self._size = 0
        self._fetching: dict[tuple[object, ...], tuple[Lock, int]] = {}

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    @property
    def room(self) -> int:
        """Bytes that may be held."""
        return self._room()

    @contextmanager
    def fetching(self, name: tuple[object, ...]) -> Iterator[None]:
        """One at a time for each object: what one fetches, the next one may find."""
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
        """The bytes of each span, where they are kept; all of them are wanted once."""
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
        """Keep what was fetched from ``start`` on, of which ``used`` bytes were wanted."""
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
        """Let go of what there is no room for any more."""
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
    """What to fetch for ``spans``, in order, from a store that is a round trip away.

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
