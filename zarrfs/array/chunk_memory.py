"""The memory that decoding a chunk takes."""

from __future__ import annotations

from zarrfs.array.chunk_decoder import ChunkDecoder
from zarrfs.errors import BudgetExceeded
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.pipeline import ChunkCodec

# By how much a codec enlarges a chunk that it cannot compress: no encoder in use exceeds this.
_ENLARGED = 64
_OVERHEAD = 1 << 16


class ChunkMemory:
    """The most bytes that decoding the chunks of one array takes.

    A stored chunk may legally be much larger than any encoder makes it: twice the chunk, for many
    codecs. Where such a chunk would take more than half of the memory, only chunks as long as an
    encoder makes them are fetched.
    """

    def __init__(
        self, layout: ChunkLayout, decoder: ChunkDecoder, memory: int, shard_cost: int
    ) -> None:
        """Raises BudgetExceeded if ``memory`` has no room for a chunk.

        memory : bytes that a chunk may take while it is decoded.
        shard_cost : bytes of it that reading from a shard takes in addition to the chunk.
        """
        self._layout = layout
        self._decoder = decoder
        self._memory = memory - shard_cost
        largest = layout.read.largest_chunk
        codec = decoder.codec_of(largest)
        room = self._memory - self._copies(codec) * codec.spec.nbytes
        needed = self._needed(codec)
        if layout.data_type.fixed_size and room < needed:
            raise BudgetExceeded(
                f"decoding one chunk takes up to {needed + memory - room} bytes, the memory budget "
                f"is {memory}: raise it with -o memory="
            )
        # The other half is for rows of chunks.
        self._room = max(needed, room - self._memory // 2)

    def _copies(self, codec: ChunkCodec) -> int:
        """How many copies of a chunk are in memory at once, in addition to the stored one."""
        # Inner chunks are parts of larger buffers and are copied out of them.
        if self._layout.sharded:
            return 2
        in_place = codec.array_bytes.is_memory_layout and not codec.bytes_bytes
        return 0 if in_place and not codec.array_array else codec.copies

    def _needed(self, codec: ChunkCodec) -> int:
        """The most bytes that any known encoder makes of a chunk."""
        most = codec.encoded.maximum
        if codec.encoded.exact:
            return most
        nbytes = codec.spec.nbytes
        return min(most, nbytes + nbytes // _ENLARGED + _OVERHEAD)

    def longest(self, codec: ChunkCodec) -> int:
        """The most bytes of a stored chunk that is fetched."""
        most = codec.encoded.maximum
        return min(most, self._room) if self._layout.data_type.fixed_size else most

    def fetched(self, shape: Shape) -> int:
        """As `longest`, for a chunk of ``shape``."""
        return self.longest(self._decoder.codec_of(shape))

    def cost(self, shape: Shape) -> int:
        """The most bytes of memory that decoding one chunk of ``shape`` takes.

        This includes the encoded bytes, the chunk, and a copy of it between two codecs.
        """
        codec = self._decoder.codec_of(shape)
        cost = self.longest(codec) + self._copies(codec) * codec.spec.nbytes
        # Metadata do not say how large a chunk of elements of variable length is, and the limit is
        # far above the usual size. If it exceeds the memory, chunks are decoded one at a time.
        return cost if self._layout.data_type.fixed_size else min(cost, self._memory)

    def cost_in_block(self, shape: Shape) -> int:
        """As `cost`, for a chunk that is copied to its block in the order in which it is stored."""
        codec = self._decoder.codec_of(shape)
        if codec.as_stored is None or self._decoder.as_stored is None or self._layout.sharded:
            return self.cost(shape)
        return self.longest(codec) + codec.as_stored.copies * codec.spec.nbytes
