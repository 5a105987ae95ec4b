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

LARGE = 64 << 10
"""Bytes of a box that is worth a request of its own."""

# How far the kernel reads beyond what a program asks for, on a mount that is not root's. Where that
# ends in the zeros after a box, no other box is decoded for nobody. A page of zeros is enough where
# a program asks for less than that at once: the kernel reads ahead where reads follow each other.
_READ_AHEAD = 256 << 10
# The same on a mount of root's, and the least bytes of a box that has so many zeros behind it.
# HDF5 reads a chunk of more than that in small parts, and the kernel then reads ahead of them.
_READ_FAR_AHEAD = 2 << 20
_IN_PARTS = 1 << 20


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
        pages = -(-self.nbytes // PAGE) * PAGE
        if self.nbytes < LARGE:
            return pages
        if self.nbytes > _IN_PARTS:
            return pages + _READ_FAR_AHEAD
        return pages + (_READ_AHEAD if self.nbytes >= _READ_AHEAD else PAGE)

    @property
    def size(self) -> int:
        """Bytes from the first box to the end of the last one."""
        return math.prod(self.counts) * self.stride

    def index(self, number: int) -> Index:
        """The place of a box in the grid of boxes."""
        return tuple(map(int, np.unravel_index(number, self.counts)))

    def number(self, index: Index) -> int:
        """The number of the box at a place in the grid."""
        return int(np.ravel_multi_index(index, self.counts))

    def origin(self, number: int) -> Index:
        """The array index of the first element of a box."""
        return tuple(at * n for at, n in zip(self.index(number), self.shape, strict=True))

    def offsets(self, indices: tuple[Numbers, ...]) -> Numbers:
        """The bytes of the file at which boxes begin, by their indices in the grid."""
        return self.start + np.ravel_multi_index(indices, self.counts) * self.stride
