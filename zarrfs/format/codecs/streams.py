"""``numcodecs.bz2`` and ``numcodecs.lzma``: streams that Python's own library decodes in parts.

https://numcodecs.readthedocs.io/en/stable/compression/bz2.html
https://numcodecs.readthedocs.io/en/stable/compression/lzma.html
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from zarrfs.errors import reason_of
from zarrfs.format.codec import Buffer, SizeBound
from zarrfs.format.codecs.members import BoundStream, Decompressor

# Memory of a decoder in addition to its output: preset 9 needs 65 MiB for its dictionary.
_LZMA_MEMORY = 96 << 20


@dataclass(frozen=True, slots=True)
class Bz2Codec:
    """``level`` from 1 to 9."""

    level: int = 1

    def bind(self, decoded: SizeBound) -> BoundStream:
        compress = partial(bz2.compress, compresslevel=self.level)
        return BoundStream(decoded, bz2.BZ2Decompressor, compress, padded=False, has_checksum=True)


@dataclass(frozen=True, slots=True)
class LzmaCodec:
    """The parameters of `lzma.compress`; ``filters`` as pairs, so that they can be compared."""

    format: int
    check: int
    preset: int | None
    filters: tuple[tuple[tuple[str, Any], ...], ...] | None

    def bind(self, decoded: SizeBound) -> BoundStream:
        # Other formats have neither padding nor a checksum, which an xz stream may lack, too.
        xz = self.format in (lzma.FORMAT_AUTO, lzma.FORMAT_XZ)
        has_checksum = xz and self.check != lzma.CHECK_NONE
        return BoundStream(decoded, self._decompressor, self._encode, xz, has_checksum)

    def _filters(self) -> list[dict[str, Any]] | None:
        return None if self.filters is None else [dict(pairs) for pairs in self.filters]

    def _decompressor(self) -> Decompressor:
        if self.format == lzma.FORMAT_RAW:
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, None, self._filters())
        return lzma.LZMADecompressor(self.format, _LZMA_MEMORY)

    def _encode(self, data: Buffer) -> bytes:
        return lzma.compress(data, self.format, self.check, self.preset, self._filters())


def lzma_codec(
    format: int = lzma.FORMAT_XZ,  # noqa: A002 -- the name in the metadata
    check: int = -1,
    preset: int | None = None,
    filters: tuple[Mapping[str, Any], ...] | None = None,
) -> LzmaCodec:
    """Raises ValueError for parameters that `lzma` refuses, and for too large a dictionary."""
    if filters is not None and not all(isinstance(f, Mapping) for f in filters):
        raise ValueError("filters must be objects")
    frozen = None if filters is None else tuple(tuple(sorted(f.items())) for f in filters)
    for pairs in frozen or ():
        if dict(pairs).get("dict_size", 0) > _LZMA_MEMORY:
            raise ValueError("the dictionary is too large")
    codec = LzmaCodec(format, check, preset, frozen)
    try:
        codec._decompressor()
    except (lzma.LZMAError, TypeError, OverflowError) as error:
        raise ValueError(f"lzma: {reason_of(error)}") from error
    return codec
