"""Assembles reads from the bytes of decoded chunks.

A read of some KiB crosses one chunk for every few elements of the last axis. Cut as a box of a
numpy array, each such piece costs microseconds; as a slice of the chunk's bytes it costs a tenth of
that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zarrfs.format.chunk_grid import Index
from zarrfs.views.elements.window import ChunkRow, Window

# More pieces are copied faster as boxes.
_MOST_PIECES = 256
# Rows of a chunk of at most so many bytes are rearranged as single elements of that size.
_SHORT_ROW = 128


ChunkBytes = Callable[[Sequence[Index]], Sequence[memoryview] | None]


class Cuts(NamedTuple):
    """Bytes of the file, as parts of the bytes of chunks.

    chunks : each chunk once, with its number.
    parts : in file order, the number of a chunk, and where the part begins and ends in it.
    """

    chunks: dict[Index, int]
    parts: list[tuple[int, int, int]]


class Rows:
    """The file of a whole array of regular chunks, last axis fastest, in memory order.

    chunk_bytes : bytes of a chunk.
    """

    def __init__(self, window: Window, item: int, get: ChunkBytes) -> None:
        """
        get : returns all bytes of several chunks in C order, or None if they are not kept
            so; raises `NotCached`.
        """
        lengths = window.grid.regular_shape
        assert lengths is not None
        assert lengths
        self._get = get
        self.chunk_bytes = math.prod(lengths) * item
        self._piece = lengths[-1] * item
        self._item = item
        self._outer = _outer(window.shape, lengths, item)
        # An axis that each chunk spans is part of the one before: in a chunk, too, what follows
        # each other along that lies in one piece.
        shape, joined = list(window.shape), list(lengths)
        while len(joined) > 1 and joined[-1] == shape[-1]:
            joined[-2:] = [joined[-2] * joined[-1]]
            shape[-2:] = [shape[-2] * shape[-1]]
        self._spanned = (0,) * (len(lengths) - len(joined))
        self._row = shape[-1] * item
        self._joined_piece = joined[-1] * item
        self._joined_outer = _outer(shape, joined, item)
        self._short = np.dtype(f"V{self._piece}") if self._piece <= _SHORT_ROW else None
        # A read that finds no chunk in memory asks again, to load them.
        self._last: tuple[int, int, Cuts] | None = None

    @classmethod
    def fits(cls, window: Window) -> bool:
        """Whether a window is the whole of an array of regular chunks."""
        lengths = window.grid.regular_shape
        return bool(lengths) and window.shape == window.grid.shape and not any(window.origin)

    def cuts(self, start: int, stop: int, most: int = _MOST_PIECES) -> Cuts | None:
        """Where bytes ``start`` to ``stop`` (exclusive, not equal) lie.

        Returns None if they are in more than about ``most`` pieces.
        """
        if (stop - start) // min(self._row, self._joined_piece) > most:
            return None
        last_cuts = self._last
        if last_cuts is None or (start, stop) != last_cuts[:2]:
            self._last = last_cuts = start, stop, self._cut(start, stop)
        return last_cuts[2]

    def _cut(self, start: int, stop: int) -> Cuts:
        """See `cuts`."""
        row_bytes, piece_bytes = self._row, self._joined_piece
        chunks: dict[Index, int] = {}
        parts: list[tuple[int, int, int]] = []
        row, position = divmod(start, row_bytes)
        left = stop - start
        while left:
            index: Index = ()
            base, outer = 0, row
            for extent, length, stride in self._joined_outer:
                outer, at = divmod(outer, extent)
                chunk, within = divmod(at, length)
                index = (chunk, *index)
                base += within * stride
            end = min(position + left, row_bytes)
            left -= end - position
            first, into = divmod(position, piece_bytes)
            last, rest = divmod(end - 1, piece_bytes)
            end_of_row = base + piece_bytes
            begin, spanned = base + into, self._spanned
            for column in range(first, last):
                number = chunks.setdefault((*index, column, *spanned), len(chunks))
                parts.append((number, begin, end_of_row))
                begin = base
            number = chunks.setdefault((*index, last, *spanned), len(chunks))
            parts.append((number, begin, base + rest + 1))
            position = 0
            row += 1
        return Cuts(chunks, parts)

    def copy(self, row: ChunkRow) -> bool:
        """Copy neighbouring chunks to their places, short row by short row.

        The wanted part of each chunk must be contiguous in it. Returns False, and copies nothing,
        if it is not. Raises NotCached.
        """
        if self._short is None or len(row.runs) < 2 or not row.source:
            return False
        if any(along.stop - along.start != 1 for along in row.source[:-1]):
            return False
        # The chunks in between are whole.
        if row.runs[0].source.start or row.runs[-1].source.stop * self._item != self._piece:
            return False
        chunks = self._get(row.indices)
        if chunks is None:
            return False
        start = sum(
            along.start * stride
            for along, (_, _, stride) in zip(reversed(row.source), self._outer, strict=True)
        )
        stop = start + (row.source[-1].stop - row.source[-1].start) * self._piece
        joined = b"".join([chunk[start:stop] for chunk in chunks])
        rows = np.frombuffer(joined, self._short).reshape(len(chunks), -1)
        row.target.view(self._short)[...] = rows.T
        return True


def _outer(shape: Sequence[int], lengths: Sequence[int], item: int) -> list[tuple[int, int, int]]:
    """For each axis but the last, in reverse order: extent, chunk length and stride in a chunk."""
    return [
        (shape[axis], lengths[axis], math.prod(lengths[axis + 1 :]) * item)
        for axis in reversed(range(len(lengths) - 1))
    ]
