"""``blosc``: the Blosc 1 container with any of its compressors and shuffles.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/index.html
"""

from __future__ import annotations

# numcodecs would import it at its first decode, in each worker process, during a scan.
import multiprocessing.synchronize  # noqa: F401
from dataclasses import dataclass

from numcodecs import blosc

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, SizeBound
from zarrfs.format.codecs import blosc_snappy
from zarrfs.format.codecs.own_process import in_own_process


def _without_threads() -> None:
    blosc.use_threads = False


# Blosc's own thread pool is one global lock. zarrfs decodes several chunks in parallel instead.
# Outside the main thread, numcodecs does not use that pool unless the user requests it.
in_own_process(_without_threads)

_HEADER = 16
_LIGHT = frozenset({"blosclz", "lz4", "lz4hc", "snappy"})
_SHUFFLES = {"noshuffle": blosc.NOSHUFFLE, "shuffle": blosc.SHUFFLE, "bitshuffle": blosc.BITSHUFFLE}


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


@dataclass(frozen=True, slots=True)
class BoundBlosc:
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
        # c-blosc trusts the sizes in its header, so zarrfs checks them first:
        # https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
        if len(data) < _HEADER:
            raise DecodeError(f"{len(data)} bytes are too few for a Blosc header")
        nbytes = int.from_bytes(data[4:8], "little")
        cbytes = int.from_bytes(data[12:16], "little")
        if cbytes != len(data):
            raise DecodeError(f"Blosc header says {cbytes} bytes, there are {len(data)}")
        if nbytes > self.decoded.maximum or (self.decoded.exact and nbytes != self.decoded.maximum):
            raise DecodeError(
                f"Blosc header says {nbytes} decoded bytes, expected {self.decoded.maximum}"
            )
        if nbytes == 0:
            return b""
        if out is not None and len(out) != nbytes:
            out = None
        if blosc_snappy.is_snappy(data):
            return blosc_snappy.decode(data, memoryview(bytearray(nbytes)) if out is None else out)
        try:
            return blosc.decompress(data, out)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"Blosc: {error}") from error

    def encode(self, data: Buffer) -> Buffer:
        codec = self.codec
        settings = (codec.clevel, _SHUFFLES[codec.shuffle], codec.blocksize, codec.typesize)
        if codec.cname == "snappy":
            return blosc_snappy.encode(data, *settings)
        return blosc.compress(data, codec.cname.encode(), *settings)  # type: ignore[no-any-return]
