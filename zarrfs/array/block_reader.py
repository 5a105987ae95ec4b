"""Chunks decoded straight into the memory of a block.

Each chunk is decoded once and copied at most once. A chunk that is contiguous in the block is
decoded into its place. Other chunks are decoded into memory that stays in the processor's cache, in
the order in which their elements are stored, and neighbours are copied from there together: to
start a copy costs numpy a fifth of the time that it takes to copy 64 KiB, and together they write
their memory in order. Reading uncompressed chunks straight into their rows of 256 bytes (`preadv`)
took 2.5 times as long.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.block import Block, Patch, Piece
from zarrfs.array.chunk_decoder import ChunkResult, StoredChunk
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.copying import copy_elements
from zarrfs.format.pipeline import ChunkCodec, bytes_decoder
from zarrfs.store.base import Generation

# From so many chunks on, a listing of the store costs less than to ask for each of them, if at most
# one of so many objects is stored.
_MANY = 256
_SPARSE = 8
# A thread keeps the memory that it decodes into, up to this size.
_KEPT = 8 << 20
# Bytes of a chunk up to which it is copied together with its neighbours, even if it has to be
# brought to them first.
_SHORT = 4 << 10


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
    """Decode the chunks of a block and copy their parts, up to the first chunk with an error."""
    if block.count >= _MANY and (read := _read_sparse(array, block)) is not None:
        return read
    scan = array.layout.sharded and block.crosses_shards(array.layout)
    return _read_patches(array, block.patches(array.layout), block.carrier, scan=scan)


def read_pieces(array: Array, pieces: Iterable[Piece], carrier: np.dtype[Any]) -> BlockRead:
    """As `read_block`, for at most one piece of each chunk.

    carrier : the data type through which chunks are copied.
    """
    if array.layout.sharded:
        pieces = sorted(pieces, key=lambda piece: array.layout.stored_index(piece.chunk))
    return _read_patches(array, map(Patch.of, pieces), carrier)


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
    read = _read_patches(
        array, (patch for part in left for patch in part.patches(array.layout)), block.carrier
    )
    chunks = block.count - sum(part.count for part in left)
    size = chunks * array.layout.spec(array.layout.read.chunk_shape(some)).nbytes
    return BlockRead(
        [*((stored, None) for stored in by_stored), *read.seen],
        chunks + read.chunks,
        size + read.decoded_bytes,
        read.error,
    )


def _read_patches(
    array: Array, patches: Iterable[Patch], carrier: np.dtype[Any], *, scan: bool = False
) -> BlockRead:
    """As `read_block`.

    patches : those of a shard follow each other.
    scan : as in `Array.read_encoded`.
    """
    layout = array.layout
    parts = [part for patch in patches for part in patch.cut(array.decoder.at_once)]
    indices = [index for part in parts for index in part.indices()]
    reader = _PatchReader(array, carrier, array.read_encoded(indices, scan=scan))
    seen: list[tuple[Index, Generation | None]] = []
    done = decoded_bytes = 0
    for part in parts:
        if (error := reader.read(part)) is not None:
            return BlockRead(seen, done, decoded_bytes, error)
        count = part.chunks
        if not layout.sharded:
            seen.extend(zip(indices[done : done + count], reader.generations, strict=True))
        else:
            # All chunks of a shard come from one state of it, and follow each other.
            stored = layout.stored_index(part.first)
            if not seen or seen[-1][0] != stored:
                seen.append((stored, reader.generations[0]))
        shape = layout.read.regular_shape or layout.read.chunk_shape(part.first)
        decoded_bytes += count * layout.spec(shape).nbytes
        done += count
    return BlockRead(seen, done, decoded_bytes, None)


class _PatchReader:
    """Decodes the chunks of patches, and copies them to their places.

    generations : of the stored objects from which the chunks of the last patch came.
    """

    def __init__(
        self, array: Array, carrier: np.dtype[Any], coming: Iterator[StoredChunk | ChunkResult]
    ) -> None:
        """
        coming : the chunks of all patches, in order.
        """
        self._decoder = array.decoder
        self._grid = array.layout.read
        self._codec = array.decoder.as_stored
        self._carrier = carrier
        self._coming = coming
        self._decode = bytes_decoder(() if self._codec is None else self._codec.bytes_bytes)
        self.generations: list[Generation | None] = []

    def read(self, patch: Patch) -> ChunkError | None:
        """Read one patch; in an array without such a codec as `as_stored`, of one chunk."""
        self.generations = []
        if self._codec is None:
            return self._read_chunk(patch)
        return self._read_chunks(self._codec, patch)

    def _read_chunks(self, codec: ChunkCodec, patch: Patch) -> ChunkError | None:
        stored_as = codec.as_stored
        assert stored_as is not None
        size, count, targets = stored_as.size, patch.chunks, patch.targets
        place = self._place(codec, patch)
        memory = place
        if place is None and (size <= _SHORT or not stored_as.verbatim):
            memory = scratch(count * size)
        pieces: list[Chunk] = []
        coming = list(islice(self._coming, count))
        self.generations = [stored.generation for stored in coming]
        decode = self._decode
        decoded = list(range(len(coming))) if self._decode_evenly(coming, memory) else []
        for number, stored in enumerate(() if decoded else coming):
            slot = memory and memory[number * size : (number + 1) * size]
            data: Buffer | None = None
            if isinstance(stored, StoredChunk):
                try:
                    data = decode(stored.data, slot)
                except Exception:  # noqa: BLE001 - `ChunkDecoder.decode` says what is wrong
                    data = None
            if data is not None and data is not slot and len(data) == size <= _SHORT and slot:
                slot[:] = data
                data = slot
            if data is not None and data is slot:
                decoded.append(number)
                continue
            if data is None or len(data) != size:
                result = self._decoder.decode(stored, None)
                if result.chunk is None:
                    return result.error
                chunk = result.chunk
            else:
                chunk = codec.stored_elements(data)
            pieces = pieces or list(patch.pieces())
            self._copy(_cut(chunk, patch), pieces[number])
        if memory is None or memory is place:
            return None
        if len(decoded) == count:
            chunks = codec.stored_elements(memory, patch.counts)
            every = [slice(None)] * len(patch.counts)
            where: tuple[Any, ...] = (*every, *patch.source, ...)
            self._copy(chunks[where], targets)
            return None
        for number in decoded:
            chunk = codec.stored_elements(memory[number * size : (number + 1) * size])
            self._copy(_cut(chunk, patch), pieces[number])
        return None

    def _decode_evenly(
        self, coming: Sequence[StoredChunk | ChunkResult], memory: memoryview | None
    ) -> bool:
        """Decode all these chunks to ``memory`` in one step.

        Returns False if they have to be decoded one by one.
        """
        assert self._codec is not None
        codecs = self._codec.bytes_bytes
        if memory is None or len(codecs) != 1 or len(coming) == 1:
            return False
        data = [stored.data for stored in coming if isinstance(stored, StoredChunk)]
        return len(data) == len(coming) and codecs[0].decode_evenly(data, memory)

    def _place(self, codec: ChunkCodec, patch: Patch) -> memoryview | None:
        """The memory that chunks are decoded into if that is their place; else None."""
        targets = patch.targets
        whole = all(map(_is_whole, patch.source, codec.spec.shape))
        if not (codec.fills and whole and targets.flags.c_contiguous):
            return None
        same = targets.dtype == self._carrier
        return targets.reshape(-1).view(np.uint8).data if same else None

    def _read_chunk(self, patch: Patch) -> ChunkError | None:
        (target,) = patch.pieces()
        size = math.prod(self._grid.chunk_shape(patch.first)) * self._carrier.itemsize
        memory: memoryview | None = None
        in_place = target.flags.c_contiguous and target.nbytes == size
        if in_place and target.dtype == self._carrier:
            memory = target.reshape(-1).view(np.uint8).data if size else None
        else:
            memory = scratch(size)
        result = self._decoder.decode(next(self._coming), lambda _: memory)
        if result.chunk is None:
            return result.error
        chunk = result.chunk.view(self._carrier)
        if not (in_place and _same(chunk, target)):
            copy_elements(_cut(chunk, patch), target)
        self.generations.append(result.generation)
        return None

    def _copy(self, elements: Chunk, target: Chunk) -> None:
        stored = elements.dtype
        if stored.isnative:
            elements = elements.view(self._carrier)
        elif target.dtype == self._carrier:
            target = target.view(stored.newbyteorder("<"))
        copy_elements(elements, target)


def _cut(chunk: Chunk, patch: Patch) -> Chunk:
    # Without the ellipsis, a text without axes would lose the zeros behind it.
    where: tuple[Any, ...] = (*patch.source, ...)
    part: Chunk = chunk[where]
    return part


def _is_whole(part: slice, length: int) -> bool:
    return bool(part.start == 0 and part.stop == length)


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
