"""Reads ranges of inner chunks, by the places that the index gives these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zarrfs.array.shards.parts import ObjectChanged, ReadPlan
from zarrfs.array.shards.stored_shards import ShardRanges, StoredShards
from zarrfs.errors import DecodeError, StoreConflict
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.shard_index import ShardIndex
from zarrfs.store.base import Blob, ByteRange

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

        def plan(index: ShardIndex) -> ReadPlan | None:
            nonlocal size
            try:
                where = index.locate(entry, self._most)
            except DecodeError:
                return None
            if where is None:
                return None
            offset, size = where
            found = [ByteRange(offset + start, length) for start, length in ranges(size)]
            return ReadPlan(found, ())

        shape = self._layout.stored.chunk_shape(stored)
        (read,) = self._shards.read_in_steps([ShardRanges(key, shape, plan)])
        if isinstance(read, ObjectChanged | StoreConflict):
            self._shards.forget(key)
        if isinstance(read, Exception) or not read.blobs:
            return None
        return InnerRead(size, read.blobs)
