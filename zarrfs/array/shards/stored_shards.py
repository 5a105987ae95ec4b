"""Shards as objects of the store: their state, their index, and the codecs around them."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from zarrfs.array.shards.parts import (
    KnownObjects,
    MemoryPart,
    Part,
    PartCache,
    StoredPart,
    read_index,
)
from zarrfs.errors import StoreTooLarge
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout, Wrapping
from zarrfs.format.shard_index import ShardIndex
from zarrfs.store.base import Blob, ByteRange, Generation, ObjectInfo, Store


class Shard(NamedTuple):
    """A stored shard, or an inner chunk of one, in one state.

    part : all of it, in memory or in the store.
    generation : of the object that it is stored in.
    places : of its inner chunks; None if they are yet to be read.
    """

    part: Part
    generation: Generation
    places: ShardIndex | None = None

    @classmethod
    def in_memory(cls, key: str, blob: Blob | None) -> Shard | None:
        """All of an object, which may be missing."""
        if blob is None:
            return None
        data, info = memoryview(blob.data), blob.info
        # The name that `StoredPart` would have, so that its index is decoded only once.
        return cls(MemoryPart(data, (key, info.generation, 0, info.size)), info.generation)


class StoredShards:
    """The shards of one array. Thread-safe.

    states : in which the shards were last seen; callers have them forgotten.
    near : see `StoreTraits`.
    """

    def __init__(self, store: Store, layout: ChunkLayout, cache: PartCache) -> None:
        self._store = store
        self._levels = layout.levels
        self._cache = cache
        self.states = KnownObjects()
        self.near = store.traits.near

    def find(
        self, key: str, shard_shape: Shape, *, whole: int | None = None, scan: bool = False
    ) -> Shard | None:
        """The shard as it is in the store; this call also caches its index. None: there is none.

        whole : bytes of its inner chunks for which there is room in memory, if all are wanted: a
            distant shard that is not larger is then fetched with one request.
        scan : see `StoredPart`.

        Otherwise one request returns the index and the state that it belongs to.
        """
        if (known := self._known(key, scan)) is not None:
            return known
        if self.near:
            return self._asked(key, shard_shape, scan)
        if whole is not None:
            with suppress(StoreTooLarge):
                return self._fetched(key, whole + self._levels[0].index_codec(shard_shape).size)
        # Otherwise each thread that needs the shard would fetch its index.
        with self._cache.leftovers.fetching.held((key,)):
            return self._known(key, scan) or self._asked(key, shard_shape, scan)

    def _known(self, key: str, scan: bool) -> Shard | None:
        """The shard in the state in which it was last seen, if its index is cached."""
        if (info := self.states.get(key)) is None:
            return None
        part = self.part(key, info, scan=scan)
        index = self.cached_index(part, 0)
        return None if index is None else Shard(part, info.generation, index)

    def _fetched(self, key: str, limit: int) -> Shard | None:
        """All of the shard. Raises StoreTooLarge if it has more than ``limit`` bytes."""
        forgotten = self.states.forgotten
        if (blob := self._store.get(key, limit=limit)) is not None:
            self.states.remember(key, blob.info, forgotten)
        return Shard.in_memory(key, blob)

    def _asked(self, key: str, shard_shape: Shape, scan: bool) -> Shard | None:
        codec = self._levels[0].index_codec(shard_shape)
        forgotten = self.states.forgotten
        blobs = self._store.get_ranges(key, [ByteRange(codec.offset, codec.size)])
        if blobs is None:
            return None
        (blob,) = blobs
        part = self.part(key, blob.info, scan=scan)
        index = codec.decode(blob.data, part.size)
        self._cache.put(_index_name(part, 0), index)
        part.keep_whole(blobs)
        self.states.remember(key, blob.info, forgotten)
        return Shard(part, blob.info.generation, index)

    def unwrapped(self, key: str, wrapping: Wrapping) -> Shard | None:
        """The shard with the codecs around it undone."""
        assert wrapping.encoded is not None
        if (info := self._store.info(key)) is None:
            return None
        generation = info.generation
        data = self._cache.get((key, generation, "unwrapped"))
        if not isinstance(data, memoryview):
            if (blob := self._store.get(key, limit=wrapping.encoded)) is None:
                return None
            generation = blob.info.generation
            data = wrapping.undo(blob.data)
            self._cache.put((key, generation, "unwrapped"), data)
        return Shard(MemoryPart(data, (key, generation, "unwrapped")), generation)

    def cached_index(self, part: Part, depth: int) -> ShardIndex | None:
        found = self._cache.get(_index_name(part, depth))
        return found if isinstance(found, ShardIndex) else None

    def index(self, part: Part, depth: int, shape: Shape) -> ShardIndex:
        """The index of a shard, or of an inner shard at ``depth``."""
        if (cached := self.cached_index(part, depth)) is not None:
            return cached
        index = read_index(part, self._levels[depth].index_codec(shape))
        self._cache.put(_index_name(part, depth), index)
        return index

    def part(self, key: str, info: ObjectInfo, *, scan: bool = False) -> StoredPart:
        """All of a shard in the state of ``info``."""
        leftovers = None if self.near else self._cache.leftovers
        return StoredPart(self._store, key, info, 0, info.size, leftovers, scan)


def _index_name(part: Part, depth: int) -> tuple[object, ...] | None:
    """Names a part's index; a shard and an inner shard may be the same bytes."""
    return None if part.name is None else (*part.name, "index", depth)
