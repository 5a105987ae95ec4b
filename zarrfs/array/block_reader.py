"""Chunks decoded straight into the memory of a block.

A chunk that is contiguous in the block is decoded into its place. Other chunks are decoded into
memory that stays in the processor's cache, and neighbours are copied from there together. Reading
uncompressed chunks straight into their rows of 256 bytes (`preadv`) took 2.5 times as long.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.block import Block, Patch, Piece
from zarrfs.array.chunk_decoder import ChunkDecoder, ChunkResult, StoredBatch
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.store.base import Generation

# From so many chunks on, a listing of the store costs less than to ask for each of them, if at most
# one of so many objects is stored.
_MANY = 256
_SPARSE = 8
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

    block : in a sharded array, its chunks are of one shard, unless `Array.joins_shards` is set.
    """
    if block.count >= _MANY and (read := _read_sparse(array, block)) is not None:
        return read
    patches = _Patches(array, block)
    read = _read_together(array, block, patches)
    if read is None:
        read = _read_as_stored(array, block.carrier, patches)
    if read is None:
        read = read_pieces(array, block.pieces(), block.carrier, scan=patches.scan)
    return read


def read_shards(array: Array, block: Block) -> BlockRead:
    """As `read_block`, for chunks of any shards."""
    if not array.layout.sharded or array.joins_shards:
        return read_block(array, block)
    return _read_all(array, block.split(array.layout, block.count), BlockRead([], 0, 0, None))


def _read_sparse(array: Array, block: Block) -> BlockRead | None:
    """As `read_block`, for chunks of which the store has hardly any; None for any others."""
    by_stored = block.by_stored(array.layout)
    there = array.may_be_stored(list(by_stored))
    if there is None or _SPARSE * len(there) > len(by_stored):
        return None
    one = (slice(0, 1),) * len(block.runs)
    some = next(block.indices())
    block.part[...] = array.fill_chunk(some)[one].view(block.carrier)
    left = [replace(block, runs=by_stored.pop(stored)) for stored in there]
    chunks = block.count - sum(part.count for part in left)
    missing = [(stored, None) for stored in by_stored]
    size = chunks * array.layout.spec(array.layout.read.chunk_shape(some)).nbytes
    return _read_all(array, left, BlockRead(missing, chunks, size, None))


def _read_all(array: Array, parts: Iterable[Block], before: BlockRead) -> BlockRead:
    """As `read_block` for each part, after what was read ``before``."""
    seen = list(before.seen)
    chunks, decoded_bytes = before.chunks, before.decoded_bytes
    for part in parts:
        read = read_block(array, part)
        seen.extend(read.seen)
        chunks += read.chunks
        decoded_bytes += read.decoded_bytes
        if read.error is not None:
            return BlockRead(seen, chunks, decoded_bytes, read.error)
    return BlockRead(seen, chunks, decoded_bytes, None)


