"""Changes made through one file of an array that pages of another file may not show yet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zarrfs.fs.nodes.element_numbers import ElementNumbers, Numbers

Bytes = NDArray[np.uint8]


class Written:
    """Bytes that were written to a file, by elements.

    first, last : the first element that has any of them, and the one behind the last.
    elements : a row of bytes for each element, as ``array.bin`` has them; where ``known`` is 0
        they are not written.
    """

    def __init__(self, numbers: ElementNumbers, offset: int, data: memoryview) -> None:
        self._numbers = numbers
        self._data = np.frombuffer(data, np.uint8)
        item = numbers.item_size
        # The bytes around the elements do not change.
        start, stop, self._here = numbers.element_bytes(offset, len(data))
        self.first = start // item
        self.last = max(self.first, -(-stop // item))
        begin = self.first * item
        self._there = slice(start - begin, stop - begin)
        rows = np.zeros((2, self.last - self.first, item), np.uint8)
        rows[0].reshape(-1)[self._there] = self._data[self._here]
        rows[1].reshape(-1)[self._there] = 1
        self.elements = numbers.plain(rows[0])
        # Where each byte belongs, but not which of its bits.
        self.known = numbers._replace(flipped=None).plain(rows[1])

    @property
    def numbers(self) -> Numbers:
        return self._numbers.at(self.first, self.last)

    def find(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Rows of the elements here that are among ``numbers``, and where they are there."""
        rows = self._numbers.find(numbers)
        (mine,) = np.nonzero((rows >= self.first) & (rows < self.last))
        return rows[mine] - self.first, mine

    @property
    def data(self) -> memoryview:
        """The bytes as they are to be written to the file."""
        data = self._data.copy()
        data[self._here] = self._numbers.in_file(self.elements).reshape(-1)[self._there]
        return data.data


class Change:
    """Elements that were written through one file, for another file whose pages may be older.

    numbers : of the elements, as `ElementNumbers` has them.
    new, old : their bytes, a row for each element. Without ``old`` all bytes that are not new
        are taken for old.
    holds : which of the bytes are still as this change made them.
    """

    def __init__(self, numbers: Numbers, new: Bytes, old: Bytes | None, holds: Bytes) -> None:
        self.numbers = numbers
        self.new = new
        self.old = old
        self.holds = holds

    def bring_up_to_date(self, pages: Written) -> None:
        """Give ``pages`` the bytes from after this change where they have those from before."""
        rows, mine = pages.find(self.numbers)
        theirs = pages.elements[rows]
        stale = self.holds[mine].astype(bool) & (theirs != self.new[mine])
        if self.old is not None:
            stale &= theirs == self.old[mine]
        theirs[stale] = self.new[mine][stale]
        pages.elements[rows] = theirs

    def yield_to(self, written: Written) -> None:
        """Bytes that a program wrote through the other file are not older than this."""
        rows, mine = written.find(self.numbers)
        self.holds[mine] &= 1 - written.known[rows]
