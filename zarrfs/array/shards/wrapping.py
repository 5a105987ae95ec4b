"""Codecs around a whole shard, which must be undone before its chunks can be read."""

from __future__ import annotations

from typing import NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound
from zarrfs.format.pipeline import bind_bytes, decode_bytes


class Wrapping(NamedTuple):
    """The codecs around the shards of one level.

    encoded, decoded : the most bytes that a shard may have with and without them; None if there are
        none, so that the shard need not be read whole.
    """

    codecs: tuple[BoundBytesBytes, ...]
    encoded: int | None
    decoded: int | None

    @property
    def cost(self) -> int:
        """The most bytes of memory that undoing the codecs takes."""
        return (self.encoded or 0) + (self.decoded or 0)

    def undo(self, data: Buffer) -> memoryview:
        """The bare shard. Raises DecodeError."""
        return memoryview(decode_bytes(self.codecs, data))


def bind_wrappings(layout: ChunkLayout, shard_shape: Shape, largest: int) -> tuple[Wrapping, ...]:
    """The wrapping of each level of a shard of ``shard_shape``, outermost first.

    largest : the most bytes to allow. The legal size of a shard is far above any real one, and only
        a hostile shard would use it.
    """
    shapes = [shard_shape, *(level.inner_shape for level in layout.levels)]
    size = layout.chunk_codec(shapes[-1]).encoded
    wrappings = []
    for level, outer in zip(reversed(layout.levels), reversed(shapes[:-1]), strict=True):
        size = level.index_codec(outer).shard_bound(size)
        if level.around:
            decoded = min(size.maximum, largest)
            codecs, size = bind_bytes(level.around, SizeBound(decoded, exact=False))
            wrappings.append(Wrapping(codecs, min(size.maximum, largest), decoded))
        else:
            wrappings.append(Wrapping((), None, None))
    return tuple(reversed(wrappings))
