"""``crc32c``: appends the CRC-32C of the bytes, four bytes little-endian.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html
"""

from __future__ import annotations

from dataclasses import dataclass

import google_crc32c
import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound

_SIZE = 4
# Bytes that take less time to copy than a numpy array of them takes to make.
_SHORT = 4 << 10


@dataclass(frozen=True, slots=True)
class Crc32cCodec:
    def bind(self, decoded: SizeBound) -> BoundCrc32c:
        return BoundCrc32c(SizeBound(decoded.maximum + _SIZE, decoded.exact))


@dataclass(frozen=True, slots=True)
class BoundCrc32c(BoundBytesBytes):
    encoded: SizeBound

    @property
    def verifies(self) -> bool:
        return True

    @property
    def appends(self) -> bool:
        return True

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if len(data) < _SIZE:
            raise DecodeError(f"{len(data)} bytes are too few for a CRC-32C")
        body = memoryview(data)[:-_SIZE]
        stored = int.from_bytes(data[-_SIZE:], "little")
        if (computed := _crc32c(body)) != stored:
            raise DecodeError(f"CRC-32C is {computed:08x}, stored is {stored:08x}")
        return body

    def encode(self, data: Buffer) -> Buffer:
        return b"".join((data, self.suffix(data)))

    def suffix(self, data: Buffer) -> bytes:
        return _crc32c(data).to_bytes(_SIZE, "little")


def _crc32c(data: Buffer) -> int:
    # google_crc32c either requires a read-only buffer or copies any input that is not bytes.
    source = bytes(data) if len(data) <= _SHORT else np.frombuffer(data, np.uint8)
    return int(google_crc32c.value(source))
