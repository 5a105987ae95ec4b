"""Which elements of an array a file shows, and where in the file they are.

The elements of an array have the numbers that they have in C order. These stay the same when the
first axis grows or shrinks.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Index, Shape

Numbers = NDArray[np.int64]


class ElementNumbers(NamedTuple):
    """Of one file.

    shape : of the array.
    origin : index of the first element that the file shows.
    lengths : shape of what the file shows, which may reach beyond the array.
    order : ``C`` (last axis fastest) or ``F`` (first axis fastest).
    item_size, header : bytes of an element, and before the first one.
    """

    shape: Shape
    origin: Index
    lengths: Shape
    order: Literal["C", "F"]
    item_size: int
    header: int

    def at(self, first: int, last: int) -> Numbers:
        """Numbers of the file's elements ``first`` to ``last`` (exclusive); -1 outside it."""
        places = np.arange(first, last)
        if not self.shape:
            return places
        index = np.unravel_index(places, self.lengths, self.order)
        index = tuple(i + start for i, start in zip(index, self.origin, strict=True))
        inside = np.logical_and.reduce([i < n for i, n in zip(index, self.shape, strict=True)])
        return np.where(inside, np.ravel_multi_index(index, self.shape, mode="clip"), -1)

    def find(self, numbers: Numbers) -> Numbers:
        """Where in the file elements with these numbers are; -1 where it does not show them."""
        if not self.shape:
            return numbers
        valid = (numbers >= 0) & (numbers < np.prod(self.shape))
        index = np.unravel_index(np.where(valid, numbers, 0), self.shape)
        index = tuple(i - start for i, start in zip(index, self.origin, strict=True))
        for i, length in zip(index, self.lengths, strict=True):
            valid &= (i >= 0) & (i < length)
        return np.where(
            valid, np.ravel_multi_index(index, self.lengths, mode="clip", order=self.order), -1
        )
