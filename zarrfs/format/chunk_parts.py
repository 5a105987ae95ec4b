"""Parts of a chunk that can be decoded without the rest of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundBytesBytes, Buffer, EncodedPart, SizeBound
from zarrfs.format.data_type import DataType, from_big_words
from zarrfs.format.pipeline import ChunkCodec


class ChunkParts(NamedTuple):
    """Finds parts of chunks with one codec, whose elements are stored in C order.

    encoded : size in bytes of an encoded chunk.
    codec : None if the elements are stored as they are.
    stored : the type of stored elements.
    nbytes : of a decoded chunk.
    """

    encoded: SizeBound
    codec: BoundBytesBytes | None
    stored: np.dtype[Any]
    data_type: DataType
    nbytes: int

    @property
    def head(self) -> int:
        """See `BoundBytesBytes.head`."""
        return 0 if self.codec is None else self.codec.head

    def find(self, head: Buffer, size: int, start: int, stop: int) -> EncodedPart | None:
        """The part that holds a decoded chunk's bytes from ``start`` to ``stop`` (exclusive).

        head, size : see `BoundBytesBytes.part`.

        Returns None if only the whole chunk can be decoded, or is damaged.
        """
        start, stop = self._elements(start, stop)
        if self.codec is not None:
            return self.codec.part(head, size, start, stop)
        if size != self.encoded.maximum:
            return None
        return EncodedPart([(start, stop - start)], start, stop - start, lambda pieces: pieces[0])

    def decode(
        self, part: EncodedPart, pieces: Sequence[Buffer], start: int, stop: int
    ) -> memoryview:
        """The bytes for which `find` has returned ``part``, in memory. Raises DecodeError.

        pieces : the bytes of its ranges.
        """
        if any(len(p) != length for p, (_, length) in zip(pieces, part.ranges, strict=True)):
            raise DecodeError("has fewer bytes than it says")
        data = memoryview(part.decode(pieces))
        if len(data) != part.nbytes:
            raise DecodeError(f"decodes to {len(data)} bytes, expected {part.nbytes}")
        begin, end = self._elements(start, stop)
        # A block of a codec may end within an element.
        data = data[begin - part.first : end - part.first]
        if self.stored != self.data_type.dtype:
            words = np.frombuffer(data, self.stored)
            data = from_big_words(words, self.data_type).view(np.uint8).data
        return data[start - begin : stop - begin]

    def _elements(self, start: int, stop: int) -> tuple[int, int]:
        """The bytes of all elements of which one byte is wanted."""
        item = self.data_type.item_size
        return start // item * item, -(-stop // item) * item


def chunk_parts(codec: ChunkCodec) -> ChunkParts | None:
    """Parts of chunks with this codec; None if only whole chunks can be decoded."""
    if codec.as_stored is None or codec.array_array:
        return None
    divides: BoundBytesBytes | None = None
    if codec.bytes_bytes:
        (first, *others) = codec.bytes_bytes
        if others or not first.head:
            return None
        divides = first
    spec = codec.spec
    return ChunkParts(codec.encoded, divides, codec.as_stored.dtype, spec.data_type, spec.nbytes)
