"""The header of Blosc 1 containers, and how their blocks lie behind it.

https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from zarrfs.bounds import most_blocks
from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer

HEADER = struct.Struct("<4B3I")
LENGTH = struct.Struct("<I")  # also the format of an offset and of a stream's length
_VERSIONS = (2, 1)  # of the container, and of its streams

SHUFFLED, MEMCPYED, _RESERVED, UNSPLIT = 0x01 | 0x04, 0x02, 0x08, 0x10  # flags
COMPRESSOR = 5  # the first bit of the compressor's number in the flags

MOST_SPLITS = 16
_SHORTEST_SPLIT = 128


class Header(NamedTuple):
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
        return range(HEADER.size, HEADER.size + blocks * LENGTH.size, LENGTH.size)

    @property
    def is_split(self) -> bool:
        """Whether the first bytes of all elements of a whole block are a stream, and so on."""
        return (
            not self.flags & UNSPLIT
            and 0 < self.typesize <= MOST_SPLITS
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

    def with_compressor(self, number: int) -> Header:
        return self._replace(flags=self.flags & (1 << COMPRESSOR) - 1 | number << COMPRESSOR)


def checked(header: Header, size: int) -> Header:
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


def check_splits(data: Buffer) -> None:
    """Raises DecodeError if c-blosc would decode less than the header of a container says.

    It decodes as many bytes for each byte of an element, and leaves out the rest of a block.
    """
    header = Header(*HEADER.unpack_from(data))
    if header.is_split and not header.flags & MEMCPYED and header.blocksize % header.typesize:
        raise DecodeError(
            f"Blosc blocks of {header.blocksize} bytes, elements of {header.typesize}"
        )


class Blocks(NamedTuple):
    """Neighbouring blocks of a container, as a container of their own.

    Each block is encoded without the others. So a container of these blocks alone, with a header
    and offsets that fit them, decodes as they do in the whole one.

    header : of the container that `container` returns.
    ranges : offset and length of each block; of the bytes themselves if they are not encoded.
    first : position of their first decoded byte.
    """

    header: Header
    ranges: Sequence[tuple[int, int]]
    first: int

    @property
    def verbatim(self) -> bool:
        """Whether the ranges hold decoded bytes."""
        return bool(self.header.flags & MEMCPYED)

    def container(self, pieces: Sequence[Buffer]) -> bytes:
        """A container of these blocks, given the bytes of all ranges."""
        begin = HEADER.size + LENGTH.size * len(pieces)
        *offsets, cbytes = accumulate(map(len, pieces), initial=begin)
        header = HEADER.pack(*self.header._replace(cbytes=cbytes))
        return b"".join((header, *map(LENGTH.pack, offsets), *pieces))


def find_blocks(head: Buffer, size: int, start: int, stop: int) -> Blocks | None:
    """The blocks that hold the decoded bytes from ``start`` to ``stop`` (exclusive, not equal).

    head : the first bytes of a container of ``size`` bytes, with all offsets of blocks.

    None if the head is too short, or the container is damaged.
    """
    if len(head) < HEADER.size:
        return None
    header = Header(*HEADER.unpack_from(head))
    try:
        header = checked(header, size)
    except DecodeError:
        return None
    if header.cbytes != size or stop > header.nbytes:
        return None
    if header.flags & MEMCPYED:
        if size != HEADER.size + header.nbytes:
            return None
        part = header._replace(nbytes=stop - start)
        return Blocks(part, [(HEADER.size + start, stop - start)], start)
    if header.offsets.stop > len(head):
        return None
    offsets = struct.unpack_from(f"<{len(header.offsets)}I", head, HEADER.size)
    # Blosc's threads write blocks as they finish them, so these may lie in any order.
    ends = sorted({size, *(offset for offset in offsets if offset < size)})
    first, last = start // header.blocksize, -(-stop // header.blocksize)
    # A stream that would be longer is stored as it is.
    longest = header.blocksize + MOST_SPLITS * LENGTH.size
    ranges = []
    for begin in offsets[first:last]:
        if not header.offsets.stop <= begin < size:
            return None
        length = ends[bisect_right(ends, begin)] - begin
        if length > longest:
            return None
        ranges.append((begin, length))
    first_byte = first * header.blocksize
    nbytes = min(last * header.blocksize, header.nbytes) - first_byte
    header = header._replace(nbytes=nbytes)
    if nbytes < header.blocksize:
        # The last block, which is shorter than the others, is never split.
        header = header._replace(blocksize=nbytes, flags=header.flags | UNSPLIT)
    return Blocks(header, ranges, first_byte)
