"""``gzip``: one or more gzip members (RFC 1952); ``numcodecs.zlib``: zlib streams (RFC 1950).

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html
https://numcodecs.readthedocs.io/en/stable/compression/zlib.html
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import deflate

from zarrfs.format.codec import Buffer, SizeBound
from zarrfs.format.codecs.members import BoundStream
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
    """``level`` from 0 to 9; of zlib also -1, which means 6."""

    form: Form
    level: int = 1

    def bind(self, decoded: SizeBound) -> BoundStream:
        # Zeros may follow a member of gzip, as from tape; Python's `gzip` skips them, too.
        library = libdeflate()
        return BoundStream(
            decoded,
            partial(_Member, _WBITS[self.form]),
            self._encode,
            padded=self.form == "gzip",
            has_checksum=True,
            fills=None if library is None else partial(library.fills, self.form),
        )

    def _encode(self, data: Buffer) -> Buffer:
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
        part = self._zlib.decompress(self._rest or data, max_length)
        self._rest = self._zlib.unconsumed_tail
        return part
