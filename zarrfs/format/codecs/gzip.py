"""``gzip``: one or more gzip members (RFC 1952).

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import deflate

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, SizeBound

_TRAILER = 8
_MEMBER = b"\x1f\x8b\x08"
# Deflate's stored blocks cost 5 bytes in 16 KiB at worst; the rest is for headers and
# trailers, of which several members have several.
_OVERHEAD = 1 << 16
_DEFAULT_LEVEL = 6


@dataclass(frozen=True, slots=True)
class GzipCodec:
    """``level`` from 0 to 9."""

    level: int = 5

    def bind(self, decoded: SizeBound) -> BoundGzip:
        return BoundGzip(self, decoded)


@dataclass(frozen=True, slots=True)
class BoundGzip:
    codec: GzipCodec
    decoded: SizeBound

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(2 * self.decoded.maximum + _OVERHEAD, exact=False)

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if self.decoded.exact:
            whole = self._single_member(data)
            if whole is not None:
                return whole
        return decompress(data, self.decoded, zlib.MAX_WBITS | 16)

    def _single_member(self, data: Buffer) -> Buffer | None:
        """What libdeflate makes of a file that is exactly one member, else None.

        It stops silently at the first member's end, so that end is proved: the last
        bytes must be the checksum and size of what was decoded, and nothing behind
        the first header may look like another one.
        """
        if bytes(data).find(_MEMBER, 1) >= 0:
            return None
        try:
            whole: bytearray = deflate.gzip_decompress(data, self.decoded.maximum)
        except (deflate.DeflateError, ValueError):
            return None
        trailer = deflate.crc32(whole).to_bytes(4, "little") + (len(whole) & 0xFFFFFFFF).to_bytes(
            4, "little"
        )
        if len(whole) != self.decoded.maximum or bytes(data[-_TRAILER:]) != trailer:
            return None
        return whole

    def encode(self, data: Buffer) -> Buffer:
        # No file name and no time stamp: equal chunks encode to equal bytes. Smaller than what
        # zlib makes of arrays at that level, in a third of the time.
        return deflate.gzip_compress(data, effective_level(self.codec.level))


def effective_level(level: int) -> int:
    """A level that libdeflate knows; what zlib makes of -1 is 6."""
    return _DEFAULT_LEVEL if level < 0 else level


def decompress(data: Buffer, decoded: SizeBound, wbits: int) -> bytes:
    """All members of a zlib-family stream, never more than ``decoded.maximum`` bytes.

    wbits : as for `zlib.decompressobj`.

    Raises DecodeError on a bad or truncated member, on bytes that are no member,
    and where the size is not the one expected.
    """
    parts: list[bytes] = []
    size = 0
    rest = bytes(data)
    while rest or not parts:
        member = zlib.decompressobj(wbits)
        try:
            part = member.decompress(rest, decoded.maximum - size + 1)
        except zlib.error as error:
            raise DecodeError(f"deflate: {error}") from error
        size += len(part)
        if size > decoded.maximum:
            raise DecodeError(f"decodes to more than {decoded.maximum} bytes")
        if not member.eof:
            raise DecodeError("deflate: the stream ends too early")
        parts.append(part)
        rest = member.unused_data
    if decoded.exact and size != decoded.maximum:
        raise DecodeError(f"decodes to {size} bytes, expected {decoded.maximum}")
    return b"".join(parts)
