"""numcodecs filters on bytes: ``numcodecs.shuffle``, checksums of four bytes, and filters of v2.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html
https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html
https://numcodecs.readthedocs.io/en/stable/checksum32.html

A filter of v2 interprets its input buffer as its own dtype, whatever codec wrote the buffer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound
from zarrfs.format.codecs.numcodecs_config import FAILURES, configured, encoded_types, own_members

_CHECKSUM = 4  # bytes
_CHECKSUMS = ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3")


@dataclass(frozen=True, slots=True)
class BufferFilter:
    """``configuration`` is that of numcodecs, as JSON text, so that it can be compared."""

    configuration: str

    def bind(self, decoded: SizeBound) -> BoundBufferFilter:
        members = json.loads(self.configuration)
        if members.get("prefix") is not None:
            members["prefix"] = bytes(members["prefix"])
        codec = configured(members)
        source, target = encoded_types(members)
        elements, rest = divmod(decoded.maximum, source.itemsize)
        if rest and decoded.exact:
            raise ValueError(
                f"{members['id']}: {decoded.maximum} bytes are not whole elements of {source}"
            )
        size = members.get("elementsize", 1)
        if decoded.exact and size > 1 and decoded.maximum % size:
            raise ValueError(f"elementsize {size} does not divide {decoded.maximum}")
        if members["id"] in _CHECKSUMS:
            encoded = SizeBound(decoded.maximum + _CHECKSUM, decoded.exact)
        elif members["id"] == "base64":
            encoded = SizeBound(4 * -(-decoded.maximum // 3), decoded.exact)
        elif members["id"] == "packbits":
            encoded = SizeBound(1 + -(-elements // 8), decoded.exact)
        else:
            encoded = SizeBound(elements * target.itemsize, decoded.exact)
        return BoundBufferFilter(codec, source, decoded, encoded)


def shuffle(elementsize: int = 4) -> BufferFilter:
    """The first bytes of all elements, then all second bytes, and so on; ``elementsize`` in bytes.

    Raises ValueError.
    """
    if isinstance(elementsize, bool) or not isinstance(elementsize, int):
        raise ValueError(f"elementsize is {elementsize!r}")
    return BufferFilter(json.dumps({"elementsize": elementsize, "id": "shuffle"}))


def checksum(codec_id: str, **configuration: Any) -> BufferFilter:
    """Raises ValueError for parameters that numcodecs does not take."""
    members = own_members(codec_id, configuration)
    # bytes() of a number would be that many zeros.
    if not isinstance(members.get("prefix"), list | tuple | None):
        raise ValueError(f"{codec_id}: the prefix is not a list of bytes")
    codec = BufferFilter(json.dumps(members, sort_keys=True))
    codec.bind(SizeBound(0, exact=True))
    return codec


@dataclass(frozen=True, slots=True)
class BoundBufferFilter(BoundBytesBytes):
    codec: Any
    source: np.dtype[Any]
    decoded: SizeBound
    encoded: SizeBound

    @property
    def verifies(self) -> bool:
        return self.codec.codec_id in _CHECKSUMS

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        self.encoded.check(len(data))
        if not len(data) and not self.verifies:
            return b""
        try:
            with np.errstate(all="ignore"):
                decoded = self.codec.decode(np.frombuffer(data, np.uint8))
        except FAILURES as error:
            raise DecodeError(f"{self.codec.codec_id}: {reason_of(error)}") from error
        result = _as_bytes(decoded)
        self.decoded.check(len(result), "decodes to")
        return result

    def encode(self, data: Buffer) -> Buffer:
        if not len(data) and not self.verifies:
            return b""
        with np.errstate(all="ignore"):
            encoded = self.codec.encode(np.frombuffer(data, self.source))
        return _as_bytes(encoded)


def _as_bytes(value: Any) -> memoryview:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return memoryview(value)
