"""The codec protocols.

A codec is configured once from metadata and bound once to the chunk or size that it decodes to.
After that it only runs. The three kinds follow the Zarr v3 core specification, section "Codecs":
array -> array, array -> bytes and bytes -> bytes.

Decoding never trusts its input: a bound codec returns exactly the chunk or size of its binding, or
raises `zarrfs.errors.DecodeError`. It takes no more memory than the limits that it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import DecodeError
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.data_type import DataType

Buffer: TypeAlias = bytes | bytearray | memoryview
Chunk: TypeAlias = NDArray[Any]

# Bytes of headers and of flushed blocks that a compressed stream may have, by its length.
_LEAST_OVERHEAD, _MOST_OVERHEAD = 1 << 12, 1 << 16


class ChunkSpec(NamedTuple):
    """A decoded chunk: its shape, its element type, and the bytes of one fill element."""

    shape: Shape
    data_type: DataType
    fill: bytes

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data_type.dtype

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the decoded chunk in memory."""
        return self.elements * self.dtype.itemsize

    def filled(self) -> Chunk:
        """A new chunk in which every element is the fill value."""
        chunk = np.empty(self.shape, self.dtype)
        self.fill_into(chunk)
        return chunk

    def is_filled(self, chunk: Chunk) -> bool:
        """Whether every element of ``chunk`` is the fill value, bit for bit."""
        if not self.data_type.fixed_size:
            value = self.data_type.element(self.fill)[()]
            return all(type(v) is type(value) and v == value for v in chunk.flat)
        raw = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
        fill = np.frombuffer(self.fill, np.uint8)
        return bool((raw.reshape(-1, len(fill)) == fill).all())

    def fill_into(self, chunk: Chunk) -> None:
        """Overwrite ``chunk`` with the fill value, bit for bit."""
        chunk[...] = self.data_type.element(self.fill)


class SizeBound(NamedTuple):
    """The number of bytes of an encoded form: at most ``maximum``, or exactly ``maximum``."""

    maximum: int
    exact: bool

    @property
    def compressed(self) -> SizeBound:
        """The bound of a compressed stream of these bytes.

        A stream may be longer than any encoder makes it. Only the first of several compressors in a
        row may make twice as much: k of them could otherwise make 2ᵏ times as much.
        """
        more = self.maximum if self.exact else self.maximum // 64
        # Memory is reserved for so many bytes, also for each of a million chunks of one element.
        more += min(_MOST_OVERHEAD, _LEAST_OVERHEAD + 64 * self.maximum)
        return SizeBound(self.maximum + more, exact=False)

    def check(self, size: int, what: str = "has") -> None:
        """Raises DecodeError for a size that the form cannot have."""
        if size > self.maximum or (self.exact and size != self.maximum):
            most = "" if self.exact else "at most "
            raise DecodeError(f"{what} {size} bytes, expected {most}{self.maximum}")


class BoundArrayArray(Protocol):
    """An array -> array codec bound to the chunk it decodes to.

    One that only permutes axes has ``inverse``: for each decoded axis, the encoded axis that it is.
    """

    @property
    def encoded(self) -> ChunkSpec:
        """The chunk that the next codec of the pipeline gets."""
        ...

    def decode(self, chunk: Chunk) -> Chunk:
        """Decode a chunk of shape ``encoded.shape``; the result may be a view of it."""
        ...

    def encode(self, chunk: Chunk) -> Chunk: ...


class BoundArrayBytes(Protocol):
    """An array -> bytes codec bound to the chunk it decodes to.

    One that stores elements one after another, in C order, has ``stored_type``, which differs from
    the type in memory only in byte order. It is None if not all bytes are valid elements, or if an
    element has several stored forms.
    """

    @property
    def encoded(self) -> SizeBound: ...

    @property
    def is_memory_layout(self) -> bool:
        """Whether the encoded bytes are those of the chunk in memory, in C order."""
        ...

    def decode(self, data: Buffer) -> Chunk:
        """The chunk; it may be a read-only view of ``data``."""
        ...

    def encode(self, chunk: Chunk) -> Buffer: ...


