"""Codec pipelines: configured from metadata, bound to a chunk, then run.

Zarr v3 core specification, section "Codecs": any number of array -> array
codecs, one array -> bytes codec, any number of bytes -> bytes codecs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zarrfs.errors import without_panics
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    BoundArrayArray,
    BoundArrayBytes,
    BoundBytesBytes,
    Buffer,
    BytesBytesCodec,
    Chunk,
    ChunkSpec,
    SizeBound,
)


class CodecPipeline(NamedTuple):
    """Configured codecs in encoding order."""

    array_array: tuple[ArrayArrayCodec, ...]
    array_bytes: ArrayBytesCodec
    bytes_bytes: tuple[BytesBytesCodec, ...]

    def bind(self, spec: ChunkSpec) -> ChunkCodec:
        """The pipeline for chunks that decode to ``spec``.

        Raises ValueError if a codec cannot work on such chunks.
        """
        decoded = spec
        array_array = []
        for codec in self.array_array:
            bound = codec.bind(spec)
            array_array.append(bound)
            spec = bound.encoded
        array_bytes = self.array_bytes.bind(spec)
        bytes_bytes, encoded = bind_bytes(self.bytes_bytes, array_bytes.encoded)
        in_place = array_bytes.is_memory_layout and not array_array and array_bytes.encoded.exact
        size = array_bytes.encoded.maximum if in_place else -1
        return ChunkCodec(
            decoded,
            tuple(array_array),
            array_bytes,
            bytes_bytes,
            encoded,
            size,
            max(decoded.nbytes * (1 if in_place else 2), _beside(bytes_bytes, array_bytes.encoded)),
            _as_stored(array_array, array_bytes, bytes_bytes, spec),
        )


class StoredElements(NamedTuple):
    """A chunk whose elements are stored one after another.

    shape : of the encoded chunk.
    dtype : of a stored element; it may differ from the element's type in byte order.
    axes : for each decoded axis, the encoded axis that it is.
    size : bytes.
    verbatim : whether a stored chunk begins with these bytes, and only checksums follow.
    beside : bytes that decoding takes in addition to a stored chunk.
    """

    shape: Shape
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    size: int
    verbatim: bool
    beside: int


def _as_stored(
    array_array: Sequence[BoundArrayArray],
    array_bytes: BoundArrayBytes,
    bytes_bytes: Sequence[BoundBytesBytes],
    spec: ChunkSpec,
) -> StoredElements | None:
    """How elements are stored; None if the array -> bytes codecs do more than reorder them.

    spec : of the encoded chunk.
    """
    if (stored := getattr(array_bytes, "stored_type", None)) is None:
        return None
    axes = tuple(range(len(spec.shape)))
    for codec in reversed(array_array):
        if (inverse := getattr(codec, "inverse", None)) is None:
            return None
        axes = tuple([axes[axis] for axis in inverse])
    size = array_bytes.encoded.maximum
    verbatim = all(codec.appends for codec in bytes_bytes)
    if not size:
        return None
    # One codec decodes to memory that it gets.
    several = len(_changing(bytes_bytes)) > 1
    beside = _beside(bytes_bytes, array_bytes.encoded) if several else size * (not verbatim)
    return StoredElements(spec.shape, stored, axes, size, verbatim, beside)


def _changing(codecs: Sequence[BoundBytesBytes]) -> Sequence[BoundBytesBytes]:
    """The codecs that do more than append to their input; the others decode to a view."""
    return [c for c in codecs if not c.appends]


def _beside(codecs: Sequence[BoundBytesBytes], decoded: SizeBound) -> int:
    """Bytes that decoding takes in addition to a stored chunk.

    Each codec holds its output, and a copy of that unless it is frugal. Its input is the output of
    the codec before, or the stored chunk. Each output has the size that its bound allows: the sizes
    that a chunk tells may be lies.

    decoded : the output of the first codec, which decodes last.
    """
    most, output = 0, decoded.maximum
    changing = _changing(codecs)
    for codec in codecs:
        if codec in changing:
            held = codec.encoded.maximum if codec is not changing[-1] else 0
            most = max(most, output * (1 if codec.frugal else 2) + held)
        output = codec.encoded.maximum
    return most


def bind_bytes(
    codecs: Sequence[BytesBytesCodec], size: SizeBound
) -> tuple[tuple[BoundBytesBytes, ...], SizeBound]:
    """Bind bytes -> bytes codecs one after another; returns also the size of the last output."""
    bound = []
    for codec in codecs:
        bound.append(codec.bind(size))
        size = bound[-1].encoded
    return tuple(bound), size


def decode_bytes(
    codecs: Sequence[BoundBytesBytes], data: Buffer, out: memoryview | None = None
) -> Buffer:
    """Decode with bytes -> bytes codecs, last first; the first may decode into ``out``."""
    for codec in reversed(codecs):
        data = codec.decode(data, out if codec is codecs[0] else None)
    return data


def bytes_decoder(
    codecs: Sequence[BoundBytesBytes],
) -> Callable[[Buffer, memoryview | None], Buffer]:
    """`decode_bytes` with these codecs, with as few calls as possible."""
    return codecs[0].decode if len(codecs) == 1 else partial(decode_bytes, codecs)


def encode_bytes(codecs: Sequence[BoundBytesBytes], data: Buffer) -> Buffer:
    """Encode with bytes -> bytes codecs, first to last."""
    for codec in codecs:
        data = codec.encode(data)
    return data


class ChunkCodec(NamedTuple):
    """A pipeline bound to one decoded chunk shape.

    spec : the decoded chunk.
    encoded : size in bytes of an encoded chunk.
    in_place : size in bytes of the last output of ``bytes_bytes`` when decoding, if that is the
        chunk in memory; else -1.
    beside : bytes in memory at once in addition to a stored chunk while it is decoded.
    as_stored : the layout of elements in the output of ``bytes_bytes``; None if the elements are
        not merely stored one after another.
    """

    spec: ChunkSpec
    array_array: tuple[BoundArrayArray, ...]
    array_bytes: BoundArrayBytes
    bytes_bytes: tuple[BoundBytesBytes, ...]
    encoded: SizeBound
    in_place: int
    beside: int
    as_stored: StoredElements | None

    @property
    def fills(self) -> bool:
        """Whether the last output of ``bytes_bytes`` can be the bytes of the chunk in memory."""
        return self.in_place > 0 and bool(self.bytes_bytes)

    @property
    def light(self) -> bool:
        """Whether decoding costs little more than copying."""
        plain = self.array_bytes.is_memory_layout and not self.array_array
        return plain and all(codec.light for codec in self.bytes_bytes)

    @property
    def longest_made(self) -> int:
        """The most bytes that any known encoder makes of a chunk."""
        size = self.array_bytes.encoded
        most = size.maximum
        made = most if size.exact else min(most, _enlarged(self.spec.nbytes))
        for each in self.bytes_bytes:
            before, most = most, each.encoded.maximum
            if each.encoded.exact:
                made = most
            elif most >= 2 * before:
                made = min(most, _enlarged(made))
            else:
                # The limit is close to what it makes: Blosc, or a checksum behind another codec.
                made = min(most, made + max(0, most - before))
        return made

    @property
    def verifies(self) -> bool:
        """Whether a checksum is stored with the chunk."""
        return verifies(self.bytes_bytes)

    def decode(self, data: Buffer, memory: memoryview | None = None) -> Chunk:
        """The chunk that ``data`` encodes; it may be a read-only view of ``data`` or ``memory``.

        memory : writable memory of the decoded chunk's size, usable for the result or for an
            intermediate result.

        Raises DecodeError.
        """
        if memory is not None and len(memory) != self.in_place:
            memory = None
        chunk = self.array_bytes.decode(decode_bytes(self.bytes_bytes, data, memory))
        for codec in reversed(self.array_array):
            chunk = codec.decode(chunk)
        return chunk

    def stored_elements(self, data: Buffer, counts: Shape = ()) -> Chunk:
        """A chunk, or several of them that lie side by side, of elements as they are stored.

        Only if ``as_stored`` is set. Copying such elements to their places costs as much as copying
        a chunk that was brought into order before.

        data : what ``bytes_bytes`` decode to, one chunk after the other.
        counts : of chunks along each axis; the result has the shape ``(*counts, *chunk)``.
        """
        stored = self.as_stored
        assert stored is not None
        chunks: Chunk = np.ndarray((*counts, *stored.shape), stored.dtype, data)
        if not self.array_array:
            return chunks
        rank = len(counts)
        return chunks.transpose(*range(rank), *[rank + axis for axis in stored.axes])

    @without_panics
    def encode(self, chunk: Chunk) -> Buffer:
        """The bytes to store for ``chunk``, an array of ``spec.shape`` and ``spec.dtype``."""
        for array_array in self.array_array:
            chunk = array_array.encode(chunk)
        return encode_bytes(self.bytes_bytes, self.array_bytes.encode(chunk))

    @without_panics
    def encode_in_parts(self, chunk: Chunk) -> list[Buffer]:
        """As `encode`, in parts: without a copy for a checksum behind the other bytes."""
        *before, last = self.bytes_bytes or (None,)
        if last is None or not last.appends:
            return [self.encode(chunk)]
        for array_array in self.array_array:
            chunk = array_array.encode(chunk)
        data = encode_bytes(before, self.array_bytes.encode(chunk))
        return [data, last.suffix(data)]

    @without_panics
    def encode_all(self, chunks: Sequence[Chunk]) -> Sequence[Buffer]:
        """The bytes to store for each of several chunks.

        Encodes codec by codec, because each codec displaces most other data from the processor's
        cache.
        """
        for array_array in self.array_array:
            chunks = [array_array.encode(chunk) for chunk in chunks]
        data = [self.array_bytes.encode(chunk) for chunk in chunks]
        for codec in self.bytes_bytes:
            data = codec.encode_all(data)
        return data


def verifies(codecs: Iterable[BoundBytesBytes]) -> bool:
    """Whether one of the codecs stores a checksum."""
    return any(codec.verifies for codec in codecs)


# By how much an encoder enlarges what it cannot compress, at most: one in so many bytes, and some.
# Those of Zstandard, gzip, bzip2, LZMA and pcodec stay below it.
_ENLARGED = 64
_OVERHEAD = 1 << 16


def _enlarged(size: int) -> int:
    return size + size // _ENLARGED + _OVERHEAD
