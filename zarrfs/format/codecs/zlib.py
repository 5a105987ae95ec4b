"""``numcodecs.zlib``: one or more zlib streams (RFC 1950).

https://numcodecs.readthedocs.io/en/stable/compression/zlib.html
"""

from __future__ import annotations

from dataclasses import dataclass

import deflate

from zarrfs.format.codec import Buffer, SizeBound
from zarrfs.format.codecs.gzip import decompress, effective_level

_OVERHEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class ZlibCodec:
    """``level`` from -1 to 9."""

    level: int = 1

    def bind(self, decoded: SizeBound) -> BoundZlib:
        return BoundZlib(self, decoded)


@dataclass(frozen=True, slots=True)
class BoundZlib:
    codec: ZlibCodec
    decoded: SizeBound

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(2 * self.decoded.maximum + _OVERHEAD, exact=False)

    @property
    def verifies(self) -> bool:
        return True

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        return decompress("zlib", data, self.decoded, out)

    def encode(self, data: Buffer) -> Buffer:
        return deflate.zlib_compress(data, effective_level(self.codec.level))
