"""Chunks of one slab, filled in the order of the file that crosses all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product, repeat
from operator import sub

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import RunRange
from zarrfs.cache.write.gathering import Change
from zarrfs.cache.write.tile_changes import OVERHEAD
from zarrfs.cache.write.tiles import Slices
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.views.elements.element_changes import ElementChanges
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import boxes

# Writes in blocks begin and end in many places along the slower axes.
_MOST_KEPT = 64
# Bytes of a piece of a write that lies in memory in one piece, from which on to copy a write of
# 1 MiB takes hardly longer than in one piece.
_LONG = 64


class SlabChunks:
    """How the chunks of one slab, or of a part of one, lie one after the other in memory.

    Each chunk has the array's element order there, so a full chunk needs no further step. A write
    to the file needs only a few copies of many rows each, however many chunks it crosses.
    In the stored order of a transposed chunk, encoding would need no copy. Two of five such arrays
    took 6 and 14 % less time so, but two others 2 to 5 % more: a write set short pieces all over
    the memory, while a chunk fits the processor's cache when it is transposed alone.

    nbytes, beside, staged, marks, quick : see `GatheredFile`.
    longest : bytes of a long write that lie in one piece in that memory.
    """

    def __init__(
        self,
        elements: Elements,
        changes: ElementChanges,
        first: int,
        last: int,
        *,
        staged: bool,
    ) -> None:
        """
        changes : of these elements; its window is over the grid of these chunks.
        first, last : elements of the file, the last exclusive; together they are one box.
        """
        self._elements = elements
        self._item = elements.dtype.itemsize
        self._window = window = changes.window
        (box,) = boxes(window.shape, first, last)
        runs = list(window.runs(box))
        chunks = math.prod(len(along) for along in runs)
        self._origin: Index = tuple([along[0].chunk if along else 0 for along in runs])
        counts: Shape = tuple([len(along) for along in runs])
        regular = window.grid.regular_shape
        self._adopted = regular is not None
        lengths = regular or tuple(
            [max((run.source.stop for run in along), default=0) for along in runs]
        )
        own_order = lengths[::-1] if elements.reversed else lengths
        self._shape: Shape = (*counts, *own_order)
        self._count = math.prod(self._shape)
        self.nbytes = self._count * self._item
        self.staged, self.marks = staged, self._count if staged else 0
        self.beside = chunks * OVERHEAD
        if not staged and self._adopted:
            self.beside += self._count
        elif not staged:
            self.beside = chunks * changes.array.largest_change
        self.longest = _longest(window.shape, lengths, self._item)
        if elements.reversed and len(runs) > 1:
            self.longest = self._item
        self.quick = self.longest >= _LONG
        self._ranges: dict[tuple[int, int, int], tuple[RunRange, ...]] = {}
        rank = len(runs)
        self._order = tuple(range(rank)) + tuple(
            range(2 * rank - 1, rank - 1, -1) if elements.reversed else range(rank, 2 * rank)
        )
        # The axes of a copy: first the chunk's number along each axis, then the part of the chunk.
        self._split = tuple(range(0, 2 * rank, 2)) + tuple(range(1, 2 * rank, 2))

    def put(self, memory: NDArray[np.uint8], offset: int, data: memoryview) -> None:
        """See `GatheredFile`. Elements beyond the array are dropped."""
        first, values = offset // self._item, np.frombuffer(data, self._elements.dtype)
        target = self._chunks(memory).transpose(self._order)
        for box in boxes(self._window.shape, first, first + len(values)):
            start = box.position - first
            source = values[start : start + box.elements].reshape(box.shape)
            axes = enumerate(zip(box.start, box.shape, strict=True))
            for along in product(*(self._ranges_along(axis, *span) for axis, span in axes)):
                self._copy(target, source, along)

    def changes(
        self, memory: NDArray[np.uint8], marks: NDArray[np.uint8] | None, start: int, stop: int
    ) -> Iterator[Change]:
        """See `GatheredFile`. All boxes of the file that cross a chunk share its memory."""
        first, last = start // self._item, stop // self._item
        chunks = self._chunks(memory)
        new = None
        if marks is not None:
            new = marks[: self._count].view(bool).reshape(self._shape)
        reverse = self._elements.reversed
        made: dict[Index, list[tuple[Slices, Chunk]]] = {}
        for box in boxes(self._window.shape, first, last):
            for index, source, _ in self._window.copies(box):
                where = source[::-1] if reverse else source
                # Not a function: a slab has thousands of chunks.
                chunk: Chunk = chunks[tuple(map(sub, index, self._origin))]
                made.setdefault(index, []).append((where, chunk[where]))
        places = [tuple(map(sub, index, self._origin)) for index in made]
        tiles = [index[::-1] for index in made] if reverse else list(made)
        memories = [chunks[place] if self._adopted else None for place in places]
        spaces = [None if new is None else new[place] for place in places]
        parts = made.values()
        return map(Change, tiles, parts, repeat(self._elements.carrier), memories, spaces)

    def _chunks(self, memory: NDArray[np.uint8]) -> Chunk:
        return memory[: self.nbytes].view(self._elements.carrier).reshape(self._shape)

    def _copy(self, target: Chunk, source: Chunk, along: tuple[RunRange, ...]) -> None:
        """Copy to chunks of which the same part is set; ``along`` describes them for each axis."""
        taken, places, inside = [], [], []
        split: list[int] = []
        for (chunk, part, into, runs), origin in zip(along, self._origin, strict=True):
            length = part[1] - part[0]
            taken.append(slice(into[0], into[0] + runs * length))
            places.append(slice(chunk - origin, chunk - origin + runs))
            inside.append(slice(*part))
            split += runs, length
        parts = source[tuple(taken)].reshape(split).transpose(self._split)
        copy_elements(parts, target[tuple(places + inside)])

    def _ranges_along(self, axis: int, start: int, length: int) -> tuple[RunRange, ...]:
        """The chunks along one axis of a box."""
        key = (axis, start, length)
        if (found := self._ranges.get(key)) is None:
            if len(self._ranges) >= _MOST_KEPT:
                self._ranges.clear()
            found = self._ranges[key] = self._window.ranges_along(axis, start, length)
        return found


def _longest(shape: Shape, lengths: Shape, item: int) -> int:
    """
    shape, lengths : of the window, and of a chunk's part in memory.
    """
    piece = item
    for length, part in zip(reversed(shape), reversed(lengths), strict=True):
        piece *= min(length, part)
        if part < length:
            break
    return piece
