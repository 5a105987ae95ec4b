"""Assembles reads, and replies, from the bytes of decoded chunks.

A read of some KiB crosses one chunk for every few elements of the last axis. Cut as a box of a
numpy array, each such piece costs microseconds; as a slice of the chunk's bytes it costs a tenth of
that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import in_sequence
from zarrfs.store.ranges import Span
from zarrfs.views.elements.window import ChunkRow, Window
from zarrfs.views.view import Answer, Data

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


# A part of a chunk may be returned without a copy, which keeps the whole chunk in memory, if it has
# at least one in so many of the chunk's bytes.
_LARGE_PART = 2


def cut(chunk: Chunk, start: int, stop: int) -> memoryview:
    """Bytes of a chunk in C order, without a copy if they lie so in memory."""
    if chunk.flags.c_contiguous:
        return chunk.reshape(-1).view(np.uint8).data[start:stop]
    item = chunk.itemsize
    first = start // item
    elements = in_sequence(chunk, first, -(-stop // item))
    return elements.view(np.uint8).data[start - first * item : stop - first * item]


def as_reply(part: memoryview, chunk_bytes: int) -> Data:
    """A part of a chunk as a reply. Much of a chunk is not copied.

    The chunk may be evicted before the reply is sent. Then no budget is charged for it, as none
    would be for a copy.
    """
    # A chunk that is not read-only may change, or its memory may be used again.
    if not part.readonly or len(part) * _LARGE_PART < chunk_bytes:
        return part.tobytes()
    return part


class CutReply:
    """A reply that is put together from chunks as they come, in any thread.

    size : bytes.
    """

    def __init__(self, cuts: Cuts, answer: Answer) -> None:
        """
        answer : gets the reply, or the error, once.
        """
        self._chunks = cuts.chunks
        self._answer = answer
        # For each chunk, where each part goes in the reply, and where it begins and ends.
        self._wanted: list[list[tuple[int, int, int]]] = [[] for _ in cuts.chunks]
        self.size = 0
        for number, first, last in cuts.parts:
            self._wanted[number].append((self.size, first, last))
            self.size += last - first
        # A single part may be a slice of its chunk. Several must not keep theirs while they wait.
        self._single = len(cuts.parts) == 1
        self._data: Data = memoryview(bytearray(0 if self._single else self.size))

    @property
    def indices(self) -> Sequence[Index]:
        return list(self._chunks)

    @property
    def spans(self) -> Mapping[Index, Span]:
        """The wanted bytes of each chunk, from the first to the last one."""
        return {index: _span(self._wanted[number]) for index, number in self._chunks.items()}

    def deliver(self, delivery: Delivery) -> None:
        """Take the parts from whole chunks."""
        for index, chunk in delivery:
            for place, first, last in self._wanted[self._chunks[index]]:
                self._put(place, cut(chunk, first, last), chunk.nbytes)

    def deliver_part(self, index: Index, data: memoryview) -> None:
        """Take the parts from the bytes of one span."""
        parts = self._wanted[self._chunks[index]]
        begin = _span(parts).start
        for place, first, last in parts:
            self._put(place, data[first - begin : last - begin], data.nbytes)

    def done(self, error: ChunkError | None) -> None:
        """All parts were taken, or some could not be had."""
        self._answer(self._data if error is None else error)

    def _put(self, place: int, part: memoryview, source_bytes: int) -> None:
        if self._single:
            self._data = as_reply(part, source_bytes)
        else:
            memoryview(self._data)[place : place + len(part)] = part


def _span(parts: Sequence[tuple[int, int, int]]) -> Span:
    """From the first to the last byte of some parts of one chunk; see `CutReply`."""
    return Span(min([first for _, first, _ in parts]), max([last for _, _, last in parts]))
