"""Chunks decoded straight into memory that waits for them.

Each is decoded into its place where it is contiguous there, else into memory that stays hot
and out of which those that go side by side are copied at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.cache.block import Piece
from zarrfs.cache.copying import copy_elements
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk

# A thread keeps the memory that it decodes into, up to this size.
_KEPT = 8 << 20

Notice = Callable[[ChunkResult], None]


class _Scratch(threading.local):
    memory: NDArray[np.uint8] | None = None


_scratch = _Scratch()


def scratch(size: int) -> memoryview:
    """Memory to decode into, valid until this thread asks for some again."""
    memory = _scratch.memory
    if memory is None or memory.nbytes < size:
        memory = np.empty(size, np.uint8)
        if size <= _KEPT:
            _scratch.memory = memory
    return memory.data[:size]


def read_pieces(
    array: Array, pieces: Iterable[Piece], carrier: np.dtype[Any], notice: Notice
) -> ChunkError | None:
    """Decode chunks and copy their pieces; why not, at the first that cannot be had.

    pieces : no two of one chunk.
    carrier : the type that chunks are seen through when they are copied.
    notice : told of each chunk that was decoded, which holds until the next one.
    """
    by_index = {piece.chunk: piece for piece in pieces}
    reader = _Reader(array, by_index, carrier)
    for result in array.read_chunks(list(by_index), reader.memory):
        if result.chunk is None:
            assert result.error is not None
            return result.error
        reader.take(by_index[result.index], result, result.chunk)
        notice(result)
    reader.copy()
    return None


class _Reader:
    """Brings chunks to their places, of a row of them several at once.

    To begin a copy costs numpy a fifth of what it takes to copy 64 KiB, and a row writes its
    memory in order.
    """

    def __init__(self, array: Array, pieces: Mapping[Index, Piece], carrier: np.dtype[Any]) -> None:
        self._grid = array.layout.read
        self._pieces = pieces
        self._carrier = carrier
        self._slots: list[memoryview] = []
        shape = self._grid.regular_shape
        self._size = math.prod(shape or ()) * carrier.itemsize
        if shape is not None and all(shape) and not carrier.hasobject:
            count = min(array.at_once, len(pieces))
            memory = scratch(count * self._size)
            starts = range(0, count * self._size, self._size)
            self._slots = [memory[start : start + self._size] for start in starts]
            self._chunks: Chunk = np.frombuffer(memory, carrier).reshape(count, *shape)
        # The slots of chunks to come, and the next one to be given.
        self._given: dict[Index, int] = {}
        self._next = 0
        # The first of those that wait to be copied, its slot, and how many they are.
        self._piece: Piece | None = None
        self._first = self._count = 0

    def memory(self, index: Index) -> memoryview | None:
        """Where to decode a chunk, as `Array.read_chunks` asks for it."""
        target = self._pieces[index].target
        size = self._size
        if not self._slots:
            size = math.prod(self._grid.chunk_shape(index)) * self._carrier.itemsize
        if target.flags.c_contiguous and target.nbytes == size and target.dtype == self._carrier:
            return target.reshape(-1).view(np.uint8).data if size else None
        if not self._slots:
            return scratch(size)
        if self._next == len(self._slots):
            self.copy()
            self._next = 0
        slot = self._given[index] = self._next
        self._next = slot + 1
        return self._slots[slot]

    def take(self, piece: Piece, result: ChunkResult, chunk: Chunk) -> None:
        """Bring a decoded chunk to its place, at the latest when `copy` is called."""
        slot = self._given.pop(result.index, None)
        if not result.placed:
            chunk = chunk.view(self._carrier)
            if not (piece.target.flags.c_contiguous and _same(chunk, piece.target)):
                copy_elements(chunk[piece.source], piece.target)
            return
        if slot is None:
            return
        first = self._piece
        if (
            first is not None
            and piece.strip is not None
            and piece.strip is first.strip
            and piece.place == first.place + self._count
            and slot == self._first + self._count
        ):
            self._count += 1
            return
        self.copy()
        self._piece, self._first, self._count = piece, slot, 1

    def copy(self) -> None:
        """Bring to their places those that wait for it."""
        piece, first, count = self._piece, self._first, self._count
        self._piece = None
        if piece is None:
            return
        if count == 1 or piece.strip is None:
            copy_elements(self._chunks[first][piece.source], piece.target)
            return
        chunks = self._chunks[first : first + count]
        targets = piece.strip[piece.place : piece.place + count]
        copy_elements(chunks[(slice(None), *piece.source)], targets)


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
