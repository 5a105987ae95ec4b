"""Blosc 1 containers of Snappy streams, which numcodecs' build of Blosc does not support.

cramjam decodes the streams, and numcodecs unshuffles containers that need no Snappy: Blosc stores a
stream as it is if the stream is as long as its decoded bytes, whatever the compressor.

https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from numcodecs import blosc

from zarrfs.bounds import most_blocks
from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer

_HEADER = struct.Struct("<4B3I")
_LENGTH = struct.Struct("<I")  # also the format of an offset and of a stream's length
_VERSIONS = (2, 1)  # of the container, and of its Snappy and LZ4 streams

_SHUFFLED, _MEMCPYED, _RESERVED, _UNSPLIT = 0x01 | 0x04, 0x02, 0x08, 0x10  # flags
_COMPRESSOR = 5  # the first bit of the compressor's number in the flags
_LZ4, _SNAPPY = 1, 2

_MOST_SPLITS = 16
_SHORTEST_SPLIT = 128


class _Header(NamedTuple):
    """Sizes in bytes: ``nbytes`` decoded, ``cbytes`` of the container."""

    version: int
    stream_version: int
    flags: int
    typesize: int
    nbytes: int
    blocksize: int
    cbytes: int

    @property
    def offsets(self) -> range:
        """Positions of the blocks' offsets; its end is where the offsets end."""
        blocks = -(-self.nbytes // self.blocksize)
        return range(_HEADER.size, _HEADER.size + blocks * _LENGTH.size, _LENGTH.size)

    @property
    def is_split(self) -> bool:
        """Whether the first bytes of all elements of a whole block are a stream, and so on."""
        return (
            not self.flags & _UNSPLIT
            and 0 < self.typesize <= _MOST_SPLITS
            and self.blocksize // self.typesize >= _SHORTEST_SPLIT
        )

    def blocks(self, decoded: memoryview) -> Iterator[memoryview]:
        for start in range(0, self.nbytes, self.blocksize):
            yield decoded[start : start + self.blocksize]

    def splits(self, block: memoryview) -> Iterator[memoryview]:
        """The parts of a decoded block, each of which is one stream."""
        split = self.is_split and len(block) == self.blocksize
        size, rest = divmod(len(block), self.typesize if split else 1)
        if rest:
            raise DecodeError(f"Blosc blocks of {len(block)} bytes, elements of {self.typesize}")
        for start in range(0, len(block), size):
            yield block[start : start + size]

    def with_compressor(self, number: int) -> _Header:
        return self._replace(flags=self.flags & (1 << _COMPRESSOR) - 1 | number << _COMPRESSOR)


def is_snappy(data: Buffer, start: int = 0) -> bool:
    """Whether the container at ``start``, of at least a header, needs Snappy for decoding."""
    flags = data[start + 2]
    return flags >> _COMPRESSOR == _SNAPPY and not flags & _MEMCPYED


def check_splits(data: Buffer) -> None:
    """Raises DecodeError if c-blosc would decode less than the header of a container says.

    It decodes as many bytes for each byte of an element, and leaves out the rest of a block.
    """
    header = _Header(*_HEADER.unpack_from(data))
    if header.is_split and not header.flags & _MEMCPYED and header.blocksize % header.typesize:
        raise DecodeError(
            f"Blosc blocks of {header.blocksize} bytes, elements of {header.typesize}"
        )


def decode(data: Buffer, out: memoryview) -> memoryview:
    """Fill ``out`` with the decoded bytes and return it. The header gives the correct size.

    Takes the memory of about three blocks in addition to ``out``.
    """
    header = _checked(_Header(*_HEADER.unpack_from(data)), len(data))
    source = memoryview(data)
    blocks = header.blocks(out)
    if not header.flags & _SHUFFLED:
        for at, block in zip(header.offsets, blocks, strict=True):
            _decompress(source, at, header, block)
        return out
    stored = _StoredBlock(header)
    for at, block in zip(header.offsets, blocks, strict=True):
        _decompress(source, at, header, stored.resized(len(block)))
        stored.unshuffle_into(block)
    return out


def encode(data: Buffer, clevel: int, shuffle: int, blocksize: int, typesize: int) -> bytes:
    """A container that every Blosc built with Snappy decodes.

    The parameters are those of `numcodecs.blosc.compress`. If Snappy does not shorten the data,
    they are stored uncompressed, in a container that every Blosc decodes.
    """
    by_lz4 = bytearray(blosc.compress(data, b"lz4", clevel, shuffle, blocksize, typesize))
    header = _Header(*_HEADER.unpack_from(by_lz4)).with_compressor(_SNAPPY)
    if not header.flags & _MEMCPYED:
        # Without the flag for the shuffle, a decoder leaves the blocks shuffled.
        by_lz4[2] &= ~_SHUFFLED
        streams = _compress(header, memoryview(blosc.decompress(by_lz4)))
        cbytes = _HEADER.size + len(streams)
        if cbytes < _HEADER.size + header.nbytes:
            return _HEADER.pack(*header._replace(cbytes=cbytes)) + streams
    cbytes = _HEADER.size + header.nbytes
    header = header._replace(flags=header.flags | _MEMCPYED, cbytes=cbytes)
    return b"".join((_HEADER.pack(*header), data))


class _StoredBlock:
    """One block in a container of its own, unsplit and uncompressed, to be unshuffled."""

    _START = _HEADER.size + 2 * _LENGTH.size

    def __init__(self, header: _Header) -> None:
        flags = header.flags | _UNSPLIT
        self._header = header._replace(flags=flags).with_compressor(_LZ4)
        self._container = memoryview(bytearray(self._START + header.blocksize))

    def resized(self, size: int) -> memoryview:
        """The block's memory, cut to ``size`` bytes, which are at most the block size."""
        cbytes = self._START + size
        header = self._header._replace(nbytes=size, blocksize=size, cbytes=cbytes)
        _HEADER.pack_into(self._container, 0, *header)
        _LENGTH.pack_into(self._container, _HEADER.size, self._START - _LENGTH.size)
        _LENGTH.pack_into(self._container, self._START - _LENGTH.size, size)
        return self._container[self._START : cbytes]

    def unshuffle_into(self, block: memoryview) -> None:
        try:
            blosc.decompress(self._container[: self._START + len(block)], block)
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"Blosc: {error}") from error


