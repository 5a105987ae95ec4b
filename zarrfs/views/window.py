"""From a range of a flat file to the chunks it touches, and what to copy from each.

A window is a box of the array's index space, which may reach beyond the array; its
elements one after another, last axis fastest, are the file. A range of the file is
cut into boxes, each of which is contiguous in the file and a box in the array
(at most two per axis), and each box is cut where chunks meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product, starmap
from typing import NamedTuple

from zarrfs.cache.block import Run
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape

Slices = tuple[slice, ...]


class Box(NamedTuple):
    """Part of a window that is contiguous in the file.

    start, shape : in elements, relative to the window.
    position : of its first element in the file, in elements.
    """

    start: Index
    shape: Shape
    position: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Copy(NamedTuple):
    """What to copy from one chunk: ``source`` within the chunk, ``target`` within the box."""

    chunk: Index
    source: Slices
    target: Slices


def boxes(shape: Shape, start: int, stop: int) -> Iterator[Box]:
    """Cut the elements from ``start`` to ``stop`` of a file of ``shape`` into boxes, in order."""
    if start < stop:
        yield from _boxes(shape, start, stop, (), 0)


def _boxes(shape: Shape, start: int, stop: int, outer: Index, base: int) -> Iterator[Box]:
    """``start`` and ``stop`` are relative to ``base``, the position of ``outer``."""
    axis = len(outer)
    ones = (1,) * axis
    if axis == len(shape):
        yield Box(outer, ones, base)
        return
    inner = shape[axis + 1 :]
    stride = math.prod(inner)
    first, into_first = divmod(start, stride)
    last, into_last = divmod(stop, stride)
    if first == last:
        row = base + first * stride
        yield from _boxes(shape, into_first, into_last, (*outer, first), row)
        return
    if into_first:
        yield from _boxes(shape, into_first, stride, (*outer, first), base + first * stride)
        first += 1
    if first < last:
        zeros = (0,) * len(inner)
        yield Box((*outer, first, *zeros), (*ones, last - first, *inner), base + first * stride)
    if into_last:
        yield from _boxes(shape, 0, into_last, (*outer, last), base + last * stride)


class Window:
    """A box of ``shape`` from ``origin`` on, over a grid of chunks."""

    def __init__(self, grid: ChunkGrid, origin: Index, shape: Shape) -> None:
        self.grid = grid
        self.origin = origin
        self.shape = shape
        self.elements = math.prod(shape)
        self._extents = grid.shape

    @classmethod
    def whole(cls, grid: ChunkGrid) -> Window:
        """All of the array."""
        return cls(grid, (0,) * len(grid.axes), grid.shape)

    def overhangs(self, box: Box) -> bool:
        """Whether part of a box lies outside the array, where no chunk is copied from."""
        return any(
            o + s + n > extent
            for o, s, n, extent in zip(
                self.origin, box.start, box.shape, self._extents, strict=True
            )
        )

    def copies(self, box: Box) -> Iterable[Copy]:
        """What makes up a box, chunk by chunk."""
        if not box.shape:
            return (Copy((), (), ()),)
        # One C call for each chunk: small reads of wide arrays cross many chunks.
        return map(Copy._make, starmap(zip, product(*self.runs(box))))

    def runs(self, box: Box) -> Iterator[list[Run]]:
        """For each axis, what makes up a box along it."""
        return map(self.runs_along, range(len(box.shape)), box.start, box.shape)

    def runs_along(self, axis: int, start: int, length: int) -> list[Run]:
        """What makes up ``length`` elements from ``start`` on along one axis."""
        along = self.grid.axes[axis]
        low = self.origin[axis] + start
        high = min(low + length, along.extent)
        runs = []
        position = low
        while position < high:
            chunk = along.chunk_of(position)
            chunk_origin = along.origin(chunk)
            end = min(high, chunk_origin + along.length(chunk))
            runs.append(
                Run(
                    chunk,
                    slice(position - chunk_origin, end - chunk_origin),
                    slice(position - low, end - low),
                )
            )
            position = end
        return runs
