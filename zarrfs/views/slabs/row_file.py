"""Rows of chunks in a scratch file: stripes are written to it, and pieces read from it.

`staged_rows` says what stripes and pieces are, and how the file is divided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from zarrfs.array.block_reader import scratch
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views.elements.window import Box
from zarrfs.views.slabs.stripe_grid import Strip, StripeGrid

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
