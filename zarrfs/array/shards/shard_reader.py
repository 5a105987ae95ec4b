"""Reads inner chunks from shards, by the places that the index gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from zarrfs.array.shards.inner_ranges import InnerRanges
from zarrfs.array.shards.parts import (
    EncodedBatch,
    MemoryPart,
    ObjectChanged,
    Part,
    PartCache,
    ReadPlan,
    plan_few,
    plan_scattered,
)
from zarrfs.array.shards.stored_shards import (
    ShardRanges,
    StoredShards,
    Wrapping,
    bind_wrappings,
)
from zarrfs.errors import DecodeError, StoreConflict, StoreTooLarge
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout, ShardLevel
from zarrfs.format.codec import Buffer
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.format.shard_index import ShardIndex
from zarrfs.store.base import Generation, ObjectInfo, Store

_TRIES = 4
# Inner chunks up to which plain Python is faster than numpy.
_FEW = 32


# Not frozen: that would triple the cost of creating an instance.
@dataclass(slots=True, eq=False, repr=False)
class EncodedChunk:
    """One inner chunk, still encoded; ``data`` is None if it is not stored.

    error : why it cannot be read, if the error concerns this inner chunk alone.
    generation : of the shard it came from; None if there is no shard.
    """

    index: Index
    data: Buffer | None
    error: DecodeError | None
    generation: Generation | None


class OldShard(NamedTuple):
    """A stored shard whose chunks are to be replaced.

    part : all of it, in memory or in the store.
    """

    part: Part
    generation: Generation


class WantedShard(NamedTuple):
    """Inner chunks of one shard.

    shape : of the shard, in the array's axis order.
    indices : within the shard.
    whole : whether these are all inner chunks of the shard that lie in the array.
    """

    key: str
    shape: Shape
    indices: Sequence[Index]
    whole: bool


def shard_cost(layout: ChunkLayout, shard_shape: Shape, largest_wrapping: int) -> int:
    """The most bytes of memory that reading a shard takes in addition to its inner chunks."""
    cost = sum(wrapping.cost for wrapping in bind_wrappings(layout, shard_shape, largest_wrapping))
    for level in layout.levels:
        index = level.index_codec(shard_shape)
        cost += index.size + 2 * index.nbytes
        shard_shape = level.inner_shape
    return cost


class ShardReader:
    """Inner chunks of the shards of one array.

    largest_wrapping : the most bytes of a shard that the reader has to read whole, because codecs
        wrap the shard or because writers replace it too often.
    longest : the most bytes of an encoded inner chunk.
    near : see `StoreTraits`.
    """

    def __init__(
        self,
        store: Store,
        layout: ChunkLayout,
        cache: PartCache,
        largest_wrapping: int,
        longest: Callable[[ChunkCodec], int],
    ) -> None:
        self._store = store
        self._layout = layout
        self._cache = cache
        self._largest_wrapping = largest_wrapping
        self._shards = StoredShards(store, layout, cache)
        self.near = self._shards.near
        self._leaf_shape = layout.levels[-1].inner_shape
        self._leaf_codec = layout.chunk_codec(self._leaf_shape)
        self._longest = longest
        regular = layout.stored.regular_shape
        self._regular = None if regular is None else self._bind(regular)

    def _bind(self, shard_shape: Shape) -> tuple[Wrapping, ...]:
        return bind_wrappings(self._layout, shard_shape, self._largest_wrapping)

    @property
    def _leaf_limit(self) -> int:
        return self._longest(self._leaf_codec)

    def forget(self, key: str) -> None:
        """Ask the store again for the state of an object."""
        self._shards.forget(key)

    def keep(self, keys: Collection[str]) -> None:
        """Ask the store again for the states of all other objects."""
        self._shards.keep(keys)

    def read(
        self, key: str, shard_shape: Shape, indices: Sequence[Index]
    ) -> Iterator[EncodedChunk]:
        """The inner chunks ``indices`` (within the shard, in leaf chunks) of the shard ``key``.

        Raises DecodeError if the shard as a whole cannot be read, StoreError if the store fails.
        """
        for _ in range(_TRIES):
            try:
                # Yield only after a whole attempt has succeeded: the caller must not get chunks of
                # two states of one shard.
                yield from list(self._read_once(key, shard_shape, indices))
            except ObjectChanged:
                self._shards.forget(key)
                continue
            return
        yield from self._read_whole(key, shard_shape, indices)

    def read_several(
        self, wanted: Sequence[WantedShard], *, scan: bool
    ) -> Iterator[tuple[EncodedBatch, Generation | None] | Exception | None]:
        """As `read`, for each shard in order all at once. Only if `reads_several` is set.

        scan : whether the other inner chunks of these shards are wanted soon.

        Yields the inner chunks and the state of the shard (None: it does not exist), or the error
        that `read` raises; None if an inner chunk is bad, or the shard changes meanwhile. A near
        store may read ahead.
        """
        if self.near:
            yield from self._read_in_steps(wanted)
            return
        for shard in wanted:
            try:
                yield self._read_together(shard, scan=scan)
            except Exception as error:  # noqa: BLE001 - must affect this shard only
                yield error

    def _read_together(
        self, wanted: WantedShard, *, scan: bool
    ) -> tuple[EncodedBatch, Generation | None] | None:
        """See `read_several`; raises its errors."""
        key, shard_shape, indices, whole = wanted
        shard = None
        if whole:
            shard = self._shards.whole(key, shard_shape, len(indices) * self._leaf_limit)
        part, generation = shard or self._shards.find(key, shard_shape, scan=scan)
        if part is None:
            return EncodedBatch([], [None] * len(indices)), None
        entries = self._layout.levels[0].entries(indices)
        try:
            index = self._shards.index(part, 0, shard_shape)
            encoded = self._read_entries(part, index, entries)
        except ObjectChanged:
            self._shards.forget(key)
            return None
        return None if encoded is None else (encoded, generation)

    @property
    def reads_several(self) -> bool:
        """Whether shards hold chunks, and are not wrapped."""
        levels = self._layout.levels
        return len(levels) == 1 and not levels[0].around

    def ranges(self) -> InnerRanges:
        """Reads ranges of inner chunks. Only if `reads_several` is set."""
        return InnerRanges(self._shards, self._layout)

    def _read_in_steps(
        self, wanted: Sequence[WantedShard]
    ) -> Iterator[tuple[EncodedBatch, Generation | None] | Exception | None]:
        """See `read_several`."""
        level = self._layout.levels[0]
        ranges = [
            ShardRanges(key, shape, partial(self._plan, entries=level.entries(indices)))
            for key, shape, indices, _ in wanted
        ]
        for shard, read in zip(wanted, self._shards.read_in_steps(ranges), strict=True):
            if isinstance(read, ObjectChanged | StoreConflict):
                self._shards.forget(shard.key)
                yield None
            elif isinstance(read, Exception):
                yield read
            elif read.generation is None:
                yield EncodedBatch([], [None] * len(shard.indices)), None
            elif read.plan is None:
                yield None
            else:
                data = [blob.data for blob in read.blobs]
                yield EncodedBatch(data, read.plan.parts), read.generation

    def _read_whole(
        self, key: str, shard_shape: Shape, indices: Sequence[Index]
    ) -> list[EncodedChunk]:
        """Read all of a shard that writers replace faster than its index and chunks can be read."""
        try:
            blob = self._store.get(key, limit=self._largest_wrapping)
        except StoreTooLarge as error:
            raise StoreConflict(key, "keeps changing while it is read") from error
        shard = None
        if blob is not None:
            shard = OldShard(MemoryPart(memoryview(blob.data)), blob.info.generation)
        return self.taken_from(shard, shard_shape, indices)

    def taken_from(
        self, shard: OldShard | None, shard_shape: Shape, indices: Sequence[Index]
    ) -> list[EncodedChunk]:
        """As `read`, from one state of a shard; None: it is not stored.

        Raises DecodeError if the shard as a whole cannot be read, ObjectChanged if it is in another
        state by now.
        """
        if shard is None:
            return [EncodedChunk(index, None, None, None) for index in indices]
        part, generation = shard
        around = self._regular or self._bind(shard_shape)
        if around[0].codecs:
            (data,) = part.read([(0, part.size)])
            part = MemoryPart(around[0].undo(data))
        return list(self._read_level(part, 0, shard_shape, indices, around, generation))

    def stored_length(self, key: str, info: ObjectInfo, index: Index) -> int:
        """Encoded bytes of an inner chunk if the index is cached; else -1."""
        level = self._layout.levels[0]
        if len(self._layout.levels) > 1 or level.around:
            return -1
        part = self._shards.part(key, info)
        entries = self._shards.cached_index(part, 0)
        if entries is None:
            return -1
        where = entries.locate(level.entry(index), self._leaf_limit)
        return 0 if where is None else where[1]

    def _read_once(
        self, key: str, shard_shape: Shape, indices: Sequence[Index]
    ) -> Iterator[EncodedChunk]:
        around = self._regular or self._bind(shard_shape)
        part: Part | None
        if around[0].codecs:
            part, generation = self._shards.unwrapped(key, around[0])
        else:
            part, generation = self._shards.find(key, shard_shape)
        if part is None:
            yield from (EncodedChunk(index, None, None, None) for index in indices)
            return
        yield from self._read_level(part, 0, shard_shape, indices, around, generation)

    def _read_level(
        self,
        part: Part,
        depth: int,
        shape: Shape,
        indices: Sequence[Index],
        around: tuple[Wrapping, ...],
        generation: Generation | None,
    ) -> Iterator[EncodedChunk]:
        level = self._layout.levels[depth]
        index = self._shards.index(part, depth, shape)
        if depth == len(self._layout.levels) - 1:
            yield from self._read_leaves(part, level, index, indices, generation)
            return
        scale = [s // c for s, c in zip(level.inner_shape, self._leaf_shape, strict=True)]
        by_inner: dict[Index, list[Index]] = defaultdict(list)
        for leaf in indices:
            by_inner[tuple(i // n for i, n in zip(leaf, scale, strict=True))].append(leaf)
        for inner, leaves in by_inner.items():
            origin = [i * n for i, n in zip(inner, scale, strict=True)]
            relative = [tuple(i - o for i, o in zip(leaf, origin, strict=True)) for leaf in leaves]
            absolute = dict(zip(relative, leaves, strict=True))
            try:
                most = around[depth + 1].encoded
                where = index.locate(level.entry(inner), part.size if most is None else most)
                if where is None:
                    found = [EncodedChunk(leaf, None, None, generation) for leaf in relative]
                else:
                    inner_part = self._unwrapped_inner(part, where, around[depth + 1])
                    found = list(
                        self._read_level(
                            inner_part, depth + 1, level.inner_shape, relative, around, generation
                        )
                    )
            except DecodeError as error:
                found = [EncodedChunk(leaf, None, error, generation) for leaf in relative]
            for chunk in found:
                yield EncodedChunk(absolute[chunk.index], chunk.data, chunk.error, generation)

    def _unwrapped_inner(self, part: Part, where: tuple[int, int], wrapping: Wrapping) -> Part:
        inner = part.inner(*where)
        if not wrapping.codecs:
            return inner
        name = None if inner.name is None else (*inner.name, "unwrapped")
        data = self._cache.get(name)
        if not isinstance(data, memoryview):
            (encoded,) = part.read([where])
            data = wrapping.undo(encoded)
            self._cache.put(name, data)
        return MemoryPart(data, name)

    def _read_leaves(
        self,
        part: Part,
        level: ShardLevel,
        index: ShardIndex,
        indices: Sequence[Index],
        generation: Generation | None,
    ) -> Iterator[EncodedChunk]:
        entries = level.entries(indices)
        encoded = self._read_entries(part, index, entries)
        if encoded is None:
            for leaf, entry in zip(indices, entries, strict=True):
                yield self._read_leaf(part, index, leaf, entry, generation)
            return
        for leaf, data in zip(indices, encoded.chunks(), strict=True):
            yield EncodedChunk(leaf, data, None, generation)

    def _read_entries(
        self, part: Part, index: ShardIndex, entries: Sequence[Index]
    ) -> EncodedBatch | None:
        """Inner chunks by their places in the index; None if one of these is bad."""
        plan = self._plan(index, entries)
        return None if plan is None else plan.read(part)

    def _plan(self, index: ShardIndex, entries: Sequence[Index]) -> ReadPlan | None:
        """How to read inner chunks by their places in the index; None if one of these is bad."""
        if len(entries) > _FEW:
            found = index.locate_all(entries, self._leaf_limit)
            return None if found is None else plan_scattered(*found)
        try:
            limit = self._leaf_limit
            return plan_few([index.locate(entry, limit) for entry in entries])
        except DecodeError:
            return None

    def _read_leaf(
        self,
        part: Part,
        index: ShardIndex,
        leaf: Index,
        entry: Index,
        generation: Generation | None,
    ) -> EncodedChunk:
        """One inner chunk alone; all are read this way if an entry of the index is bad."""
        try:
            where = index.locate(entry, self._leaf_limit)
        except DecodeError as error:
            return EncodedChunk(leaf, None, error, generation)
        data = None if where is None else part.read([where])[0]
        return EncodedChunk(leaf, data, None, generation)
