"""Blosc 1 containers whose streams other libraries encode and decode.

numcodecs' build of Blosc does not support Snappy; cramjam does. Streams of zlib are encoded by
libdeflate, and decoded by it if they are long: that takes half of the time that zlib takes (45 to
80 % for chunks of 1 MiB). Of Zstandard, the system's library would gain nothing.

numcodecs then unshuffles a container that needs no compressor: Blosc stores a stream as it is if
the stream is as long as its decoded bytes, whatever the compressor.

https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import deflate
import numpy as np
from numcodecs import blosc

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer
from zarrfs.format.codecs.blosc_header import (
    COMPRESSOR,
    HEADER,
    LENGTH,
    MEMCPYED,
    SHUFFLED,
    UNSPLIT,
    Header,
    checked,
)
from zarrfs.format.codecs.native import libdeflate

_LZ4, _SNAPPY, _ZLIB = 1, 2, 3
_NUMBERS = {"snappy": _SNAPPY, "zlib": _ZLIB}
# The numbers of compressors of which `handles` may be true.
HANDLED = frozenset(_NUMBERS.values())
# Mean decoded bytes of streams of zlib from which on calling libdeflate for each of them pays: with
# 12 KiB it takes as long as zlib, with 25 KiB two thirds of the time.
_LONG = 16 << 10


_Fills = Callable[[memoryview, memoryview], bool]
"""Whether a stream, the first argument, decodes to bytes that fill the second one."""


def handles(data: Buffer) -> bool:
    """Whether `fill` should try to decode a container, of at least a header."""
    flags = data[2]
    if flags & MEMCPYED or (number := flags >> COMPRESSOR) not in (_SNAPPY, _ZLIB):
        return False
    if number == _SNAPPY:
        return True
    header = Header(*HEADER.unpack_from(data))
    if libdeflate() is None or not header.blocksize:
        return False
    streams = len(header.offsets) * (header.typesize if header.is_split else 1)
    return header.nbytes >= _LONG * streams


def fill(data: Buffer, out: memoryview) -> bool:
    """Decode a container to ``out``; False: c-blosc has to decode it.

    This module `handles` the container, and its header gives the correct size. Takes the memory of
    about three blocks in addition to ``out``. Raises DecodeError for a container of Snappy streams
    that is damaged. c-blosc may decode streams of zlib that are refused here, such as those with
    bytes behind their end.
    """
    header = Header(*HEADER.unpack_from(data))
    only_here = header.flags >> COMPRESSOR == _SNAPPY
    fills = _snappy_fills if only_here else _zlib_fills
    try:
        _decode(checked(header, len(data)), memoryview(data), out, fills)
    except DecodeError:
        if only_here:
            raise
        return False
    return True


def _decode(header: Header, source: memoryview, out: memoryview, fills: _Fills) -> None:
    blocks = header.blocks(out)
    if not header.flags & SHUFFLED:
        for at, block in zip(header.offsets, blocks, strict=True):
            _decompress(source, at, header, block, fills)
        return
    stored = _StoredBlock(header)
    for at, block in zip(header.offsets, blocks, strict=True):
        _decompress(source, at, header, stored.resized(len(block)), fills)
        stored.unshuffle_into(block)


def encodes(cname: str, clevel: int, shuffle: int) -> bool:
    """Whether `encode` should encode with a compressor, rather than c-blosc.

    libdeflate takes a third to nine tenths of the time of zlib, and makes shorter streams. But the
    shuffled bytes come by way of LZ4, so at level 1, where zlib is fast, that gains nothing.
    """
    if cname == "zlib":
        return clevel > 1 or shuffle == blosc.NOSHUFFLE
    return cname == "snappy"


def encode(
    data: Buffer, cname: str, clevel: int, shuffle: int, blocksize: int, typesize: int
) -> Buffer:
    """A container that every Blosc built with the compressor decodes, in blocks as for LZ4.

    The parameters are those of `numcodecs.blosc.compress`. If Snappy does not shorten the data,
    they are stored uncompressed, in a container that every Blosc decodes.
    """
    settings = clevel, shuffle, blocksize, typesize
    # LZ4 brings the header, and the shuffled bytes.
    by_lz4 = bytearray(
        blosc.compress(
            np.zeros(len(data), np.uint8) if shuffle == blosc.NOSHUFFLE else data,
            b"lz4",
            *settings,
        )
    )
    header = Header(*HEADER.unpack_from(by_lz4)).with_compressor(_NUMBERS[cname])
    if not header.flags & MEMCPYED:
        shuffled = memoryview(data)
        if header.flags & SHUFFLED:
            # Without the flag for the shuffle, a decoder leaves the blocks shuffled.
            by_lz4[2] &= ~SHUFFLED
            shuffled = memoryview(blosc.decompress(by_lz4))
        pieces = _compress(header, shuffled, _compressor(cname, clevel))
        cbytes = HEADER.size + sum(map(len, pieces))
        if cbytes < HEADER.size + header.nbytes:
            return b"".join((HEADER.pack(*header._replace(cbytes=cbytes)), *pieces))
    elif cname == "zlib":
        return blosc.compress(data, b"zlib", *settings)  # type: ignore[no-any-return]
    cbytes = HEADER.size + header.nbytes
    header = header._replace(flags=header.flags | MEMCPYED, cbytes=cbytes)
    return b"".join((HEADER.pack(*header), data))


class _StoredBlock:
    """One block in a container of its own, unsplit and uncompressed, to be unshuffled."""

    _START = HEADER.size + 2 * LENGTH.size

    def __init__(self, header: Header) -> None:
        flags = header.flags | UNSPLIT
        self._header = header._replace(flags=flags).with_compressor(_LZ4)
        # Each block fills its part of the memory before any of it is read.
        self._container = np.empty(self._START + header.blocksize, np.uint8).data

    def resized(self, size: int) -> memoryview:
        """The block's memory, cut to ``size`` bytes, which are at most the block size."""
        cbytes = self._START + size
        header = self._header._replace(nbytes=size, blocksize=size, cbytes=cbytes)
        HEADER.pack_into(self._container, 0, *header)
        LENGTH.pack_into(self._container, HEADER.size, self._START - LENGTH.size)
        LENGTH.pack_into(self._container, self._START - LENGTH.size, size)
        return self._container[self._START : cbytes]

    def unshuffle_into(self, block: memoryview) -> None:
        try:
            blosc.decompress(self._container[: self._START + len(block)], block)
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"Blosc: {error}") from error


