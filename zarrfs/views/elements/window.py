"""From a range of a flat file to the chunks that it touches, and the parts to copy.

A window is a box of the array's index space, which may reach beyond the array. Its elements one
after another, last axis fastest, are the file. A range of the file is divided into boxes, each of
which is contiguous in the file and a box in the array (at most two per axis). Each box is divided
at the borders of chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product, starmap
from typing import NamedTuple

from zarrfs.array.block import Run, RunRange, expanded, ranges
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.codec import Chunk

Slices = tuple[slice, ...]

# Chunks along an axis up to which the window remembers how it crosses them.
_MOST_KNOWN = 1024
# Chunks along an axis up to which listing them one by one is faster.
_FEW_CHUNKS = 8


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
    """A copy from one chunk: ``source`` within the chunk, ``target`` within the box."""

    chunk: Index
    source: Slices
    target: Slices


class ChunkRow(NamedTuple):
    """Part of a box: chunks that are neighbours along its last axis.

    outer : the indices of all of them without the last component.
    source : the wanted part of each chunk, without the last axis.
    target : the memory that they fill together.
    runs : along the last axis, one per chunk; without axes there are no runs, and one chunk.
    """

    outer: Index
    source: Slices
    target: Chunk
    runs: Sequence[Run]

    @property
    def indices(self) -> list[Index]:
        """The chunks' indices."""
        return [(*self.outer, run.chunk) for run in self.runs] or [()]


def boxes(shape: Shape, start: int, stop: int) -> Iterator[Box]:
    """Divide the elements from ``start`` to ``stop`` of a file of ``shape`` into boxes.

    The boxes come in file order.
    """
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
        # By axis number, for boxes with the full extent along that axis.
        self._whole_runs: dict[int, list[Run]] = {}

    @classmethod
    def whole(cls, grid: ChunkGrid) -> Window:
        """The window of the whole array."""
        return cls(grid, (0,) * len(grid.axes), grid.shape)

    @property
    def transposed(self) -> Window:
        """The same box with its axes in reverse order."""
        return Window(ChunkGrid(self.grid.axes[::-1]), self.origin[::-1], self.shape[::-1])

    @property
    def only_chunk(self) -> Index | None:
        """The one chunk that equals the window, if it lies within the array; else None."""
        if not self.elements or not self.shape:
            return None
        index = []
        for axis, origin, length in zip(self.grid.axes, self.origin, self.shape, strict=True):
            if origin + length > axis.extent:
                return None
            chunk = axis.chunk_of(origin)
            if axis.origin(chunk) != origin or axis.length(chunk) != length:
                return None
            index.append(chunk)
        return tuple(index)

    @cached_property
    def mean_piece(self) -> int:
        """About how many elements that follow each other in the file are in one chunk."""
        piece = 1
        for axis, length in reversed(list(enumerate(self.shape))):
            chunks = self.count_along(axis, 0, length)
            piece *= max(1, length // chunks) if chunks else 1
            if chunks != 1:
                break
        return piece

    def overhangs(self, box: Box) -> bool:
        """Whether part of a box lies outside the array, where no chunk is copied from."""
        return any(
            o + s + n > extent
            for o, s, n, extent in zip(
                self.origin, box.start, box.shape, self._extents, strict=True
            )
        )

    def copies(self, box: Box) -> Iterable[Copy]:
        """The copies that fill a box, one per chunk."""
        if not box.shape:
            return (Copy((), (), ()),)
        # One C call for each chunk: small reads of wide arrays cross many chunks.
        return map(Copy._make, starmap(zip, product(*self.runs(box))))

    def chunk_rows(self, box: Box, target: Chunk) -> Iterator[ChunkRow]:
        """The rows of chunks that fill a box, whose memory is ``target``."""
        if not box.shape:
            yield ChunkRow((), (), target, ())
            return
        *outer, last = self.runs(box)
        if not last:
            return
        target = target[..., : last[-1].target.stop]
        for runs in product(*outer):
            if runs:
                index, source, where = zip(*runs, strict=True)
                yield ChunkRow(index, source, target[where], last)
            else:
                yield ChunkRow((), (), target, last)

    def runs(self, box: Box) -> Iterator[list[Run]]:
        """For each axis, the runs of a box along it."""
        for axis, (start, length) in enumerate(zip(box.start, box.shape, strict=True)):
            if start or length != self.shape[axis]:
                yield self.runs_along(axis, start, length)
                continue
            # Most boxes have the full extent along all axes but the outermost ones.
            known = self._whole_runs.get(axis)
            if known is None:
                known = self.runs_along(axis, start, length)
                if len(known) <= _MOST_KNOWN:
                    self._whole_runs[axis] = known
            yield known

    def count_chunks(self, box: Box) -> int:
        """How many chunks contain elements of a box, without a step for each of them."""
        return math.prod(map(self.count_along, range(len(box.shape)), box.start, box.shape))

    def count_along(self, axis: int, start: int, length: int) -> int:
        """How many chunks contain ``length`` elements from ``start`` on along one axis."""
        along = self.grid.axes[axis]
        low = self.origin[axis] + start
        high = min(low + length, along.extent)
        return along.chunk_of(high - 1) - along.chunk_of(low) + 1 if low < high else 0

    def runs_along(self, axis: int, start: int, length: int) -> list[Run]:
        """The runs of ``length`` elements from ``start`` on along one axis."""
        along = self.grid.axes[axis]
        if length <= _FEW_CHUNKS * along.longest or len(along.lengths) > 1:
            return self._one_by_one(axis, start, length)
        return expanded(self.ranges_along(axis, start, length))

    def ranges_along(self, axis: int, start: int, length: int) -> tuple[RunRange, ...]:
        """`runs_along` in compact form, made without a step for each of thousands of chunks."""
        along = self.grid.axes[axis]
        low = self.origin[axis] + start
        high = min(low + length, along.extent)
        if low >= high or len(along.lengths) > 1:
            return ranges(self._one_by_one(axis, start, length))
        (each,) = along.lengths
        first, last = along.chunk_of(low), along.chunk_of(high - 1)
        if last - first < 2:
            return ranges(self._one_by_one(axis, start, length))
        skipped, reached = low - along.origin(first), high - along.origin(last)
        found = []
        if skipped:
            found.append(RunRange(first, (skipped, each), (0, each - skipped), 1))
            first += 1
        at = along.origin(first) - low
        whole = last - first + (reached == each)
        found.append(RunRange(first, (0, each), (at, at + each), whole))
        if reached < each:
            at = along.origin(last) - low
            found.append(RunRange(last, (0, reached), (at, at + reached), 1))
        return tuple(found)

    def _one_by_one(self, axis: int, start: int, length: int) -> list[Run]:
        """As `runs_along`, for chunks of any lengths."""
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
