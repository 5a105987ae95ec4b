"""Some blocks of a Blosc 1 container as a container of their own.

Each block is encoded without the others. So a container of these blocks alone, with a header and
offsets that fit them, decodes as they do in the whole one, and nothing else has to be read.

https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer
from zarrfs.format.codecs.blosc_header import (
    HEADER,
    LENGTH,
    MEMCPYED,
    MOST_SPLITS,
    UNSPLIT,
    Header,
    checked,
)


class Blocks(NamedTuple):
    """Neighbouring blocks of a container.

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
