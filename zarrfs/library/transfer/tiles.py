"""Cuts part of an array into boxes that each fit into memory, along its chunks."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, NamedTuple

from numpy.typing import NDArray

from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import GridAxis, Index, Shape
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Window

# The plan for a chunk takes memory too, however small the chunk is.
_MOST_CHUNKS = 1 << 14


class Run(NamedTuple):
    """``elements`` that lie together both in the file and in a tile's own memory."""

    in_file: int
    in_tile: int
    elements: int


class Tile(NamedTuple):
    """A box of a window; ``start`` and ``shape`` are relative to the window."""

    start: Index
    shape: Shape

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def slices(self) -> tuple[slice, ...]:
        """The tile as an index of an array that has the window's shape."""
        return tuple(slice(o, o + n) for o, n in zip(self.start, self.shape, strict=True))

    def runs(self, whole: Shape) -> Iterator[Run]:
        """Where its elements lie in a file of ``whole``, last axis fastest; in file order."""
        axis = len(whole)
        while axis and self.shape[axis - 1] == whole[axis - 1]:
            axis -= 1
        # Everything from here on is one run.
        axis = max(axis - 1, 0)
        strides = [math.prod(whole[i + 1 :]) for i in range(len(whole))]
        base = sum(o * s for o, s in zip(self.start, strides, strict=True))
        count = math.prod(self.shape[axis:])
        outer = product(*map(range, self.shape[:axis]))
        for number, index in enumerate(outer):
            into = sum(i * s for i, s in zip(index, strides, strict=False))
            yield Run(base + into, number * count, count)


@dataclass(frozen=True, slots=True)
class TilePlan:
    """How a window is cut.

    lengths : the most elements of a tile along each axis.
    cuts_chunks : whether a single chunk is larger than a tile may be, so that several tiles
        need it.
    """

    window: Window
    lengths: Shape
    cuts_chunks: bool

    @classmethod
    def make(cls, window: Window, most: int) -> TilePlan:
        """Tiles of at most ``most`` elements: as many of the last axes whole as possible,
        then several chunks of one axis, and one chunk of each axis before it.
        """
        if 0 in window.shape:
            return cls(window, window.shape, cuts_chunks=False)
        units = [min(n, a.longest) for n, a in zip(window.shape, window.grid.axes, strict=True)]
        if math.prod(units) <= most:
            return cls(window, tuple(grown(units, window, most)), cuts_chunks=False)
        strides = [math.prod(units[axis + 1 :]) for axis in range(len(units))]
        cut = (max(1, min(n, most // stride)) for n, stride in zip(units, strides, strict=True))
        return cls(window, tuple(cut), cuts_chunks=True)

    @classmethod
    def in_file_order(cls, window: Window, most: int) -> TilePlan:
        """The same for files without seeking: each tile is one run, and goes
        on where the one before it ends.
        """
        plan = cls.make(window, most)
        if plan.is_in_file_order or 0 in window.shape:
            return plan
        lengths = grown([1] * len(window.shape), window, most)
        return cls(window, tuple(lengths), cuts_chunks=True)

    @property
    def is_in_file_order(self) -> bool:
        """Whether the tiles one after another are the file."""
        axis = 0
        while axis < len(self.lengths) and self.lengths[axis] == 1:
            axis += 1
        return self.lengths[axis + 1 :] == self.window.shape[axis + 1 :]

    def __iter__(self) -> Iterator[Tile]:
        """The tiles in the order of their first elements in the file."""
        if self.window.elements:
            yield from self._tiles((), ())

    def _tiles(self, start: Index, shape: Shape) -> Iterator[Tile]:
        axis = len(start)
        window = self.window
        if axis == len(window.shape):
            yield Tile(start, shape)
            return
        low = window.origin[axis]
        high = low + window.shape[axis]
        for first, last in _segments(window.grid.axes[axis], low, high, self.lengths[axis]):
            yield from self._tiles((*start, first - low), (*shape, last - first))


def grown(units: Sequence[int], window: Window, most: int) -> list[int]:
    """Boxes of ``units``, made longer along the last axes up to ``most`` elements."""
    lengths = list(units)
    longest = [axis.longest for axis in window.grid.axes]
    for axis in reversed(range(len(lengths))):
        chunks = math.prod(-(-n // chunk) for n, chunk in zip(lengths, longest, strict=True))
        most_units = _MOST_CHUNKS // chunks * max(1, longest[axis] // lengths[axis])
        room = max(1, min(most // math.prod(lengths), most_units))
        lengths[axis] = min(window.shape[axis], lengths[axis] * room)
        if lengths[axis] < window.shape[axis]:
            break
    return lengths


def _segments(axis: GridAxis, low: int, high: int, longest: int) -> Iterator[tuple[int, int]]:
    """Cut ``low`` to ``high`` where chunks meet, or anywhere where one is too long."""
    while low < high:
        end = min(low + longest, high)
        last = axis.chunk_of(end - 1)
        if end < high and axis.origin(last) + axis.length(last) > end:
            # Back to where the chunk begins, unless it is longer than a tile may be.
            end = axis.origin(last) if axis.origin(last) > low else end
        yield low, end
        low = end


def fetch_tiles(
    elements: Elements,
    plan: Iterable[Tile],
    memory: Callable[[Tile], NDArray[Any]],
    ahead: int,
    *,
    keep: bool,
) -> Iterator[tuple[Tile, NDArray[Any]]]:
    """The tiles of ``plan`` one after another, each with its elements.

    memory : one-dimensional memory of a tile's elements, of the dtype of ``elements``. It
        may be used again for another tile as soon as the one after its own is asked for.
    ahead : how many tiles are read while one is being used.
    keep : whether the chunks should stay in the cache.

    Raises ChunkError. No memory is in use any more when this ends, however it does.
    """
    read = Elements.fill if keep else Elements.scan
    tiles = iter(plan)
    pending: deque[tuple[Tile, NDArray[Any], Future[ChunkError | None]]] = deque()
    try:
        while True:
            for tile in islice(tiles, ahead + 1 - len(pending)):
                values, error = memory(tile), Future[ChunkError | None]()
                read(elements.box(*tile), values, 0, tile.elements, error.set_result)
                pending.append((tile, values, error))
            if not pending:
                return
            tile, values, error = pending[0]
            if (failed := error.result()) is not None:
                raise failed
            pending.popleft()
            yield tile, values
    finally:
        for *_, error in pending:
            error.result()
