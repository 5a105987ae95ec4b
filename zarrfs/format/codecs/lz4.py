"""``numcodecs.lz4``: the decoded size, then one LZ4 block.

https://numcodecs.readthedocs.io/en/stable/compression/lz4.html
"""

from __future__ import annotations

from dataclasses import dataclass

from numcodecs import lz4

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundCompressor, Buffer, SizeBound

_HEADER = 4


@dataclass(frozen=True, slots=True)
class Lz4Codec:
    acceleration: int = 1

    def bind(self, decoded: SizeBound) -> BoundLz4:
        return BoundLz4(self, decoded)


@dataclass(frozen=True, slots=True)
class BoundLz4(BoundCompressor):
    codec: Lz4Codec
    decoded: SizeBound

    @property
    def encoded(self) -> SizeBound:
        # LZ4_COMPRESSBOUND
        size = self.decoded.maximum
        return SizeBound(size + size // 255 + 16 + _HEADER, exact=False)

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        # numcodecs allocates the size in the header, so zarrfs checks that first.
        size = int.from_bytes(data[:_HEADER], "little")
        if len(data) <= _HEADER and (size or not data):
            raise DecodeError(f"{len(data)} bytes are too few for LZ4")
        self.decoded.check(size, "the LZ4 header says")
        if size == 0:
            return b""
        if out is not None and len(out) != size:
            out = None
        try:
            return lz4.decompress(data, out)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"LZ4: {error}") from error

    def encode(self, data: Buffer) -> Buffer:
        return lz4.compress(data, self.codec.acceleration)  # type: ignore[no-any-return]