def _checked(header: _Header, size: int) -> _Header:
    """Return ``header`` of a container of ``size`` bytes if its values are possible."""
    if (header.version, header.stream_version) != _VERSIONS or header.flags & _RESERVED:
        raise DecodeError("a Blosc container of a version that is not known")
    if not header.typesize or not 0 < header.blocksize <= header.nbytes:
        raise DecodeError(
            f"Blosc header says blocks of {header.blocksize} bytes of {header.nbytes}, "
            f"elements of {header.typesize}"
        )
    blocks = len(header.offsets)
    if blocks > (most := most_blocks(header.nbytes)):
        raise DecodeError(f"Blosc header says {blocks} blocks, at most {most} are decoded")
    if header.offsets.stop > size:
        raise DecodeError(f"{size} bytes are too few for the offsets of the Blosc blocks")
    return header


def _decompress(source: memoryview, at: int, header: _Header, block: memoryview) -> None:
    """Fill ``block``, still shuffled, from the streams whose offset is at ``at``."""
    (offset,) = _LENGTH.unpack_from(source, at)
    cramjam = _cramjam()
    for part in header.splits(block):
        start = offset + _LENGTH.size
        if start > len(source):
            raise DecodeError(f"a Blosc stream at {offset}, there are {len(source)} bytes")
        (length,) = _LENGTH.unpack_from(source, offset)
        offset = start + length
        if offset > len(source):
            raise DecodeError(f"a Blosc stream to {offset}, there are {len(source)} bytes")
        if length == len(part):
            part[:] = source[start:offset]
            continue
        try:
            # Into memory of the right size, so that no size in the stream is trusted.
            filled = cramjam.snappy.decompress_raw_into(source[start:offset], part)
        except cramjam.DecompressionError as error:
            raise DecodeError(f"Blosc: {error}") from error
        if filled != len(part):
            raise DecodeError(f"a Snappy stream of {filled} decoded bytes, expected {len(part)}")


def _compress(header: _Header, shuffled: memoryview) -> bytes:
    """The bytes after the header: offsets and streams."""
    snappy = _cramjam().snappy
    offsets, streams, end = bytearray(), bytearray(), header.offsets.stop
    for block in header.blocks(shuffled):
        offsets += _LENGTH.pack(end + len(streams))
        for part in header.splits(block):
            stream = bytes(snappy.compress_raw(part))
            if len(stream) >= len(part):
                stream = bytes(part)
            streams += _LENGTH.pack(len(stream)) + stream
    return bytes(offsets + streams)


def _cramjam() -> ModuleType:
    return import_module("cramjam")  # imported only when Snappy is used
