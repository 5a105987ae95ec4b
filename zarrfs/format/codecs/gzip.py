"""``gzip``: one or more gzip members (RFC 1952); ``numcodecs.zlib``: zlib streams (RFC 1950).

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html
https://numcodecs.readthedocs.io/en/stable/compression/zlib.html
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import deflate
import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundCompressor, Buffer, SizeBound
from zarrfs.format.codecs.members import decode_members
from zarrfs.format.codecs.native import libdeflate

_DEFAULT_LEVEL = 6

Form = Literal["gzip", "zlib"]
"""The header and trailer around a deflate stream."""

_WBITS: Mapping[Form, int] = {"gzip": zlib.MAX_WBITS | 16, "zlib": zlib.MAX_WBITS}
# No file name and no time stamp: equal chunks encode to equal bytes. libdeflate's output is smaller
# than that of zlib for arrays at that level, in a third of the time.
_COMPRESS: Mapping[Form, Callable[[Buffer, int], Buffer]] = {
    "gzip": deflate.gzip_compress,
    "zlib": deflate.zlib_compress,
}


@dataclass(frozen=True, slots=True)
class DeflateCodec:
    """``level`` from 0 to 9; of zlib also -1."""

    form: Form
    level: int = 1

    def bind(self, decoded: SizeBound) -> BoundDeflate:
        return BoundDeflate(self.form, self.level, decoded)


@dataclass(frozen=True, slots=True)
class BoundDeflate(BoundCompressor):
    """
    form : of each stream.
    level : from -1, which means 6 as in zlib, to 9.
    """

    form: Form
    level: int
    decoded: SizeBound

    @property
    def verifies(self) -> bool:
        return True

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        """Decode all members of a stream.

        Zeros may follow a member of gzip, as from tape; Python's `gzip` skips them, too. Raises
        DecodeError for a bad or truncated member, for other bytes that are no member, and for
        another size than the expected one.
        """
        if self.decoded.exact and (library := libdeflate()) is not None:
            if out is None:
                # Uncleared memory is safe here, because none of its old bytes become visible.
                out = np.empty(self.decoded.maximum, np.uint8).data
            if library.fills(self.form, data, out):
                return out
        # Several members, padding, or an error in the only one.
        padded = self.form == "gzip"
        return decode_members(data, self.decoded, lambda: _Member(_WBITS[self.form]), padded, out)

    def encode(self, data: Buffer) -> Buffer:
        return _COMPRESS[self.form](data, _DEFAULT_LEVEL if self.level < 0 else self.level)


class _Member:
    """A `Decompressor` of one member."""

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)
        self._rest = b""

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: Buffer, max_length: int) -> bytes:
        try:
            part = self._zlib.decompress(self._rest or data, max_length)
        except zlib.error as error:
            raise DecodeError(f"deflate: {error}") from error
        self._rest = self._zlib.unconsumed_tail
        return part