def _decompress(
    source: memoryview, at: int, header: Header, block: memoryview, fills: _Fills
) -> None:
    """Fill ``block``, still shuffled, from the streams whose offset is at ``at``."""
    (offset,) = LENGTH.unpack_from(source, at)
    for part in header.splits(block):
        start = offset + LENGTH.size
        if start > len(source):
            raise DecodeError(f"a Blosc stream at {offset}, there are {len(source)} bytes")
        (length,) = LENGTH.unpack_from(source, offset)
        offset = start + length
        if offset > len(source):
            raise DecodeError(f"a Blosc stream to {offset}, there are {len(source)} bytes")
        stream = source[start:offset]
        if length == len(part):
            part[:] = stream
        elif not fills(stream, part):
            raise DecodeError(f"a Blosc stream at {start} does not decode to {len(part)} bytes")


def _snappy_fills(stream: memoryview, part: memoryview) -> bool:
    cramjam = _cramjam()
    try:
        # Into memory of the right size, so that no size in the stream is trusted.
        filled: int = cramjam.snappy.decompress_raw_into(stream, part)
    except cramjam.DecompressionError:
        return False
    return filled == len(part)


def _zlib_fills(stream: memoryview, part: memoryview) -> bool:
    library = libdeflate()
    return library is not None and library.fills("zlib", stream, part)


def _compress(
    header: Header, shuffled: memoryview, compress: Callable[[memoryview], Buffer]
) -> list[Buffer]:
    """The bytes after the header: offsets and streams."""
    offsets, streams = bytearray(), list[Buffer]()
    end = header.offsets.stop
    for block in header.blocks(shuffled):
        offsets += LENGTH.pack(end)
        for part in header.splits(block):
            stream = compress(part)
            if len(stream) >= len(part):
                stream = part
            streams += LENGTH.pack(len(stream)), stream
            end += LENGTH.size + len(stream)
    return [offsets, *streams]


def _compressor(cname: str, clevel: int) -> Callable[[memoryview], Buffer]:
    if cname == "zlib":
        return lambda part: deflate.zlib_compress(part, clevel)
    snappy = _cramjam().snappy
    return lambda part: bytes(snappy.compress_raw(part))


def _cramjam() -> ModuleType:
    return import_module("cramjam")  # imported only when Snappy is used
