"""Shards as objects of the store: their state, their index, and the codecs around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from zarrfs.array.shards.parts import (
    KnownObjects,
    MemoryPart,
    ObjectChanged,
    Part,
    PartCache,
    ReadPlan,
    StoredPart,
    check_lengths,
    read_index,
)
from zarrfs.errors import DecodeError, StoreError, StoreTooLarge
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import BoundBytesBytes, Buffer, SizeBound
from zarrfs.format.pipeline import bind_bytes, decode_bytes
from zarrfs.format.shard_index import IndexCodec, ShardIndex
from zarrfs.store.base import Blob, ByteRange, Generation, ObjectInfo, Steps, Store


class Wrapping(NamedTuple):
    """The codecs around the shards of one level.

    encoded, decoded : the most bytes that a shard may have with and without them; None if there are
        none, so that the shard need not be read whole.
    """

    codecs: tuple[BoundBytesBytes, ...]
    encoded: int | None
    decoded: int | None

    @property
    def cost(self) -> int:
        """The most bytes of memory that undoing the codecs takes."""
        return (self.encoded or 0) + (self.decoded or 0)

    def undo(self, data: Buffer) -> memoryview:
        """The bare shard. Raises DecodeError."""
        return memoryview(decode_bytes(self.codecs, data))


def bind_wrappings(layout: ChunkLayout, shard_shape: Shape, largest: int) -> tuple[Wrapping, ...]:
    """The wrapping of each level of a shard of ``shard_shape``, outermost first.

    largest : the most bytes to allow. The legal size of a shard is far above any real one, and only
        a hostile shard would use it.
    """
    shapes = [shard_shape, *(level.inner_shape for level in layout.levels)]
    size = layout.chunk_codec(shapes[-1]).encoded
    wrappings = []
    for level, outer in zip(reversed(layout.levels), reversed(shapes[:-1]), strict=True):
        size = level.index_codec(outer).shard_bound(size)
        if level.around:
            decoded = min(size.maximum, largest)
            codecs, size = bind_bytes(level.around, SizeBound(decoded, exact=False))
            wrappings.append(Wrapping(codecs, min(size.maximum, largest), decoded))
        else:
            wrappings.append(Wrapping((), None, None))
    return tuple(reversed(wrappings))


StoredState = tuple[Part | None, Generation | None]
"""All of a shard, and its state; None: there is no shard."""


class ShardRanges(NamedTuple):
    """A shard, and what to read of it, by its outermost index.

    plan : returns None if nothing is to be read; must not raise.
    """

    key: str
    shape: Shape
    plan: Callable[[ShardIndex], ReadPlan | None]


class ShardRead(NamedTuple):
    """The ranges of a shard, in one state.

    generation : None if the shard is not stored.
    blobs : the ranges of ``plan``.
    """

    generation: Generation | None
    blobs: Sequence[Blob]
    plan: ReadPlan | None


class StoredShards:
    """The shards of one array. Thread-safe.

    It remembers in which state it saw each shard last, and caches the indexes.

    near : see `StoreTraits`.
    """

    def __init__(self, store: Store, layout: ChunkLayout, cache: PartCache) -> None:
        self._store = store
        self._levels = layout.levels
        self._cache = cache
        self._known = KnownObjects()
        self.near = store.traits.near

    def forget(self, key: str) -> None:
        """Ask the store again for the state of an object."""
        self._known.forget(key)

    def keep(self, keys: Collection[str]) -> None:
        """Ask the store again for the states of all other objects."""
        self._known.keep(keys)

    def whole(self, key: str, shard_shape: Shape, most: int) -> StoredState | None:
        """All of a shard with one request, instead of one for its index and one for the rest.

        most : bytes of its inner chunks for which there is room in memory.

        None if its index is cached, if the shard is larger, or if no round trip would be saved.
        """
        limit = most + self.index_codec(shard_shape).size
        if self.near or self.known(key) is not None:
            return None
        forgotten = self._known.forgotten
        try:
            blob = self._store.get(key, limit=limit)
        except StoreTooLarge:
            return None
        if blob is None:
            return None, None
        self._known.remember(key, blob.info, forgotten)
        part = MemoryPart(memoryview(blob.data), self.part(key, blob.info).name)
        return part, blob.info.generation

    def find(self, key: str, shard_shape: Shape, *, scan: bool = False) -> StoredState:
        """The shard as it is in the store; this call also caches its index.

        scan : see `StoredPart`.

        One request returns the index and the state that it belongs to.
        """
        part, generation = self._found(key, shard_shape)
        return part and part._replace(scan=scan), generation

    def _found(self, key: str, shard_shape: Shape) -> tuple[StoredPart | None, Generation | None]:
        if (part := self.known(key)) is not None:
            return part, part.info.generation
        if self.near:
            return self._asked(key, shard_shape)
        # Otherwise each thread that needs the shard would fetch its index.
        with self._cache.leftovers.fetching((key,)):
            if (part := self.known(key)) is not None:
                return part, part.info.generation
            return self._asked(key, shard_shape)

    def known(self, key: str) -> StoredPart | None:
        """The shard in the state in which it was last seen, if its index is cached."""
        if (info := self._known.get(key)) is None:
            return None
        part = self.part(key, info)
        return None if self._cache.get(_index_name(part, 0)) is None else part

    def _asked(self, key: str, shard_shape: Shape) -> tuple[StoredPart | None, Generation | None]:
        codec = self.index_codec(shard_shape)
        forgotten = self._known.forgotten
        blobs = self._store.get_ranges(key, [ByteRange(codec.offset, codec.size)])
        if blobs is None:
            return None, None
        (blob,) = blobs
        self.decoded_index(key, codec, blob)
        part = self.part(key, blob.info)
        part.keep_whole(blobs)
        self._known.remember(key, blob.info, forgotten)
        return part, blob.info.generation

    def decoded_index(self, key: str, codec: IndexCodec, blob: Blob) -> ShardIndex:
        """The index that ``blob`` holds; this call also caches it. Raises DecodeError."""
        if len(blob.data) != codec.size:
            raise DecodeError(f"a shard of {blob.info.size} bytes has no room for its index")
        part = self.part(key, blob.info)
        index = codec.decode(blob.data, part.size)
        self._cache.put(_index_name(part, 0), index)
        return index

    def index_codec(self, shard_shape: Shape) -> IndexCodec:
        """The codec of the outermost index of a shard."""
        return self._levels[0].index_codec(shard_shape)

    def read_in_steps(self, wanted: Sequence[ShardRanges]) -> Iterator[ShardRead | Exception]:
        """Ranges of each shard, and its index before if that is not cached, in one state.

        Instead of an error, the iterator returns it: DecodeError if the index is bad, StoreError,
        or ObjectChanged if the shard was replaced since its index was cached.
        """
        lookups = [_Lookup(self, shard) for shard in wanted]
        forgotten = self._known.forgotten
        found = self._store.get_in_steps([lookup.steps for lookup in lookups])
        for lookup, blobs in zip(lookups, found, strict=True):
            if isinstance(blobs, StoreError):
                yield blobs
                continue
            read = lookup.result(blobs)
            if isinstance(read, ShardRead) and lookup.read is not None:
                self._known.remember(lookup.steps.key, lookup.read, forgotten)
            yield read

    def unwrapped(self, key: str, wrapping: Wrapping) -> StoredState:
        """The shard with the codecs around it undone."""
        assert wrapping.encoded is not None
        if (info := self._store.info(key)) is None:
            return None, None
        name = (key, info.generation, "unwrapped")
        data = self._cache.get(name)
        if not isinstance(data, memoryview):
            blob = self._store.get(key, limit=wrapping.encoded)
            if blob is None:
                return None, None
            name = (key, blob.info.generation, "unwrapped")
            data = wrapping.undo(blob.data)
            self._cache.put(name, data)
        return MemoryPart(data, name), name[1]

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

    def part(self, key: str, info: ObjectInfo) -> StoredPart:
        """All of a shard in the state of ``info``."""
        leftovers = None if self.near else self._cache.leftovers
        return StoredPart(self._store, key, info, 0, info.size, leftovers)


class _Lookup:
    """A shard of which ranges are read.

    read : the state of the shard whose index was read; None if the index was cached, or is bad.
    """

    def __init__(self, shards: StoredShards, shard: ShardRanges) -> None:
        self.read: ObjectInfo | None = None
        self._shards = shards
        self._shard = shard
        self._failed: DecodeError | None = None
        self._plan: ReadPlan | None = None
        self._known = shards.known(shard.key)
        index = None if self._known is None else shards.cached_index(self._known, 0)
        if index is not None:
            places = self._planned(index)
            self.steps = Steps(shard.key, (), lambda _: places)
        else:
            self._known = None
            self._codec = codec = shards.index_codec(shard.shape)
            first = ByteRange(codec.offset, codec.size)
            self.steps = Steps(shard.key, (first,), self._places)

    def _places(self, blobs: Sequence[Blob]) -> Sequence[ByteRange]:
        """The wanted ranges, by the index in ``blobs``."""
        (blob,) = blobs
        self.read = self._failed = self._plan = None
        try:
            index = self._shards.decoded_index(self.steps.key, self._codec, blob)
        except DecodeError as error:
            self._failed = error
            return ()
        self.read = blob.info
        return self._planned(index)

    def _planned(self, index: ShardIndex) -> Sequence[ByteRange]:
        self._plan = self._shard.plan(index)
        return () if self._plan is None else self._plan.ranges

    def result(self, blobs: list[Blob] | None) -> ShardRead | Exception:
        """The ranges that were read, or an error.

        blobs : of ``steps``.
        """
        if self._failed is not None:
            return self._failed
        if self._known is None:
            if blobs is None:
                return ShardRead(None, [], None)
            generation = blobs[0].info.generation
            blobs = blobs[1:]
        else:
            generation = self._known.info.generation
            if blobs is None or any(blob.info.generation != generation for blob in blobs):
                return ObjectChanged(self.steps.key)
        if self._plan is not None:
            try:
                check_lengths(blobs, self._plan.ranges)
            except DecodeError as error:
                return error
        return ShardRead(generation, blobs, self._plan)


def _index_name(part: Part, depth: int) -> tuple[object, ...] | None:
    """Names a part's index; a shard and an inner shard may be the same bytes."""
    return None if part.name is None else (*part.name, "index", depth)
