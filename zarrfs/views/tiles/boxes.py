"""The boxes of an array as files, for the bytes of a `Tiling`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import product

from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.format.chunk_grid import ChunkGrid, Index
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView
from zarrfs.views.tiles.course import Course
from zarrfs.views.tiles.gathered import Piece
from zarrfs.views.tiles.tiling import LARGE, Tiling

_MOST_KEPT = 64
# Boxes that are decoded before the reader asks: of so many bytes, which stay in the processor's
# cache and are memory that the kernel must clear once, within these limits.
_AHEAD_BYTES = 2 << 20
_LEAST_AHEAD, _MOST_AHEAD = 4, 32
# Those of a distant store, which are on the way at once; and their share of the memory.
_AHEAD_DISTANT = 8
_AHEAD_SHARE = 4
# Chunks of a box that the event loop asks for.
_MOST_CHUNKS = 64


class Boxes:
    """One reader's section of a file: boxes of an array over its ``grid`` of chunks.

    A box beyond the edge of the array has the fill value there; what is written there is dropped.
    """

    def __init__(self, array: CachedArray, grid: ChunkGrid, tiling: Tiling) -> None:
        self._array = array
        self._grid = grid
        self._tiling = tiling
        self.start = tiling.start
        self.stop = tiling.start + tiling.size
        # The last used ones: a program reads a box in several requests.
        self._view = lru_cache(_MOST_KEPT)(partial(_view, array, grid, tiling))
        self._course = Course(tiling.counts)
        self._last = -1
        # The chunk of the last request, if that was for all of it.
        self._all_read: Index | None = None
        self._ahead: set[int] = set()
        size = max(1, tiling.nbytes)
        most = min(max(_AHEAD_BYTES // size, _LEAST_AHEAD), _MOST_AHEAD)
        if not array.array.store.traits.near:
            most = _AHEAD_DISTANT
        room = array.cache.budget.total // (_AHEAD_SHARE * size)
        self._most_ahead = min(room, most) if tiling.nbytes >= LARGE else 0

    def pieces(self, offset: int, stop: int) -> Iterator[Piece]:
        tiling = self._tiling
        while offset < stop:
            number, into = divmod(offset - self.start, tiling.stride)
            box = self.start + number * tiling.stride
            end = min(stop, box + tiling.nbytes)
            if offset < end:
                yield Piece(self._view(number), into, end - box, offset)
            offset = box + tiling.stride

    def was_read(self, offset: int, stop: int, *, kept: bool) -> None:
        """See `Section`. Chunks of which the reader keeps all are forgotten.

        The next chunks are decoded to their memory, which the kernel need not clear.
        """
        tiling = self._tiling
        if self._all_read is not None:
            self._array.drop([self._all_read])
            self._all_read = None
        first, into = divmod(offset - self.start, tiling.stride)
        if kept and not into and stop - offset >= tiling.nbytes:
            self._all_read = self._view(first).elements.only
        for number in range(first, -(-(stop - self.start) // tiling.stride)):
            if number != self._last and self._most_ahead:
                self._last = number
                self._course.follow(tiling.index(number))
                expected = number in self._ahead
                self._ahead.discard(number)
                # Several at once, as each job has to wake a thread.
                if not expected or len(self._ahead) <= self._most_ahead // 2:
                    self._go_ahead()

    def _go_ahead(self) -> None:
        coming = map(self._tiling.number, self._course.ahead(self._most_ahead))
        begun, self._ahead = self._ahead, set(coming)
        chunks = [self._chunks(each) for each in sorted(self._ahead - begun)]
        self._array.load_ahead([index for each in chunks for index in each])

    def _chunks(self, number: int) -> Iterable[Index]:
        """The chunks of a box; none if they are too many to ask for on the event loop."""
        ranges = self._grid.ranges_in(self._tiling.origin(number), self._tiling.shape)
        return product(*ranges) if math.prod(map(len, ranges)) <= _MOST_CHUNKS else ()

    def close(self) -> None:
        self._view.cache_clear()


def _view(array: CachedArray, grid: ChunkGrid, tiling: Tiling, number: int) -> FlatView:
    """The bytes of the box with a number."""
    window = Window(grid, tiling.origin(number), tiling.shape)
    return FlatView(Elements(array, window, FlatConfig()), gathers=False)
