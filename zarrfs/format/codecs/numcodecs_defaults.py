"""Codecs with a v3 form, configured with numcodecs' defaults: ``numcodecs.blosc`` and others.

https://numcodecs.readthedocs.io/en/stable/
"""

from __future__ import annotations

from typing import Any

from zarrfs.format.codecs.blosc import BloscCodec
from zarrfs.format.codecs.gzip import GzipCodec
from zarrfs.format.codecs.zstd import ZstdCodec

_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle", -1: "shuffle"}


def blosc(
    cname: str = "lz4",
    clevel: int = 5,
    shuffle: int | str = 1,
    blocksize: int = 0,
    typesize: int | None = None,
) -> BloscCodec:
    """``shuffle`` by number; -1 lets numcodecs choose: bits for elements of one byte."""
    if isinstance(shuffle, str):
        name = shuffle
    elif shuffle == -1 and typesize == 1:
        name = "bitshuffle"
    elif shuffle in _SHUFFLES:
        name = _SHUFFLES[shuffle]
    else:
        raise ValueError(f"shuffle is {shuffle!r}")
    return BloscCodec(cname, clevel, name, blocksize, typesize or 1)


def gzip(level: int = 1) -> GzipCodec:
    return GzipCodec(level)


def zstd(level: int = 0, checksum: Any = False) -> ZstdCodec:
    return ZstdCodec(level, bool(checksum))