class EncodedPart(NamedTuple):
    """A part of an encoded form that can be decoded without the rest.

    ranges : offsets and lengths, in bytes, of what has to be read of the encoded form.
    first : position of its first decoded byte.
    nbytes : decoded bytes, at least those that are wanted.
    decode : returns the decoded bytes, given those of all ranges. Raises DecodeError.
    """

    ranges: Sequence[tuple[int, int]]
    first: int
    nbytes: int
    decode: Callable[[Sequence[Buffer]], Buffer]


class BoundBytesBytes:
    """A bytes -> bytes codec bound to the size that it decodes to.

    A codec can do what it overrides beside `encoded`, `decode` and `encode`, and no more.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # a property of a base would be the default of a field of that name

        @property
        def encoded(self) -> SizeBound: ...

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        """The decoded bytes.

        out : writable memory of exactly the decoded size that the codec may use for the result.
            If the codec used it, the result is ``out`` itself.
        """
        raise NotImplementedError

    def decode_evenly(self, data: Sequence[Buffer], out: memoryview) -> bool:
        """Decode several inputs to parts of ``out`` of one size, all in one step.

        Returns False, with undefined content of ``out``, if the codec has no such step, or any of
        the inputs needs `decode` to say what is wrong.
        """
        return False

    def encode(self, data: Buffer) -> Buffer:
        raise NotImplementedError

    def encode_all(self, data: Sequence[Buffer]) -> list[Buffer]:
        """The results of `encode` for all inputs, in order."""
        return [self.encode(each) for each in data]

    @property
    def light(self) -> bool:
        """Whether it costs little more than copying its bytes."""
        return False

    @property
    def frugal(self) -> bool:
        """Whether it decodes with little memory beside its input and its result."""
        return False

    @property
    def verifies(self) -> bool:
        """Whether it stores a checksum, and fails if that does not match."""
        return False

    @property
    def appends(self) -> bool:
        """Whether it only appends a few bytes to its input, which `suffix` returns."""
        return False

    def suffix(self, data: Buffer) -> bytes:
        raise NotImplementedError

    @property
    def head(self) -> int:
        """Bytes at the start of an encoded form that say where its parts are.

        0 if it has no parts that can be decoded without the rest.
        """
        return 0

    def part(self, head: Buffer, size: int, start: int, stop: int) -> EncodedPart | None:
        """The part that holds the decoded bytes from ``start`` to ``stop`` (exclusive, not equal).

        head : the first bytes of the encoded form, as many as `head` says or as there are.
        size : bytes of the encoded form.

        None if only the whole can be decoded, or is damaged.
        """
        return None


class BoundCompressor(BoundBytesBytes):
    """A codec that compresses ``decoded``, and decodes an exact size into memory of its caller."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def decoded(self) -> SizeBound: ...

    @property
    def encoded(self) -> SizeBound:
        return self.decoded.compressed

    @property
    def frugal(self) -> bool:
        return self.decoded.exact


class ArrayArrayCodec(Protocol):
    """A configured array -> array codec."""

    def bind(self, spec: ChunkSpec) -> BoundArrayArray: ...

    def axis_order(self, rank: int) -> tuple[int, ...] | None:
        """For each encoded axis, the decoded axis that it is.

        None if parts of an encoded chunk cannot be decoded on their own. Then the inner chunks
        of a shard behind this codec cannot be decoded on their own either.
        """
        ...


class ArrayBytesCodec(Protocol):
    """A configured array -> bytes codec."""

    def bind(self, spec: ChunkSpec) -> BoundArrayBytes: ...


class BytesBytesCodec(Protocol):
    """A configured bytes -> bytes codec."""

    def bind(self, decoded: SizeBound) -> BoundBytesBytes: ...


Codec: TypeAlias = ArrayArrayCodec | ArrayBytesCodec | BytesBytesCodec
