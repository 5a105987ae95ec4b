"""Where the boxes of an array lie in a file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.views.tiles.computed import Numbers

PAGE = 4096
"""Boxes begin at multiples of so many bytes: a page of the kernel's cache is of one box."""


@dataclass(frozen=True)
class Tiling:
    """Boxes of one shape over an array, one after another in C order of their grid.

    A box at the edge of the array has its full shape, and so the same size in the file.

    extents : of the array.
    shape : of a box, with one length for each axis of the array.
    item_size : bytes of an element.
    start : byte of the file at which the first box begins.
    """

    extents: Shape
    shape: Shape
    item_size: int
    start: int

    @cached_property
    def counts(self) -> Shape:
        """Boxes along each axis."""
        return tuple(-(-n // b) for n, b in zip(self.extents, self.shape, strict=True))

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the elements of a box."""
        return math.prod(self.shape) * self.item_size

    @cached_property
    def stride(self) -> int:
        """Bytes from one box to the next."""
        return -(-self.nbytes // PAGE) * PAGE

    @property
    def size(self) -> int:
        """Bytes from the first box to the end of the last one."""
        return math.prod(self.counts) * self.stride

    def origin(self, number: int) -> Index:
        """The array index of the first element of a box."""
        index = []
        for count, length in zip(reversed(self.counts), reversed(self.shape), strict=True):
            number, at = divmod(number, count)
            index.append(at * length)
        return tuple(reversed(index))

    def offsets(self, indices: tuple[Numbers, ...]) -> Numbers:
        """The bytes of the file at which boxes begin, by their indices in the grid."""
        number = np.zeros((), np.int64)
        for index, count in zip(indices, self.counts, strict=True):
            number = number * count + index
        return self.start + number * self.stride
