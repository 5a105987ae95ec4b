"""``vlen-utf8`` and ``vlen-bytes``: a count, then the length and the bytes of each element.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numcodecs import vlen

from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.extension_types.variable import LARGEST_CHUNK

_HEADER = 4


@dataclass(frozen=True, slots=True)
class VlenCodec:
    """``elements`` is the name of their data type."""

    elements: Literal["string", "bytes"]

    def bind(self, spec: ChunkSpec) -> BoundVlen:
        if spec.data_type.name != self.elements:
            raise ValueError(f"elements must be {self.elements}, not {spec.data_type.name}")
        return BoundVlen(spec, vlen.VLenUTF8() if self.elements == "string" else vlen.VLenBytes())


@dataclass(frozen=True, slots=True)
class BoundVlen:
    spec: ChunkSpec
    codec: Any
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(LARGEST_CHUNK, exact=False)

    def decode(self, data: Buffer) -> Chunk:
        # numcodecs allocates memory for the count, so zarrfs checks it first.
        count = int.from_bytes(data[:_HEADER], "little")
        if len(data) < _HEADER or count != self.spec.elements:
            raise DecodeError(f"has {count} elements, expected {self.spec.elements}")
        if len(data) < _HEADER + 4 * count:
            raise DecodeError(f"{len(data)} bytes are too few for {count} elements")
        try:
            chunk: Chunk = self.codec.decode(data)
        except (ValueError, SystemError, MemoryError, OverflowError) as error:
            raise DecodeError(f"{self.codec.codec_id}: {reason_of(error)}") from error
        return chunk.reshape(self.spec.shape)

    def encode(self, chunk: Chunk) -> Buffer:
        return self.codec.encode(np.ascontiguousarray(chunk))  # type: ignore[no-any-return]
