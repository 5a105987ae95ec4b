"""Bytes that are computed when they are read: the headers of files with millions of tiles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.uint8]
"""Of shape (rows, bytes of each row)."""

Numbers: TypeAlias = NDArray[np.int64]
"""Of one axis."""


class Table(NamedTuple):
    """Rows of equal width, one after another from byte ``start`` of a file on.

    length : how many rows there are.
    make : the rows with the given numbers.
    data : the rows, if they are known; empty if they are computed.
    """

    start: int
    length: int
    width: int
    make: Callable[[Numbers], Rows]
    data: bytes = b""

    @property
    def stop(self) -> int:
        return self.start + self.length * self.width

    @classmethod
    def of_bytes(cls, start: int, data: bytes) -> Table:
        """One row of known bytes."""
        row = np.frombuffer(data, np.uint8)[None]
        return cls(start, 1, len(data), lambda numbers: row, data)

    @classmethod
    def of_numbers(
        cls, start: int, length: int, dtype: str, make: Callable[[Numbers], NDArray[Any]]
    ) -> Table:
        """A row for each number that ``make`` returns, of the type ``dtype``."""
        kind = np.dtype(dtype)

        def rows(numbers: Numbers) -> Rows:
            found = np.ascontiguousarray(make(numbers), kind)
            return found.view(np.uint8).reshape(len(numbers), kind.itemsize)

        return cls(start, length, kind.itemsize, rows)


class Computed:
    """The bytes of some tables, which do not overlap, and zeros everywhere else.

    Equal to another one if the tables have the same places, and those of known rows the same ones.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = sorted(table for table in tables if table.length and table.width)
        self._starts = [table.start for table in self._tables]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Computed) and self._known == other._known

    __hash__ = None  # type: ignore[assignment]

    @property
    def _known(self) -> list[tuple[int, int, int, bytes]]:
        return [(t.start, t.length, t.width, t.data) for t in self._tables]

    def read(self, offset: int, size: int) -> bytearray:
        """The bytes from ``offset`` on. Memory and time go with ``size`` alone."""
        out = bytearray(size)
        stop = offset + size
        for table in self._tables[max(0, bisect_right(self._starts, offset) - 1) :]:
            if table.start >= stop:
                break
            low, high = max(offset, table.start), min(stop, table.stop)
            if low < high:
                first = (low - table.start) // table.width
                last = -(-(high - table.start) // table.width)
                data = table.make(np.arange(first, last)).reshape(-1).data
                begin = low - table.start - first * table.width
                out[low - offset : high - offset] = data[begin : begin + high - low]
        return out

    def agrees(self, offset: int, data: memoryview, marks: range) -> bool:
        """Whether the bytes from ``offset`` on are ``data``, except those at ``marks``."""
        mine, theirs = self.read(offset, len(data)), bytearray(data)
        first, stop = max(0, marks.start - offset), max(0, marks.stop - offset)
        del mine[first:stop], theirs[first:stop]
        return mine == theirs
