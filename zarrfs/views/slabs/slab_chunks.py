"""Chunks of one slab, filled in the order of the file that crosses all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product, repeat
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import RunRange
from zarrfs.cache.write.gathering import Change
from zarrfs.cache.write.tiles import Slices
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Window, boxes


class SlabChunks:
    """How the chunks of one slab, or of a part of one, lie one after the other in memory.

    Each chunk has the array's element order there, so a full chunk needs no further step. A write
    to the file needs only a few copies of many rows each, however many chunks it crosses.
    In the stored order of a transposed chunk, encoding would need no copy. Two of five such arrays
    took 6 and 14 % less time so, but two others 2 to 5 % more: a write set short pieces all over
    the memory, while a chunk fits the processor's cache when it is transposed alone.

    nbytes, elements : of that memory.
    chunks : how many there are.
    adopted : whether each has the memory of the full chunk.
    longest : bytes of a long write that lie in one piece in that memory.
    """

    def __init__(
        self, elements: Elements, window: Window, first: int, last: int, *, whole: bool
    ) -> None:
        """
        window : the part of the array in the file, over the grid of these chunks; in its axis
            order.
        first, last : elements of the file, the last exclusive; together they are one box.
        whole : whether to take memory for the whole of each chunk, rather than for its part in the
            slab. Only if all chunks have one shape.
        """
        self._elements = elements
        self._window = window
        (box,) = boxes(window.shape, first, last)
        runs = list(window.runs(box))
        self.chunks = math.prod(len(along) for along in runs)
        self._origin: Index = tuple([along[0].chunk if along else 0 for along in runs])
        counts: Shape = tuple([len(along) for along in runs])
        regular = window.grid.regular_shape
        self.adopted = whole and regular is not None
        if self.adopted:
            assert regular is not None
            self._base: Index = (0,) * len(runs)
            lengths = regular
        else:
            self._base = tuple([along[0].source.start if len(along) == 1 else 0 for along in runs])
            lengths = tuple(
                [
                    max((run.source.stop for run in along), default=base) - base
                    for along, base in zip(runs, self._base, strict=True)
                ]
            )
        own_order = lengths[::-1] if elements.reversed else lengths
        self._shape: Shape = (*counts, *own_order)
        self.elements = math.prod(self._shape)
        self.nbytes = self.elements * elements.dtype.itemsize
        self.longest = _longest(window.shape, lengths, elements.dtype.itemsize)
        if elements.reversed and len(runs) > 1:
            self.longest = elements.dtype.itemsize
        self._ranges: dict[tuple[int, int, int], tuple[RunRange, ...]] = {}
        rank = len(runs)
        self._order = tuple(range(rank)) + tuple(
            range(2 * rank - 1, rank - 1, -1) if elements.reversed else range(rank, 2 * rank)
        )
        # The axes of a copy: first the chunk's number along each axis, then the part of the chunk.
        self._split = tuple(range(0, 2 * rank, 2)) + tuple(range(1, 2 * rank, 2))

    def put(self, memory: NDArray[np.uint8], first: int, values: NDArray[Any]) -> None:
        """Copy the elements of the file from ``first`` on to their chunks.

        memory : of all of the slab; ``nbytes``.
        values : of the file's type. Elements beyond the array are dropped.
        """
        target = self._chunks(memory).transpose(self._order)
        for box in boxes(self._window.shape, first, first + len(values)):
            start = box.position - first
            source = values[start : start + box.elements].reshape(box.shape)
            axes = enumerate(zip(box.start, box.shape, strict=True))
            for along in product(*(self._ranges_along(axis, *span) for axis, span in axes)):
                self._copy(target, source, along)

    def changes(
        self, memory: NDArray[np.uint8], marks: NDArray[np.uint8] | None, first: int, last: int
    ) -> Iterator[Change]:
        """The changes that set the elements of the file from ``first`` to ``last``.

        One for each chunk, however many boxes of the file cross it: these share its memory.

        marks : memory for marks of ``elements``, all zero; None: there is none.
        """
        chunks = self._chunks(memory)
        new = None if marks is None else marks[: self.elements].view(bool).reshape(self._shape)
        reverse = self._elements.reversed
        based = any(self._base)
        made: dict[Index, list[tuple[Slices, Chunk]]] = {}
        for box in boxes(self._window.shape, first, last):
            for index, source, _ in self._window.copies(box):
                where = inside = source
                if based:
                    axes = zip(source, self._base, strict=True)
                    inside = tuple([slice(s.start - base, s.stop - base) for s, base in axes])
                if reverse:
                    where, inside = where[::-1], inside[::-1]
                # Not a function: a slab has thousands of chunks.
                chunk: Chunk = chunks[tuple(map(sub, index, self._origin))]
                made.setdefault(index, []).append((where, chunk[inside]))
        places = [tuple(map(sub, index, self._origin)) for index in made]
        tiles = [index[::-1] for index in made] if reverse else list(made)
        memories = [chunks[place] if self.adopted else None for place in places]
        spaces = [None if new is None else new[place] for place in places]
        parts = made.values()
        return map(Change, tiles, parts, repeat(self._elements.carrier), memories, spaces)

    def _chunks(self, memory: NDArray[np.uint8]) -> Chunk:
        return memory[: self.nbytes].view(self._elements.carrier).reshape(self._shape)

    def _copy(self, target: Chunk, source: Chunk, along: tuple[RunRange, ...]) -> None:
        """Copy to chunks of which the same part is set; ``along`` describes them for each axis."""
        taken, places, inside = [], [], []
        split: list[int] = []
        offsets = zip(self._origin, self._base, strict=True)
        for (chunk, part, into, runs), (origin, base) in zip(along, offsets, strict=True):
            length = part[1] - part[0]
            taken.append(slice(into[0], into[0] + runs * length))
            places.append(slice(chunk - origin, chunk - origin + runs))
            inside.append(slice(part[0] - base, part[1] - base))
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


# Writes in blocks begin and end in many places along the slower axes.
_MOST_KEPT = 64
