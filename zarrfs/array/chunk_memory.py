"""The memory that decoding the chunks of one array takes."""

from __future__ import annotations

from collections.abc import Sequence

from zarrfs.array.stored_chunks import ChunkDecoder
from zarrfs.errors import BudgetExceeded
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.pipeline import ChunkCodec


class ChunkMemory:
    """The most bytes that decoding the chunks of one array takes. Thread-safe.

    A stored chunk may legally be much longer than any encoder makes it: twice the chunk, for many
    codecs. Where such a chunk would take more than half of the memory, only chunks as long as
    encoders make them are fetched.

    Shared state: numbers, each of which `set_memory` replaces.
    """

    def __init__(
        self, layout: ChunkLayout, decoder: ChunkDecoder, memory: int, shard_cost: int
    ) -> None:
        """Raises BudgetExceeded if ``memory`` has no room for a chunk.

        memory : bytes that a chunk may take while it is decoded.
        shard_cost : bytes of it that reading from a shard takes in addition to the chunk.
        """
        self._sharded, self._fixed_size = layout.sharded, layout.data_type.fixed_size
        self._grid, self._largest = layout.read, layout.read.largest_chunk
        self._decoder = decoder
        self._shard_cost = shard_cost
        self.set_memory(memory)

    def set_memory(self, memory: int) -> None:
        """Change ``memory``. Raises BudgetExceeded as the constructor does."""
        codec = self._decoder.codec_of(self._largest)
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
        self._largest_cost = self._cost(codec)

    def longest(self, codec: ChunkCodec) -> int:
        """The most bytes of a stored chunk that is fetched."""
        most = codec.encoded.maximum
        return min(most, self._room) if self._fixed_size else most

    def cost(self, shape: Shape) -> int:
        """The most bytes of memory that decoding one chunk of ``shape`` takes.

        This includes the encoded bytes, the chunk, and a copy of it between two codecs.
        """
        if shape == self._largest:
            return self._largest_cost
        return self._cost(self._decoder.codec_of(shape))

    def total_cost(self, indices: Sequence[Index], beside: int) -> int:
        """As `cost`, for several chunks, each with ``beside`` bytes more."""
        if (shape := self._grid.regular_shape) is not None:
            return len(indices) * (self.cost(shape) + beside)
        return sum([self.cost(self._grid.chunk_shape(index)) + beside for index in indices])

    def cost_in_block(self, shape: Shape) -> int:
        """As `cost`, for a chunk that is copied to its block in the order in which it is stored."""
        regular = self._decoder.as_stored
        if regular is None or regular.as_stored is None or self._sharded:
            return self.cost(shape)
        return self.longest(regular) + regular.as_stored.beside

    def _cost(self, codec: ChunkCodec) -> int:
        cost = self.longest(codec) + self._beside(codec)
        # Metadata do not say how large a chunk of elements of variable length is, and the limit is
        # far above the usual size. If it exceeds the memory, chunks are decoded one at a time.
        return cost if self._fixed_size else min(cost, self._available)

    def _beside(self, codec: ChunkCodec) -> int:
        """Bytes that decoding a chunk takes in addition to the stored one."""
        # Inner chunks are parts of larger buffers and are copied out of them.
        if self._sharded:
            return max(2 * codec.spec.nbytes, codec.beside)
        in_place = codec.array_bytes.is_memory_layout and not codec.bytes_bytes
        return 0 if in_place and not codec.array_array else codec.beside