def read_pieces(
    array: Array, pieces: Iterable[Piece], carrier: np.dtype[Any], *, scan: bool = False
) -> BlockRead:
    """As `read_block`, chunk by chunk.

    pieces : at most one per chunk.
    carrier : the data type through which chunks are copied.
    scan : as in `Array.read_chunks`.
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
    for result in array.read_chunks(list(by_index), memory, scan=scan):
        if result.chunk is None:
            return read.end(result.error)
        piece = by_index[result.index]
        chunk = result.chunk.view(carrier)
        if not (piece.target.flags.c_contiguous and _same(chunk, piece.target)):
            copy_elements(chunk[piece.source], piece.target)
        read.add([result.index], [result.generation])
    return read.end(None)


class _Patches:
    """The patches of a block, and the indices of their chunks in this order."""

    def __init__(self, array: Array, block: Block) -> None:
        self.patches = list(block.patches(array.layout))
        self.indices = [index for patch in self.patches for index in patch.indices()]
        sharded = array.layout.sharded
        self.whole_shards = sharded and block.has_whole_shards(array.layout)
        self.scan = sharded and block.crosses_shards(array.layout)

    def grouped(self, most: int) -> list[list[Patch]]:
        """The same patches, or parts of them, in groups of at most ``most`` chunks."""
        groups: list[list[Patch]] = []
        room = 0
        for patch in self.patches:
            for part in patch.cut(most):
                if part.chunks > room:
                    groups.append([])
                    room = most
                groups[-1].append(part)
                room -= part.chunks
        return groups


def _read_together(array: Array, block: Block, patches: _Patches) -> BlockRead | None:
    """Decode small chunks in batches, and copy patch by patch; None if that is not possible.

    Starting a copy costs numpy a fifth of the time that it takes to copy 64 KiB. A patch needs one
    copy for all its chunks, and writes its memory in order.
    """
    if array.at_once == 1:
        return None
    indices = patches.indices
    shape, carrier = array.layout.read.regular_shape or (), block.carrier
    size = math.prod(shape) * carrier.itemsize
    part = block.part
    # Whole chunks that are in order in the block need no copy.
    in_order = len(patches.patches) == 1 and block.in_order and part.nbytes == len(indices) * size
    whole = part.reshape(-1, *shape) if in_order and part.dtype == carrier else None
    chunks: Chunk = part

    def memory(first: int, count: int) -> memoryview:
        nonlocal chunks
        if whole is None:
            chunks = np.frombuffer(scratch(count * size), carrier).reshape(count, *shape)
        else:
            chunks = whole[first : first + count]
        return chunks.reshape(-1).view(np.uint8).data

    groups = patches.grouped(array.at_once)
    batches = array.read_together(
        indices,
        memory,
        _sizes(groups),
        whole_shards=patches.whole_shards,
        scan=patches.scan,
    )
    if batches is None:
        return None
    read = _Read(array)
    done = 0
    for group, batch in zip(groups, batches, strict=True):
        for number, result in sorted(batch.alone.items()):
            if result.chunk is None:
                return read.end(result.error)
            chunks[number] = result.chunk.view(carrier)
        first = 0
        for patch in group if whole is None else ():
            found = chunks[first : first + patch.chunks].reshape(*patch.counts, *shape)
            copy_elements(found[(*[slice(None)] * len(shape), *patch.source)], patch.targets)
            first += patch.chunks
        count = len(batch.generations)
        read.add(indices[done : done + count], batch.generations)
        done += count
    return read.end(None)


def _read_as_stored(array: Array, carrier: np.dtype[Any], patches: _Patches) -> BlockRead | None:
    """Copy each chunk once, from its stored element order; None if that is not possible."""
    groups = patches.grouped(array.fetched_at_once)
    found = array.read_as_stored(
        patches.indices, _sizes(groups), whole_shards=patches.whole_shards, scan=patches.scan
    )
    if found is None:
        return None
    copier = _AsStored(array, carrier, found.decoder)
    read = _Read(array)
    coming = iter(groups)
    for batch in found.batches:
        first = 0
        for patch in next(coming):
            if (error := copier.copy(batch, first, patch)) is not None:
                return read.end(error)
            first += patch.chunks
        read.add(batch.indices, batch.generations)
        # The next batch shall get the same memory, which is in the processor's cache.
        del batch
    return read.end(None)


class _AsStored:
    """Copies chunks from the order in which their elements are stored."""

    def __init__(self, array: Array, carrier: np.dtype[Any], decoder: ChunkDecoder) -> None:
        shape = array.layout.read.regular_shape
        assert shape is not None
        assert decoder.as_stored is not None
        self._shape = shape
        self._carrier = carrier
        self._decoder = decoder
        self._fills = decoder.as_stored.fills
        self._memory = scratch(math.prod(shape) * carrier.itemsize)

    def copy(self, batch: StoredBatch, first: int, patch: Patch) -> ChunkError | None:
        """Copy a patch whose chunks start at position ``first`` of the batch."""
        if patch.chunks > 1:
            chunks = self._decoder.decode_evenly_stored(batch, first, patch.counts)
            if chunks is not None:
                every = [slice(None)] * len(patch.counts)
                self._copy(chunks[(*every, *patch.source)], patch.targets)
                return None
        whole = all(map(_is_whole, patch.source, self._shape))
        for number, target in enumerate(patch.pieces(), first):
            memory = self._memory
            direct = self._fills and whole and target.flags.c_contiguous
            if direct and target.dtype == self._carrier:
                memory = target.reshape(-1).view(np.uint8).data
            chunk = self._decoder.decode_as_stored(batch, number, memory)
            if isinstance(chunk, ChunkResult):
                if chunk.chunk is None:
                    return chunk.error
                chunk = chunk.chunk
            if memory is self._memory or not _same(chunk, target):
                self._copy(chunk if whole else chunk[patch.source], target)
        return None

    def _copy(self, elements: Chunk, target: Chunk) -> None:
        stored = elements.dtype
        if stored.isnative:
            elements = elements.view(self._carrier)
        elif target.dtype == self._carrier:
            target = target.view(stored.newbyteorder("<"))
        copy_elements(elements, target)


def _sizes(groups: Iterable[Iterable[Patch]]) -> list[int]:
    """The number of chunks in each group."""
    return [sum([patch.chunks for patch in group]) for group in groups]


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
        if not layout.sharded:
            self._seen.extend(zip(indices, generations, strict=True))
        else:
            # All chunks of a shard come from one state of it, and follow each other.
            last = self._seen[-1][0] if self._seen else None
            for index, generation in zip(indices, generations, strict=True):
                if (stored := layout.stored_index(index)) != last:
                    self._seen.append((stored, generation))
                    last = stored
        self._chunks += len(indices)
        shape = layout.read.regular_shape
        for index in indices if shape is None else indices[:1]:
            size = layout.spec(shape or layout.read.chunk_shape(index)).nbytes
            self._bytes += size if shape is None else size * len(indices)

    def end(self, error: ChunkError | None) -> BlockRead:
        return BlockRead(self._seen, self._chunks, self._bytes, error)


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
