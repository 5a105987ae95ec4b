"""Chunks decoded straight into memory that waits for them.

One after the other is decoded into memory that stays hot, or into its place where it is
contiguous there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult, Memory
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
    notice : told of each chunk that was copied, which holds until the next one.
    """
    by_index = {piece.chunk: piece for piece in pieces}
    for result in array.read_chunks(list(by_index), _memory(array, by_index, carrier)):
        if result.chunk is None:
            assert result.error is not None
            return result.error
        target = by_index[result.index].target
        chunk = result.chunk.view(carrier)
        if result.borrowed or not (target.flags.c_contiguous and _same(chunk, target)):
            copy_elements(chunk[by_index[result.index].source], target)
        notice(result)
    return None


def _memory(array: Array, pieces: Mapping[Index, Piece], carrier: np.dtype[Any]) -> Memory:
    grid, item = array.layout.read, carrier.itemsize
    regular = grid.regular_shape

    def memory(index: Index) -> memoryview | None:
        size = math.prod(regular or grid.chunk_shape(index)) * item
        target = pieces[index].target
        if target.nbytes == size and target.flags.c_contiguous and target.dtype == carrier:
            return target.reshape(-1).view(np.uint8).data if size else None
        return scratch(size)

    return memory


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
