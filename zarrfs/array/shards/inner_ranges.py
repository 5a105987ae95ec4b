"""Reads ranges of inner chunks, by the places that the index gives these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zarrfs.array.shards.parts import ObjectChanged, ReadPlan, check_lengths
from zarrfs.array.shards.stored_shards import ShardRanges, ShardRead, StoredShards
from zarrfs.errors import DecodeError, StoreConflict
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import EncodedBatch
from zarrfs.format.shard_index import ShardIndex
from zarrfs.store.base import Blob, ByteRange, Generation

Ranges = Sequence[tuple[int, int]]
"""Offsets and lengths, in bytes, relative to an encoded chunk."""


class InnerRead(NamedTuple):
    """
    size : bytes of the encoded inner chunk.
    blobs : its ranges, in one state of the shard.
    """

    size: int
    blobs: Sequence[Blob]


class InnerRanges:
    """Inner chunks of shards that hold chunks and are not wrapped. Thread-safe."""

    def __init__(self, shards: StoredShards, layout: ChunkLayout) -> None:
        self._shards = shards
        self._layout = layout
        (self._level,) = layout.levels
        self._most = layout.chunk_codec(self._level.inner_shape).encoded.maximum

    def read(
        self, key: str, stored: Index, leaf: Index, ranges: Callable[[int], Ranges]
    ) -> InnerRead | None:
        """Ranges of an inner chunk. Blocks.

        key, stored : of the shard.
        leaf : index of the inner chunk within the shard.
        ranges : given the size of the encoded inner chunk, returns what to read of it; must not
            raise.

        None if there is nothing to read, or it cannot be read.
        """
        entry = self._level.entry(leaf)
        size = 0

        def places(index: ShardIndex) -> Sequence[ByteRange]:
            nonlocal size
            try:
                where = index.locate(entry, self._most)
            except DecodeError:
                return ()
            if where is None:
                return ()
            offset, size = where
            return [ByteRange(offset + start, length) for start, length in ranges(size)]

        shape = self._layout.stored.chunk_shape(stored)
        (read,) = self._shards.read_in_steps([ShardRanges(key, shape, places)])
        if isinstance(read, ObjectChanged | StoreConflict):
            self._shards.forget(key)
        if isinstance(read, Exception) or not read.blobs:
            return None
        return InnerRead(size, read.blobs)


class InnerPlan:
    """Finds inner chunks of one shard by its index.

    plan : None if an entry of the index is bad.
    """

    def __init__(self, plan: Callable[[ShardIndex], ReadPlan | None], count: int) -> None:
        self._make = plan
        self._count = count
        self._plan: ReadPlan | None = None

    def ranges(self, index: ShardIndex) -> Sequence[ByteRange]:
        self._plan = self._make(index)
        return [] if self._plan is None else [ByteRange(*place) for place in self._plan.ranges]

    def result(
        self, read: ShardRead
    ) -> tuple[EncodedBatch, Generation | None] | DecodeError | None:
        """See `ShardReader.read_several`."""
        if read.generation is None:
            return EncodedBatch([], [None] * self._count), None
        if (plan := self._plan) is None:
            return None
        try:
            check_lengths(read.blobs, plan.ranges)
        except DecodeError as error:
            return error
        return EncodedBatch([blob.data for blob in read.blobs], plan.parts), read.generation
