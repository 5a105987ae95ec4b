"""Decodes the chunks of one array, and knows how much memory that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zarrfs.errors import BudgetExceeded, ChunkError, DecodeError, StoreError, is_panic, reason_of
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Generation

Memory = Callable[[Index], memoryview | None]

# Decoded bytes that are copied together: with the encoded bytes they fit a core's own cache.
_AT_ONCE = 1 << 20


# Not frozen: that would triple the cost of creating an instance.
@dataclass(slots=True, eq=False, repr=False)
class ChunkResult:
    """One chunk, or the error of reading it.

    generation : state of the stored object it came from; None if it is not stored.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None


@dataclass(slots=True, eq=False, repr=False)
class StoredChunk:
    """The stored bytes of a chunk.

    key : of the stored object.
    """

    index: Index
    key: str
    data: Buffer
    generation: Generation | None


class ChunkDecoder:
    """Decodes chunks of ``layout``. Thread-safe.

    A stored chunk may legally be much longer than any encoder makes it: twice the chunk, for many
    codecs. Where such a chunk would take more than half of the memory, only chunks as long as
    encoders make them are fetched.

    as_stored : the codec that decodes to elements in stored order, if all chunks have one shape;
        else None.
    at_once : the most chunks that are decoded to memory before they are copied together.

    Shared state: numbers, each of which `set_memory` replaces.
    """

    def __init__(self, layout: ChunkLayout, memory: int, shard_cost: int) -> None:
        """Raises BudgetExceeded if ``memory`` has no room for a chunk.

        memory : bytes that a chunk may take while it is decoded.
        shard_cost : bytes of it that reading from a shard takes in addition to the chunk.
        """
        self._layout = layout
        self._shard_cost = shard_cost
        self._fixed_size = layout.data_type.fixed_size
        self._largest = layout.read.largest_chunk
        shape = layout.read.regular_shape
        self._regular = regular = None if shape is None else layout.chunk_codec(shape)
        self.at_once = 1
        self.as_stored = None
        if regular is not None and regular.as_stored is not None:
            self.at_once = max(1, _AT_ONCE // regular.as_stored.size)
            self.as_stored = regular
        self.set_memory(memory)

    def set_memory(self, memory: int) -> None:
        """Change ``memory``. Raises BudgetExceeded as the constructor does."""
        codec = self.codec_of(self._largest)
        available = memory - self._shard_cost
        room = available - self._beside(codec)
        needed = codec.longest_made
        if self._fixed_size and room < needed:
            raise BudgetExceeded(
                f"decoding one chunk takes up to {needed + memory - room} bytes, the memory budget "
                f"is {memory}: raise it with -o memory="
            )
        self._available = available
        # The other half is for rows of chunks.
        self._room = max(needed, room - available // 2)
        self._largest_cost = self._cost(self._largest)

    def codec_of(self, shape: Shape) -> ChunkCodec:
        """The codec of chunks of that shape."""
        return self._regular or self._layout.chunk_codec(shape)

    def decode(self, stored: StoredChunk | ChunkResult, memory: Memory | None) -> ChunkResult:
        """Decode one chunk; a result is returned unchanged.

        memory : as `Array.read_chunks` takes it.
        """
        if isinstance(stored, ChunkResult):
            return stored
        index = stored.index
        try:
            codec = self._regular or self.codec_of(self._layout.read.chunk_shape(index))
            chunk = codec.decode(stored.data, memory and memory(index))
        except BaseException as error:
            # A decoder's error, or panic, must affect this chunk only.
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            reason = why(error)
        else:
            return ChunkResult(index, chunk, None, stored.generation)
        if self._layout.sharded:
            reason = f"inner chunk {list(index)}: {reason}"
        return ChunkResult(index, None, ChunkError(stored.key, reason), stored.generation)

    def longest(self, shape: Shape) -> int:
        """The most bytes of a stored chunk of ``shape`` that is fetched."""
        most = self.codec_of(shape).encoded.maximum
        return min(most, self._room) if self._fixed_size else most

    def cost(self, shape: Shape) -> int:
        """The most bytes of memory that decoding one chunk of ``shape`` takes.

        This includes the encoded bytes, the chunk, and a copy of it between two codecs.
        """
        return self._largest_cost if shape == self._largest else self._cost(shape)

    def total_cost(self, indices: Sequence[Index], beside: int) -> int:
        """As `cost`, for several chunks, each with ``beside`` bytes more."""
        if (shape := self._layout.read.regular_shape) is not None:
            return len(indices) * (self.cost(shape) + beside)
        return sum([self.cost(self._layout.read.chunk_shape(index)) + beside for index in indices])

    def cost_in_block(self, shape: Shape) -> int:
        """As `cost`, for a chunk that is copied to its block in the order in which it is stored."""
        regular = self.as_stored
        if regular is None or regular.as_stored is None or self._layout.sharded:
            return self.cost(shape)
        return self.longest(shape) + regular.as_stored.beside

    def _cost(self, shape: Shape) -> int:
        cost = self.longest(shape) + self._beside(self.codec_of(shape))
        # Metadata do not say how large a chunk of elements of variable length is, and the limit is
        # far above the usual size. If it exceeds the memory, chunks are decoded one at a time.
        return cost if self._fixed_size else min(cost, self._available)

    def _beside(self, codec: ChunkCodec) -> int:
        """Bytes that decoding a chunk takes in addition to the stored one."""
        # Inner chunks are parts of larger buffers and are copied out of them.
        if self._layout.sharded:
            return max(2 * codec.spec.nbytes, codec.beside)
        in_place = codec.array_bytes.is_memory_layout and not codec.bytes_bytes
        return 0 if in_place and not codec.array_array else codec.beside


def why(error: BaseException) -> str:
    """Why a chunk or shard cannot be read."""
    if isinstance(error, StoreError):
        return error.reason
    if isinstance(error, DecodeError):
        return str(error)
    return f"cannot be decoded: {reason_of(error)}"
