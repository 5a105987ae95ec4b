"""``numcodecs.crc32``, ``crc32c``, ``adler32``, ``fletcher32`` and ``jenkins_lookup3``.

https://numcodecs.readthedocs.io/en/stable/checksum32.html

Each codec adds four bytes to its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound
from zarrfs.format.codecs.numcodecs_config import FAILURES, configured, own_members

_SIZE = 4


@dataclass(frozen=True, slots=True)
class ChecksumCodec:
    """``codec_id`` as in numcodecs, ``configuration`` as pairs of its parameters."""

    codec_id: str
    configuration: tuple[tuple[str, Any], ...]

    def bind(self, decoded: SizeBound) -> BoundChecksum:
        return BoundChecksum(SizeBound(decoded.maximum + _SIZE, decoded.exact), self._codec())

    def _codec(self) -> Any:
        return configured({**dict(self.configuration), "id": self.codec_id})


def checksum(codec_id: str, **configuration: Any) -> ChecksumCodec:
    """Raises ValueError for parameters that numcodecs does not take."""
    del (configuration := own_members(codec_id, configuration))["id"]
    if (prefix := configuration.get("prefix")) is not None:
        # bytes() of a number would be that many zeros.
        if not isinstance(prefix, list | tuple):
            raise ValueError(f"{codec_id}: the prefix is not a list of bytes")
        configuration["prefix"] = bytes(prefix)
    codec = ChecksumCodec(codec_id, tuple(sorted(configuration.items())))
    codec.bind(SizeBound(0, exact=True))
    return codec


@dataclass(frozen=True, slots=True)
class BoundChecksum(BoundBytesBytes):
    encoded: SizeBound
    codec: Any

    @property
    def verifies(self) -> bool:
        return True

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if len(data) < _SIZE:
            raise DecodeError(f"{len(data)} bytes are too few for a checksum")
        try:
            decoded = self.codec.decode(data)
        except FAILURES as error:
            raise DecodeError(reason_of(error)) from error
        return memoryview(decoded).cast("B")

    def encode(self, data: Buffer) -> Buffer:
        return np.asarray(self.codec.encode(np.frombuffer(data, np.uint8))).data.cast("B")
