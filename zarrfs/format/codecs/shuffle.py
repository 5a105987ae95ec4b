"""``numcodecs.shuffle``: the first bytes of all elements, then all second bytes, and so on.

https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numcodecs.shuffle import Shuffle

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound


@dataclass(frozen=True, slots=True)
class ShuffleCodec:
    """``elementsize`` in bytes."""

    elementsize: int = 4

    def __post_init__(self) -> None:
        if isinstance(self.elementsize, bool) or not isinstance(self.elementsize, int):
            raise ValueError(f"elementsize is {self.elementsize!r}")

    def bind(self, decoded: SizeBound) -> BoundShuffle:
        if decoded.exact and self.elementsize > 1 and decoded.maximum % self.elementsize:
            raise ValueError(f"elementsize {self.elementsize} does not divide {decoded.maximum}")
        return BoundShuffle(decoded, Shuffle(self.elementsize))


@dataclass(frozen=True, slots=True)
class BoundShuffle(BoundBytesBytes):
    encoded: SizeBound
    codec: Shuffle

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if len(data) > self.encoded.maximum:
            raise DecodeError(f"has {len(data)} bytes, expected {self.encoded.maximum}")
        if not len(data):
            return b""
        try:
            return memoryview(self.codec.decode(np.frombuffer(data, np.uint8)))
        except ValueError as error:
            raise DecodeError(f"shuffle: {error}") from error

    def encode(self, data: Buffer) -> Buffer:
        if not len(data):
            return b""
        return memoryview(self.codec.encode(np.frombuffer(data, np.uint8)))
