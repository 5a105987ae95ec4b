"""The index of a shard: the place of each inner chunk.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import DecodeError, TooLongToDecode
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Buffer, ChunkSpec, SizeBound
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.pipeline import ChunkCodec, CodecPipeline

MISSING = 2**64 - 1
"""Offset and length of an inner chunk that is not stored."""

IndexLocation = Literal["start", "end"]


class IndexCodec(NamedTuple):
    """Reads and writes the index of shards of ``counts`` inner chunks along each axis.

    size : bytes of the encoded index.
    offset : of the encoded index in a shard; a negative one counts from the shard's end.
    first : the smallest offset that an inner chunk can have.
    """

    counts: Shape
    location: IndexLocation
    codec: ChunkCodec
    size: int
    offset: int
    first: int

    @classmethod
    def bind(cls, counts: Shape, location: IndexLocation, codecs: CodecPipeline) -> IndexCodec:
        """Raises ValueError for index codecs whose output has no fixed size."""
        spec = ChunkSpec((*counts, 2), CORE_DATA_TYPES["uint64"], b"\xff" * 8)
        codec = codecs.bind(spec)
        if not codec.encoded.exact:
            raise ValueError("index_codecs must give a fixed size")
        size = codec.encoded.maximum
        places = (0, size) if location == "start" else (-size, 0)
        return cls(counts, location, codec, size, *places)

    @property
    def nbytes(self) -> int:
        """Bytes of the decoded index in memory."""
        return self.codec.spec.nbytes

    def shard_bound(self, inner: SizeBound) -> SizeBound:
        """A limit for the size of a shard of inner chunks of at most ``inner``.

        Gaps are legal, so there is no exact size. Twice the sum of the parts leaves room for the
        gaps of an appending writer.
        """
        chunks = math.prod(self.counts)
        return SizeBound(2 * chunks * inner.maximum + self.size, exact=False)

    def decode(self, data: Buffer, shard_size: int) -> ShardIndex:
        """The index whose encoded bytes are ``data``, of a shard of ``shard_size`` bytes.

        Raises DecodeError.
        """
        if len(data) != self.size:
            raise DecodeError(f"a shard of {shard_size} bytes has no room for its index")
        # A copy, because a view would keep all of a shard that was read whole.
        entries = np.array(self.codec.decode(data), order="C")
        return ShardIndex(entries, self.first, shard_size)

    def assembled(self, lengths: NDArray[np.int64], body: Sequence[Any]) -> list[Any]:
        """A shard with its inner chunks in the order of its index.

        lengths : for all places of the index; 0: not stored.
        """
        flat = lengths.reshape(-1)
        first = self.size if self.location == "start" else 0
        entries = np.empty((*self.counts, 2), np.uint64)
        pairs = entries.reshape(-1, 2)
        pairs[:, 0] = first + np.cumsum(flat) - flat
        pairs[:, 1] = flat
        pairs[flat == 0] = MISSING
        index = self.codec.encode(entries)
        return [index, *body] if self.location == "start" else [*body, index]


class Places(NamedTuple):
    """Places of inner chunks; int64.

    lengths : 0 for an inner chunk that is not stored.
    good : bool; False if `ShardIndex.locate` raises.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    good: NDArray[np.bool_]


def check_places(
    entries: NDArray[Any], first: int, shard_size: int | NDArray[np.uint64], longest: int
) -> Places:
    """Check entries of shard indexes as `ShardIndex.locate` does.

    entries : offsets and lengths, uint64, of shape ``(..., 2)``; the result is of shape ``(...)``.
    first : the smallest offset that an inner chunk can have.
    shard_size : bytes of the shard of each entry.
    longest : the most bytes that an encoded inner chunk can have.
    """
    offsets, lengths = entries[..., 0], entries[..., 1]
    missing = (offsets == MISSING) & (lengths == MISSING)
    # None of these operations overflows: the values compared first are small.
    fits = (lengths > 0) & (lengths <= longest) & (lengths <= shard_size)
    fits &= (offsets >= first) & (offsets <= shard_size - np.where(fits, lengths, 0))
    return Places(
        np.where(fits, offsets, 0).astype(np.int64),
        np.where(fits, lengths, 0).astype(np.int64),
        fits | missing,
    )


class ShardIndex:
    """The places of the inner chunks of one shard. Immutable."""

    __slots__ = ("_entries", "_first", "_shard_size", "nbytes")

    def __init__(self, entries: NDArray[Any], first: int, shard_size: int) -> None:
        self._entries = entries
        self._first = first
        self._shard_size = shard_size
        self.nbytes = entries.nbytes

    def locate_all(
        self, indices: Sequence[Index], longest: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Offsets and lengths of several inner chunks; length 0 for one that is not stored.

        As `locate` for each of them; None if that would raise for one.
        """
        # With no axes for numbering them, there is one inner chunk.
        wanted = self._entries[tuple(np.array(indices).T)].reshape(-1, 2)
        found = check_places(wanted, self._first, self._shard_size, longest)
        return (found.offsets, found.lengths) if found.good.all() else None

    def places(self, longest: int) -> Places:
        """As `locate` for all inner chunks, in C order."""
        entries = self._entries.reshape(-1, 2)
        return check_places(entries, self._first, self._shard_size, longest)

    def locate(self, index: Index, longest: int) -> tuple[int, int] | None:
        """Offset and length in bytes of an inner chunk; None if it is not stored.

        index : of the inner chunk within the shard, in the shard's own axis order.
        longest : the most bytes that an encoded inner chunk can have.

        Raises TooLongToDecode for an entry of more than ``longest`` bytes, and DecodeError for one
        that lies outside the shard or cannot be a chunk. Entries that overlap, share bytes or leave
        gaps are legal.
        """
        offset, length = self._entries[index].tolist()
        if offset == MISSING and length == MISSING:
            return None
        if MISSING in (offset, length):
            raise DecodeError(f"shard index entry {index} is half missing")
        if length == 0:
            raise DecodeError(f"shard index entry {index} has no bytes")
        if offset < self._first or offset + length > self._shard_size:
            raise DecodeError(
                f"shard index entry {index} (offset {offset}, length {length}) lies outside "
                f"the shard of {self._shard_size} bytes"
            )
        if length > longest:
            raise TooLongToDecode(
                f"shard index entry {index} has {length} bytes, at most {longest} are allowed"
            )
        return offset, length
