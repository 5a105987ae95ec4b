"""Rows of chunks in a scratch file: stripes are written to it, and pieces read from it.

`staged_rows` says what stripes and pieces are, and how the file is divided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block_reader import scratch
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views.elements.window import Box

Numbers = NDArray[np.int64]

# Pairs of stripes and pieces that are compared at once.
_COMPARED = 1 << 20


class Parts(NamedTuple):
    """Parts of one stripe, one after the other as they lie in its memory.

    sizes : elements of each.
    places : within the row's place in the file, in elements.
    """

    sizes: Numbers
    places: Numbers

    @property
    def joined(self) -> Parts:
        """Parts that also follow each other in the file are one."""
        sizes, places = self
        begins = np.flatnonzero(np.append(True, places[1:] != places[:-1] + sizes[:-1]))
        return Parts(np.add.reduceat(sizes, begins), places[begins])


class Strip(NamedTuple):
    """Parts of one piece in several stripes, all of one shape and neighbours along one axis.

    They follow each other in the file.

    low : where the first one begins within the piece, in elements.
    shape : of each.
    axis, number : along which axis, and how many.
    """

    low: Shape
    shape: Shape
    axis: int
    number: int


class StripeGrid(NamedTuple):
    """The stripes of one row.

    shape : of the row.
    cut, thick : pieces follow each other along this axis, with so many elements along it, and have
        length 1 along all axes before it.
    low, high : where each stripe begins and ends (exclusive) within the row, in elements; (stripes,
        axes).
    """

    shape: Shape
    cut: int
    thick: int
    low: Numbers
    high: Numbers

    def crossed(self, first: Sequence[int], shape: Shape) -> tuple[list[int], list[Strip]]:
        """The stripes that contain parts of a piece, and these parts.

        first, shape : of the piece within the row.
        """
        low = np.maximum(self.low - first, 0)
        high = np.minimum(self.high - first, shape)
        crossed = np.flatnonzero((low < high).all(axis=1))
        return crossed.tolist(), list(_strips(low[crossed], (high - low)[crossed]))

    def parts(self, number: int) -> Iterator[Parts]:
        """The parts of a stripe, which comes after ``number`` others."""
        cut, thick, shape = self.cut, self.thick, self.shape
        low, high = self.low[number], self.high[number]
        inner = math.prod(shape[cut + 1 :])
        before_low, before_high = self.low[:number], self.high[:number]
        # For each earlier stripe: its elements behind the cut, and how much of each piece it has.
        behind = (before_high - before_low)[:, cut + 1 :].prod(axis=1)
        pieces = np.arange(low[cut] // thick, -(-high[cut] // thick)) * thick
        along = np.minimum(before_high[:, cut, None], pieces + thick)
        along = np.maximum(along - np.maximum(before_low[:, cut, None], pieces), 0)
        along *= behind[:, None]
        sizes = np.minimum(pieces + thick, high[cut]) - np.maximum(pieces, low[cut])
        sizes *= (high - low)[cut + 1 :].prod()
        spans = [range(n, h) for n, h in zip(low[:cut].tolist(), high[:cut].tolist(), strict=True)]
        outers = list(product(*spans))
        steps = np.array([math.prod(shape[axis + 1 :]) for axis in range(cut)], np.int64)
        share = max(1, _COMPARED // max(1, number, len(pieces)))
        for done in range(0, len(outers), share):
            group = np.array(outers[done : done + share], np.int64)
            outer = group[:, None]
            has = ((before_low[:, :cut] <= outer) & (outer < before_high[:, :cut])).all(axis=2)
            before = has.astype(np.int64) @ along
            places = (group @ steps)[:, None] + pieces * inner + before
            yield Parts(np.tile(sizes, len(group)), places.reshape(-1))


def _strips(low: Numbers, lengths: Numbers) -> Iterator[Strip]:
    """
    low, lengths : of each part; (parts, axes).
    """
    steps = np.diff(low, axis=0)
    moved = steps != 0
    beside = (lengths[1:] == lengths[:-1]).all(axis=1) & (moved.sum(axis=1) == 1)
    axes = moved.argmax(axis=1) if moved.size else np.zeros(len(moved), np.int64)
    if moved.size:
        follows = np.arange(len(axes)), axes
        beside &= steps[follows] == lengths[1:][follows]
    first, axis = 0, -1
    starts, shapes = low.tolist(), lengths.tolist()
    for i, (near, along) in enumerate(zip(beside.tolist(), axes.tolist(), strict=True), 1):
        if near and axis in (-1, along):
            axis = along
            continue
        yield Strip(tuple(starts[first]), tuple(shapes[first]), max(axis, 0), i - first)
        first, axis = i, -1
    if starts:
        yield Strip(tuple(starts[first]), tuple(shapes[first]), max(axis, 0), len(starts) - first)


# Bytes of several parts that are read at once, before they are copied to their places.
_TOGETHER = 256 << 10


class RowPlace(NamedTuple):
    """A row, and where it lies in the file.

    box : the row in the window.
    start : its first byte in the file.
    grid : of the stripes.
    """

    box: Box
    start: int
    grid: StripeGrid


class RowFile:
    """Thread-safe, as far as no read overlaps a write; see `ScratchFile`."""

    def __init__(self, file: ScratchFile, dtype: np.dtype[np.generic]) -> None:
        """
        dtype : of the elements in the file.
        """
        self._file = file
        self._dtype = dtype

    def clear(self) -> None:
        """Free the disk space."""
        self._file.clear()

    def write(self, row: RowPlace, stripe: int, elements: Chunk) -> None:
        """Write the parts of a stripe to their pieces. Blocks. Raises OSError.

        stripe : its number in the row.
        elements : of the stripe, in its shape.
        """
        for place, data in self._placed(row.grid, stripe, elements):
            self._file.write(row.start + place * self._dtype.itemsize, data)

    def read(self, row: RowPlace, piece: Box, strips: Sequence[Strip], target: Chunk) -> None:
        """Read a piece, all of whose stripes are written. Blocks. Raises OSError.

        strips : the parts of the piece.
        target : memory for its elements, in its shape.
        """
        place = row.start + (piece.position - row.box.position) * self._dtype.itemsize
        for low, shape, axis, number in strips:
            high = [start + length for start, length in zip(low, shape, strict=True)]
            if number == 1:
                parts = target[tuple(map(slice, low, high))][np.newaxis]
            else:
                high[axis] += (number - 1) * shape[axis]
                parts = target[tuple(map(slice, low, high))]
                parts = parts.reshape(*shape[:axis], number, *shape[axis:])
                parts = np.moveaxis(parts, axis, 0)
            self._read_parts(place, parts)
            place += parts.nbytes

    def _placed(
        self, grid: StripeGrid, stripe: int, elements: Chunk
    ) -> Iterator[tuple[int, memoryview]]:
        """The parts of a stripe, each with its place within the row's, in elements."""
        dtype = self._dtype
        if elements.flags.c_contiguous and elements.dtype == dtype:
            data = elements.reshape(-1).view(np.uint8).data
            for parts in grid.parts(stripe):
                sizes, places = parts.joined
                lengths = (sizes * dtype.itemsize).tolist()
                for size, place in zip(lengths, places.tolist(), strict=True):
                    yield place, data[:size]
                    data = data[size:]
            return
        # Part by part: there may be no memory for another copy of all elements.
        cut = grid.cut
        inner = math.prod(elements.shape[cut + 1 :])
        done = 0
        for sizes, places in grid.parts(stripe):
            for size, place in zip(sizes.tolist(), places.tolist(), strict=True):
                outer, first = divmod(done // inner, elements.shape[cut])
                part = elements[np.unravel_index(outer, elements.shape[:cut])] if cut else elements
                part = part[first : first + size // inner]
                yield place, np.ascontiguousarray(part, dtype).reshape(-1).view(np.uint8).data
                done += size

    def _read_parts(self, place: int, parts: Chunk) -> None:
        """Read parts that follow each other in the file, some at once.

        parts : their memory, one after the other along a first axis.
        """
        if parts.flags.c_contiguous:
            self._file.read(place, parts.reshape(-1).view(np.uint8).data)
            return
        some = max(1, _TOGETHER * len(parts) // parts.nbytes)
        for first in range(0, len(parts), some):
            group = parts[first : first + some]
            memory = scratch(group.nbytes)
            self._file.read(place, memory)
            copy_elements(np.frombuffer(memory, group.dtype).reshape(group.shape), group)
            place += group.nbytes
