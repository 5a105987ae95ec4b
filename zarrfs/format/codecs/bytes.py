"""``bytes``: elements one after another, in C order, in a given byte order.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.copying import contiguous
from zarrfs.format.data_type import from_big_words, to_big_words


@dataclass(frozen=True, slots=True)
class BytesCodec:
    """A missing ``endian`` means little, as its writers intended."""

    endian: Literal["little", "big"] = "little"

    def bind(self, spec: ChunkSpec) -> BoundBytes:
        if not spec.data_type.fixed_size:
            raise ValueError(f"elements of {spec.data_type.name} have no fixed size")
        stored = spec.data_type.stored_dtype(big_endian=self.endian == "big")
        return BoundBytes.of(spec, stored)


@dataclass(frozen=True, slots=True)
class BoundBytes:
    spec: ChunkSpec
    stored: np.dtype[Any]
    encoded: SizeBound
    is_memory_layout: bool

    @classmethod
    def of(cls, spec: ChunkSpec, stored: np.dtype[Any]) -> BoundBytes:
        """The codec for elements that are stored as ``stored``."""
        in_memory = stored == spec.dtype and spec.data_type.canonical is None
        return cls(spec, stored, SizeBound(spec.nbytes, exact=True), in_memory)

    @property
    def stored_type(self) -> np.dtype[Any] | None:
        """See `BoundArrayBytes`."""
        data_type = self.spec.data_type
        is_plain = data_type.check is None and data_type.canonical is None
        return self.stored if is_plain else None

    def decode(self, data: Buffer) -> Chunk:
        # Not by a call, since most chunks come here.
        if len(data) != self.encoded.maximum:
            raise DecodeError(f"decodes to {len(data)} bytes, expected {self.encoded.maximum}")
        # numpy accepts no buffer without bytes.
        if not data:
            return np.empty(self.spec.shape, self.spec.dtype)
        data_type = self.spec.data_type
        chunk: Chunk = np.ndarray(self.spec.shape, self.stored, data)
        if self.is_memory_layout and data_type.check is None:
            return chunk
        if self.stored != data_type.dtype:
            chunk = from_big_words(chunk, data_type)
        if data_type.check is not None:
            data_type.check(chunk)
        return chunk if data_type.canonical is None else data_type.canonical(chunk)

    def encode(self, chunk: Chunk) -> Buffer:
        if not self.encoded.maximum:
            return b""
        elements = contiguous(chunk, self.spec.dtype).reshape(-1)
        if self.stored != self.spec.dtype:
            elements = to_big_words(elements, self.stored)
        return elements.view(np.uint8).data


@dataclass(frozen=True, slots=True)
class NumpyBytesCodec:
    """Elements as v2 and v1 store them, where each field of a record has its own byte order.

    stored : differs from the type in memory only in byte order.
    """

    stored: np.dtype[Any]

    def bind(self, spec: ChunkSpec) -> BoundBytes:
        return BoundBytes.of(spec, self.stored)
