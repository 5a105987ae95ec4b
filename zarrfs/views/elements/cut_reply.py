"""Replies of bytes that are cut from chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zarrfs.array.part_reader import Span
from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import in_sequence
from zarrfs.views.elements.rows import Cuts
from zarrfs.views.view import Answer, Data

# A part of a chunk may be returned without a copy, which keeps the whole chunk in memory, if it has
# at least one in so many of the chunk's bytes.
_LARGE_PART = 2


def cut(chunk: Chunk, start: int, stop: int) -> memoryview:
    """Bytes of a chunk in C order, without a copy if they lie so in memory."""
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
