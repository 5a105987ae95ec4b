"""Chunks decoded straight into the memory of a block.

A chunk that is contiguous in the block is decoded into its place. Other chunks are decoded into
memory that stays in the processor's cache, and neighbours are copied from there together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array, AsStored
from zarrfs.array.block import Block, Piece, Strip
from zarrfs.array.chunk_decoder import ChunkResult, DecodedBatch
from zarrfs.array.copying import copy_elements
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation

# A thread keeps the memory that it decodes into, up to this size.
_KEPT = 8 << 20


class BlockRead(NamedTuple):
    """The result of reading a block.

    seen : stored objects that were read, and their states.
    chunks : how many were copied.
    decoded_bytes : of these chunks.
    error : why the other chunks cannot be read.
    """

    seen: Sequence[tuple[Index, Generation | None]]
    chunks: int
    decoded_bytes: int
    error: ChunkError | None


class _Scratch(threading.local):
    memory: NDArray[np.uint8] | None = None


_scratch = _Scratch()


def scratch(size: int) -> memoryview:
    """Memory to decode into, valid until this thread calls this function again."""
    memory = _scratch.memory
    if memory is None or memory.nbytes < size:
        memory = np.empty(size, np.uint8)
        if size <= _KEPT:
            _scratch.memory = memory
    return memory.data[:size]


def read_block(array: Array, block: Block) -> BlockRead:
    """Decode the chunks of a block and copy their parts, up to the first chunk with an error.

    block : in a sharded array, its chunks are of one shard.
    """
    strips = _Strips(array, block)
    indices = list(block.indices())
    batches = array.read_together(indices, strips.memory)
    if batches is None:
        found = array.read_as_stored(indices)
        if found is None:
            return read_pieces(array, block.pieces(), block.carrier)
        return _copy_as_stored(array, block, found)
    read = _Read(array)
    done = 0
    for batch in batches:
        count, error = strips.take(batch)
        read.add(indices[done : done + count], batch.generations)
        done += count
        if error is not None:
            return read.end(error)
    return read.end(None)


def read_blocks(array: Array, blocks: Iterable[Block]) -> BlockRead:
    """Read one block after the other, up to the first chunk with an error."""
    seen: list[tuple[Index, Generation | None]] = []
    chunks = decoded_bytes = 0
    for block in blocks:
        read = read_block(array, block)
        seen.extend(read.seen)
        chunks += read.chunks
        decoded_bytes += read.decoded_bytes
        if read.error is not None:
            return BlockRead(seen, chunks, decoded_bytes, read.error)
    return BlockRead(seen, chunks, decoded_bytes, None)


def read_pieces(array: Array, pieces: Iterable[Piece], carrier: np.dtype[Any]) -> BlockRead:
    """As `read_block`, chunk by chunk.

    pieces : at most one per chunk.
    carrier : the data type through which chunks are copied.
    """
    by_index = {piece.chunk: piece for piece in pieces}
    grid = array.layout.read

    def memory(index: Index) -> memoryview | None:
        target = by_index[index].target
        size = math.prod(grid.chunk_shape(index)) * carrier.itemsize
        if target.flags.c_contiguous and target.nbytes == size and target.dtype == carrier:
            return target.reshape(-1).view(np.uint8).data if size else None
        return scratch(size)

    read = _Read(array)
    for result in array.read_chunks(list(by_index), memory):
        if result.chunk is None:
            return read.end(result.error)
        piece = by_index[result.index]
        chunk = result.chunk.view(carrier)
        if not (piece.target.flags.c_contiguous and _same(chunk, piece.target)):
            copy_elements(chunk[piece.source], piece.target)
        read.add([result.index], [result.generation])
    return read.end(None)


def _copy_as_stored(array: Array, block: Block, found: AsStored) -> BlockRead:
    """Copy each chunk once, straight from its stored element order."""
    read = _Read(array)
    shape, carrier = array.layout.read.regular_shape, block.carrier
    assert shape is not None
    size = math.prod(shape) * carrier.itemsize
    memory = scratch(size)
    pieces = _places(block, shape)
    for batch in found.batches:
        generations = batch.generations
        for number in range(len(generations)):
            source, target = next(pieces)
            in_place = found.fills and source is None and target.flags.c_contiguous
            if in_place and target.dtype == carrier:
                chunk = found.decode(batch, number, target.reshape(-1).view(np.uint8).data)
            else:
                in_place = False
                chunk = found.decode(batch, number, memory)
            if isinstance(chunk, ChunkResult):
                if chunk.chunk is None:
                    read.add(batch.indices[:number], generations)
                    return read.end(chunk.error)
                chunk = chunk.chunk
            stored = chunk.dtype
            if stored.isnative:
                chunk = chunk.view(carrier)
            elif target.dtype == carrier:
                target = target.view(stored.newbyteorder("<"))
            if not (in_place and _same(chunk, target)):
                copy_elements(chunk if source is None else chunk[source], target)
        read.add(batch.indices, generations)
    return read.end(None)


def _places(block: Block, shape: Shape) -> Iterator[tuple[tuple[slice, ...] | None, Chunk]]:
    """For each chunk, the part to copy (None: all of it) and its target."""
    for _, source, targets in block.strips():
        part = None if all(map(_is_whole, source, shape)) else source
        for number in range(len(targets)):
            yield part, targets[number, ...]  # a view for rank 0, too


def _is_whole(part: slice, length: int) -> bool:
    return bool(part.start == 0 and part.stop == length)


class _Read:
    """Collects the results of reads."""

    def __init__(self, array: Array) -> None:
        self._layout = array.layout
        self._seen: list[tuple[Index, Generation | None]] = []
        self._chunks = self._bytes = 0

    def add(self, indices: Sequence[Index], generations: Sequence[Generation | None]) -> None:
        """Add chunks that were copied, and the states of the objects that they came from."""
        if not indices:
            return
        layout = self._layout
        # All chunks of a shard come from one state of it.
        if not layout.sharded:
            self._seen.extend(zip(indices, generations, strict=False))
        elif not self._seen:
            self._seen.append((layout.stored_index(indices[0]), generations[0]))
        self._chunks += len(indices)
        shape = layout.read.regular_shape
        for index in indices if shape is None else indices[:1]:
            size = layout.spec(shape or layout.read.chunk_shape(index)).nbytes
            self._bytes += size if shape is None else size * len(indices)

    def end(self, error: ChunkError | None) -> BlockRead:
        return BlockRead(self._seen, self._chunks, self._bytes, error)


class _Strips:
    """Copies chunks that were decoded one after the other to the strips of a block.

    Starting a copy costs numpy a fifth of the time that it takes to copy 64 KiB. A strip needs one
    copy for several chunks, and writes its memory in order.
    """

    def __init__(self, array: Array, block: Block) -> None:
        self._shape = array.layout.read.regular_shape or ()
        self._carrier = block.carrier
        self._size = math.prod(self._shape) * block.carrier.itemsize
        # Whole chunks that are in order in the block need no copy.
        self._whole: Chunk | None = None
        part = block.part
        same = part.dtype == block.carrier and part.nbytes == block.count * self._size
        if same and block.in_order:
            self._whole = part.reshape(block.count, *self._shape)
        self._chunks: Chunk = part
        self._strips = block.strips()
        self._strip: Strip | None = None
        self._place = 0

    def memory(self, first: int, count: int) -> memoryview:
        """Memory to decode chunks into; see `Array.read_together`."""
        if self._whole is not None:
            self._chunks = self._whole[first : first + count]
            return self._chunks.reshape(-1).view(np.uint8).data
        memory = scratch(count * self._size)
        self._chunks = np.frombuffer(memory, self._carrier).reshape(count, *self._shape)
        return memory

    def take(self, batch: DecodedBatch) -> tuple[int, ChunkError | None]:
        """Copy a batch to its places; returns the number of chunks, and the error of the next."""
        for number, result in sorted(batch.alone.items()):
            if result.chunk is None:
                return self._copy(number, batch), result.error
        return self._copy(len(batch.generations), batch), None

    def _copy(self, count: int, batch: DecodedBatch) -> int:
        """Copy the first ``count`` chunks of a batch."""
        for number, result in batch.alone.items():
            if number < count:
                assert result.chunk is not None
                self._chunks[number] = result.chunk.view(self._carrier)
        done = 0
        while self._whole is None and done < count:
            if self._strip is None:
                self._strip, self._place = next(self._strips), 0
            chunks, source, targets = self._strip
            end = min(len(chunks), self._place + count - done)
            stop = done + end - self._place
            parts = self._chunks[done:stop]
            copy_elements(parts[(slice(None), *source)], targets[self._place : end])
            done, self._place = stop, end
            if end == len(chunks):
                self._strip = None
        return count


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
