"""The boxes of an array as files, for the bytes of a `Tiling`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView
from zarrfs.views.tiles.course import Course
from zarrfs.views.tiles.gathered import Piece
from zarrfs.views.tiles.tiling import LARGE, Tiling

_MOST_KEPT = 64
# Boxes that are decoded before the reader asks, and their share of the memory.
_MOST_AHEAD = 8
_AHEAD_SHARE = 4


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
        self._views: OrderedDict[int, FlatView] = OrderedDict()
        self._course = Course(tiling.counts)
        self._last = -1
        self._ahead: set[int] = set()
        room = array.cache.budget.total // (_AHEAD_SHARE * max(1, tiling.nbytes))
        self._most_ahead = min(room, _MOST_AHEAD) if tiling.nbytes >= LARGE else 0

    def pieces(self, offset: int, stop: int) -> Iterator[Piece]:
        tiling = self._tiling
        while offset < stop:
            number, into = divmod(offset - self.start, tiling.stride)
            box = self.start + number * tiling.stride
            end = min(stop, box + tiling.nbytes)
            if offset < end:
                yield Piece(self._view(number), into, end - box, offset)
            offset = box + tiling.stride

    def was_read(self, offset: int, stop: int) -> None:
        stride = self._tiling.stride
        for number in range((offset - self.start) // stride, -(-(stop - self.start) // stride)):
            if number != self._last and self._most_ahead:
                self._last = number
                course = self._course.follow(self._tiling.index(number), self._most_ahead)
                begun, self._ahead = self._ahead, set(map(self._tiling.number, course))
                for each in sorted(self._ahead - begun):
                    self._view(each).elements.load_ahead()

    def close(self) -> None:
        self._views.clear()

    def _view(self, number: int) -> FlatView:
        if (view := self._views.get(number)) is None:
            window = Window(self._grid, self._tiling.origin(number), self._tiling.shape)
            elements = Elements(self._array, window, FlatConfig())
            view = self._views[number] = FlatView(elements, gathers=False)
            if len(self._views) > _MOST_KEPT:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(number)
        return view
