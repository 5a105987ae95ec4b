"""The elements of an array that a file shows, and their places and form in the file.

The elements of an array have the numbers that they have in C order. These stay the same when the
first axis grows or shrinks.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.views.records import Records

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class ElementNumbers(NamedTuple):
    """The elements of one file.

    shape : of the array.
    origin : index of the first element that the file shows.
    lengths : shape of what the file shows, which may reach beyond the array.
    order : ``C`` (last axis fastest) or ``F`` (first axis fastest).
    item_size : bytes of an element.
    header : bytes before the first element.
    records : the layout of elements in records; None: the elements are contiguous.
    turned : the type of the elements in the file, if its byte order is not that of ``array.bin``.
    flipped : place, within an element, of the byte whose most significant bit the file inverts.
    """

    shape: Shape
    origin: Index
    lengths: Shape
    order: Literal["C", "F"]
    item_size: int
    header: int = 0
    turned: np.dtype[Any] | None = None
    flipped: int | None = None
    records: Records | None = None

    @property
    def elements(self) -> int:
        return int(np.prod(self.lengths, dtype=object))

    def element_bytes(self, offset: int, size: int) -> tuple[int, int, slice | Numbers]:
        """Which of ``size`` bytes of the file from ``offset`` belong to elements.

        Place of the first and the last one (exclusive) among the bytes of all elements, and
        the places of all in the range.
        """
        total = self.elements * self.item_size
        start = offset - self.header
        if self.records is None:
            first = min(max(0, start), total)
            last = min(max(0, start + size), total)
            return first, last, slice(first - start, last - start)
        inside = np.ones(size, bool)
        inside[: max(0, -start)] = False
        inside[max(0, total + self.records.marks - start) :] = False
        if start + size > 0:
            before = max(0, -start)
            for at, mark_first, mark_last in self.records.mark_places(
                start + before, size - before
            ):
                inside[before + at : before + at + mark_last - mark_first] = False
        places = np.flatnonzero(inside)
        first = self.records.position(start)
        return first, first + len(places), places

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

    def plain(self, elements: Bytes) -> Bytes:
        """Convert elements, one row of bytes each, from the file's form to ``array.bin``'s."""
        return self._turn(self._flip(elements))

    def in_file(self, elements: Bytes) -> Bytes:
        """Convert elements from the form of ``array.bin`` to that of the file; undoes `plain`."""
        return self._flip(self._turn(elements))

    def _flip(self, elements: Bytes) -> Bytes:
        if self.flipped is not None:
            elements = elements.copy()
            elements[:, self.flipped] ^= 0x80
        return elements

    def _turn(self, elements: Bytes) -> Bytes:
        return elements if self.turned is None else elements[:, _other_order(self.turned)]


@cache
def _other_order(dtype: np.dtype[Any]) -> NDArray[np.intp]:
    """The place of each byte of an element in the other byte order."""
    places = np.arange(dtype.itemsize, dtype="<u4").view(np.uint8).reshape(-1, 4)
    turned = [
        np.ascontiguousarray(digit).view(dtype).astype(dtype.newbyteorder()).view(np.uint8)
        for digit in places.T
    ]
    return sum(digit.astype(np.intp) << 8 * i for i, digit in enumerate(turned))  # type: ignore[return-value]
