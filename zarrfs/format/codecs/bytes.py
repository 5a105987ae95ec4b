"""``bytes``: elements one after another, in C order, in a given byte order.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound


@dataclass(frozen=True, slots=True)
class BytesCodec:
    """A missing ``endian`` means little, which is what its writers meant."""

    endian: Literal["little", "big"] = "little"

    def bind(self, spec: ChunkSpec) -> BoundBytes:
        return BoundBytes(spec, spec.data_type.stored_dtype(big_endian=self.endian == "big"))


@dataclass(frozen=True, slots=True)
class BoundBytes:
    spec: ChunkSpec
    stored: np.dtype[Any]

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(self.spec.nbytes, exact=True)

    @property
    def is_memory_layout(self) -> bool:
        return self.stored == self.spec.dtype

    def decode(self, data: Buffer) -> Chunk:
        if len(data) != self.spec.nbytes:
            raise DecodeError(f"decodes to {len(data)} bytes, expected {self.spec.nbytes}")
        # An array of no elements has no buffer that numpy would accept.
        if not self.spec.elements:
            return np.empty(self.spec.shape, self.spec.dtype)
        chunk: Chunk = np.frombuffer(data, self.stored).reshape(self.spec.shape)
        if self.spec.data_type.check is not None:
            self.spec.data_type.check(chunk)
        return chunk if self.is_memory_layout else chunk.astype(self.spec.dtype)

    def encode(self, chunk: Chunk) -> Buffer:
        return np.ascontiguousarray(chunk, self.stored).reshape(-1).view(np.uint8).data
