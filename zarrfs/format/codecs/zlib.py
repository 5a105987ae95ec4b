"""``numcodecs.zlib``: one or more zlib streams (RFC 1950).

https://numcodecs.readthedocs.io/en/stable/compression/zlib.html
"""

from __future__ import annotations

from dataclasses import dataclass

from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs.gzip import BoundDeflate


@dataclass(frozen=True, slots=True)
class ZlibCodec:
    """``level`` from -1 to 9."""

    level: int = 1

    def bind(self, decoded: SizeBound) -> BoundDeflate:
        return BoundDeflate("zlib", self.level, decoded)
