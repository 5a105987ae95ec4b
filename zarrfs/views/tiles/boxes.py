"""The boxes of an array as files, for the bytes of a `Tiling`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView
from zarrfs.views.tiles.gathered import Piece
from zarrfs.views.tiles.tiling import Tiling

_MOST_KEPT = 64


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

    def pieces(self, offset: int, stop: int) -> Iterator[Piece]:
        tiling = self._tiling
        while offset < stop:
            number, into = divmod(offset - self.start, tiling.stride)
            box = self.start + number * tiling.stride
            end = min(stop, box + tiling.nbytes)
            if offset < end:
                yield Piece(self._view(number), into, end - box, offset)
            offset = box + tiling.stride

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
