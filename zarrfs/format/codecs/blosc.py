"""``blosc``: the Blosc 1 container with any of its compressors and shuffles.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/index.html
"""

from __future__ import annotations

# numcodecs would import it at its first decode, in each worker process, during a scan.
import multiprocessing.synchronize  # noqa: F401
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numcodecs import blosc

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundBytesBytes, Buffer, EncodedPart, SizeBound
from zarrfs.format.codecs import blosc_streams, own_process
from zarrfs.format.codecs.blosc_header import (
    COMPRESSOR,
    HEADER,
    MEMCPYED,
    check_splits,
    find_blocks,
)

if own_process.owned:
    own_process.without_threads(blosc)

_HEADER = HEADER.size
_VERSION = 2
# With the offsets of a thousand blocks.
_HEAD = 4096
_LIGHT = frozenset({"blosclz", "lz4", "lz4hc", "snappy"})
_SHUFFLES = {"noshuffle": blosc.NOSHUFFLE, "shuffle": blosc.SHUFFLE, "bitshuffle": blosc.BITSHUFFLE}
_NUMBERED = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle", -1: "shuffle"}


@dataclass(frozen=True, slots=True)
class BloscCodec:
    """``typesize`` in bytes is the unit of the shuffle; ``blocksize`` 0 lets Blosc choose."""

    cname: str
    clevel: int
    shuffle: str
    blocksize: int = 0
    typesize: int = 1

    def bind(self, decoded: SizeBound) -> BoundBlosc:
        return BoundBlosc(self, decoded)


def numcodecs_blosc(
    cname: str = "lz4",
    clevel: int = 5,
    shuffle: int | str = 1,
    blocksize: int = 0,
    typesize: int | None = None,
) -> BloscCodec:
    """The codec with numcodecs' defaults.

    shuffle : a number; -1 lets numcodecs choose: bits for elements of one byte.
    """
    if isinstance(shuffle, str):
        name = shuffle
    elif shuffle == -1 and typesize == 1:
        name = "bitshuffle"
    elif shuffle in _NUMBERED:
        name = _NUMBERED[shuffle]
    else:
        raise ValueError(f"shuffle is {shuffle!r}")
    return BloscCodec(cname, clevel, name, blocksize, typesize or 1)


@dataclass(frozen=True, slots=True)
class BoundBlosc(BoundBytesBytes):
    codec: BloscCodec
    decoded: SizeBound

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(self.decoded.maximum + _HEADER, exact=False)

    @property
    def light(self) -> bool:
        """Whether decoding costs little more than copying."""
        return self.codec.cname in _LIGHT

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if len(data) < _HEADER:
            raise DecodeError(f"{len(data)} bytes are too few for a Blosc header")
        *_, typesize, nbytes, blocksize, cbytes = HEADER.unpack_from(data)
        # c-blosc trusts the sizes in the header:
        # https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
        if cbytes != len(data):
            raise DecodeError(f"Blosc header says {cbytes} bytes, there are {len(data)}")
        self.decoded.check(nbytes, "the Blosc header says")
        if nbytes == 0:
            return b""
        possible = typesize and 0 < blocksize <= nbytes
        if data[2] & MEMCPYED and cbytes == _HEADER + nbytes and data[0] == _VERSION and possible:
            # All containers of some bytes, for which a call of numcodecs takes longer.
            return memoryview(data)[_HEADER:]
        if out is None or len(out) != nbytes:
            # Uncleared memory is safe here, because none of its old bytes become visible.
            out = np.empty(nbytes, np.uint8).data
        handled = data[2] >> COMPRESSOR in blosc_streams.HANDLED and blosc_streams.handles(data)
        if handled and blosc_streams.fill(data, out):
            return out
        if typesize and blocksize % typesize:
            check_splits(data)
        try:
            return blosc.decompress(data, out)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"Blosc: {error}") from error

    @property
    def head(self) -> int:
        return _HEAD if self.decoded.exact and self.decoded.maximum else 0

    def part(self, head: Buffer, size: int, start: int, stop: int) -> EncodedPart | None:
        blocks = find_blocks(head, size, start, stop)
        if blocks is None or HEADER.unpack_from(head)[4] != self.decoded.maximum:
            return None
        nbytes = blocks.header.nbytes
        alone = BoundBlosc(self.codec, SizeBound(nbytes, exact=True))

        def decode(pieces: Sequence[Buffer]) -> Buffer:
            if blocks.verbatim:
                return pieces[0]
            return alone.decode(blocks.container(pieces), None)

        return EncodedPart(blocks.ranges, blocks.first, nbytes, decode)

    def encode(self, data: Buffer) -> Buffer:
        codec = self.codec
        shuffle = _SHUFFLES[codec.shuffle]
        settings = (codec.clevel, shuffle, codec.blocksize, codec.typesize)
        if blosc_streams.encodes(codec.cname, codec.clevel, shuffle):
            return blosc_streams.encode(data, codec.cname, *settings)
        return blosc.compress(data, codec.cname.encode(), *settings)  # type: ignore[no-any-return]
