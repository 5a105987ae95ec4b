"""What a codec is.

A codec is configured once from metadata, bound once to what it decodes to, and
then only runs. The three kinds follow the Zarr v3 core specification, section
"Codecs": array -> array, array -> bytes and bytes -> bytes.

Decoding never trusts its input: a bound codec returns exactly what its binding
promises or raises `zarrfs.errors.DecodeError`, and it takes no more memory than
the bounds it was given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.data_type import DataType

Buffer: TypeAlias = bytes | bytearray | memoryview
Chunk: TypeAlias = NDArray[Any]
Configuration: TypeAlias = Mapping[str, Any]


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
        """A new chunk of nothing but fill values."""
        chunk = np.empty(self.shape, self.dtype)
        self.fill_into(chunk)
        return chunk

    def is_filled(self, chunk: Chunk) -> bool:
        """Whether ``chunk`` is nothing but fill values, bit for bit."""
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
    """How many bytes an encoded form has: at most ``maximum``, or ``maximum`` exactly."""

    maximum: int
    exact: bool


class BoundArrayArray(Protocol):
    """An array -> array codec bound to the chunk it decodes to."""

    @property
    def encoded(self) -> ChunkSpec:
        """The chunk that the next codec of the pipeline sees."""
        ...

    def decode(self, chunk: Chunk) -> Chunk:
        """From an encoded chunk of shape ``encoded.shape`` to the decoded one; may be a view."""
        ...

    def encode(self, chunk: Chunk) -> Chunk: ...


class BoundArrayBytes(Protocol):
    """An array -> bytes codec bound to the chunk it decodes to."""

    @property
    def encoded(self) -> SizeBound: ...

    @property
    def is_memory_layout(self) -> bool:
        """Whether the bytes are those of the chunk in memory, in C order."""
        ...

    def decode(self, data: Buffer) -> Chunk:
        """The chunk; it may be a read-only view of ``data``."""
        ...

    def encode(self, chunk: Chunk) -> Buffer: ...


@runtime_checkable
class Permutes(BoundArrayArray, Protocol):
    """An array -> array codec that does nothing but permute axes."""

    @property
    def inverse(self) -> tuple[int, ...]:
        """The encoded axis that each decoded axis is."""
        ...


@runtime_checkable
class StoresElements(BoundArrayBytes, Protocol):
    """An array -> bytes codec that stores elements one after another, in C order."""

    @property
    def stored(self) -> np.dtype[Any]:
        """What elements are stored as; it differs from their own type in byte order alone."""
        ...

    @property
    def takes_any(self) -> bool:
        """Whether any bytes are elements, each with its one form."""
        ...


class BoundBytesBytes(Protocol):
    """A bytes -> bytes codec bound to the size of what it decodes to."""

    @property
    def encoded(self) -> SizeBound: ...

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        """The decoded bytes.

        ``out`` is writable memory of exactly the decoded size that may be used
        for the result; where it was used, the result is ``out`` itself.
        """
        ...

    def encode(self, data: Buffer) -> Buffer: ...


class EncodedBatch(NamedTuple):
    """Several encoded chunks.

    pieces : bytes that they are parts of.
    parts : of each chunk the number of its piece, and where it starts and stops in that; None
        for a chunk of which there is nothing.
    """

    pieces: Sequence[Buffer]
    parts: Sequence[tuple[int, int, int] | None]

    def data(self, chunk: int) -> Buffer | None:
        """The bytes of one of them."""
        if (part := self.parts[chunk]) is None:
            return None
        number, start, stop = part
        return memoryview(self.pieces[number])[start:stop]


@runtime_checkable
class DecodesTogether(BoundBytesBytes, Protocol):
    """A bytes -> bytes codec for which many small things at once cost less than one by one."""

    @property
    def worth_together(self) -> bool:
        """Whether what it is bound to is small enough for that."""
        ...

    def decode_together(self, encoded: EncodedBatch, out: memoryview) -> bool:
        """Decode each of ``encoded`` into its place in ``out``, which is writable.

        There they are one after the other, each of exactly the decoded size. False where one
        of them cannot be decoded so; `decode` then tells of each what it is, or why not.
        """
        ...


@runtime_checkable
class EncodesTogether(BoundBytesBytes, Protocol):
    """A bytes -> bytes codec that encodes several things at less cost than one by one."""

    def encode_all(self, data: Sequence[Buffer]) -> list[Buffer]:
        """What `encode` makes of each."""
        ...


@runtime_checkable
class MayBeLight(BoundBytesBytes, Protocol):
    """A bytes -> bytes codec that may cost little more than the memory it goes through."""

    @property
    def light(self) -> bool: ...


@runtime_checkable
class MayVerify(BoundBytesBytes, Protocol):
    """A bytes -> bytes codec that may store a checksum, and fails where it does not fit."""

    @property
    def verifies(self) -> bool: ...


class ArrayArrayCodec(Protocol):
    """A configured array -> array codec."""

    def bind(self, spec: ChunkSpec) -> BoundArrayArray: ...

    def axis_order(self, rank: int) -> tuple[int, ...] | None:
        """Which decoded axis each encoded axis is.

        None where parts of an encoded chunk cannot be decoded on their own
        (then neither can the inner chunks of a shard behind this codec).
        """
        ...


class ArrayBytesCodec(Protocol):
    """A configured array -> bytes codec."""

    def bind(self, spec: ChunkSpec) -> BoundArrayBytes: ...


class BytesBytesCodec(Protocol):
    """A configured bytes -> bytes codec."""

    def bind(self, decoded: SizeBound) -> BoundBytesBytes: ...


Codec: TypeAlias = ArrayArrayCodec | ArrayBytesCodec | BytesBytesCodec
