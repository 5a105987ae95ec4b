"""Reads inner chunks from shards, by the places that the index gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from zarrfs.array.shards.parts import (
    MemoryPart,
    ObjectChanged,
    Part,
    PartCache,
    ReadPlan,
    plan_few,
    plan_scattered,
)
from zarrfs.array.shards.stored_shards import Shard, StoredShards
from zarrfs.errors import DecodeError, StoreConflict, StoreTooLarge
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout, Wrapping
from zarrfs.format.codec import Buffer
from zarrfs.format.shard_index import ShardIndex
from zarrfs.store.base import Generation, ObjectInfo, Store

_TRIES = 4
# Inner chunks up to which plain Python is faster than numpy.
_FEW = 32


Found: TypeAlias = Buffer | DecodeError | None
"""One inner chunk, still encoded; None if it is not stored; or why it cannot be read."""


class ShardRead(NamedTuple):
    """Inner chunks of a shard, all in one state of it.

    chunks : in the order in which they were asked for.
    generation : of the shard; None if there is no shard.
    """

    chunks: Iterable[Found]
    generation: Generation | None


def shard_cost(layout: ChunkLayout, shard_shape: Shape, largest_wrapping: int) -> int:
    """The most bytes of memory that reading a shard takes in addition to its inner chunks."""
    cost = sum(wrapping.cost for wrapping in layout.wrappings(shard_shape, largest_wrapping))
    for level in layout.levels:
        index = level.index_codec(shard_shape)
        cost += index.size + 2 * index.nbytes
        shard_shape = level.inner_shape
    return cost


@dataclass(eq=False)
class ShardReader:
    """Inner chunks of the shards of one array.

    largest_wrapping : the most bytes of a shard that the reader has to read whole, because codecs
        wrap the shard or because writers replace it too often.
    longest : the most bytes of an encoded inner chunk of a shape.
    states : see `StoredShards`.
    """

    store: Store
    layout: ChunkLayout
    cache: PartCache
    largest_wrapping: int
    longest: Callable[[Shape], int]

    def __post_init__(self) -> None:
        self._shards = StoredShards(self.store, self.layout, self.cache)
        self.states = self._shards.states
        self._leaf_shape = self.layout.levels[-1].inner_shape
        regular = self.layout.stored.regular_shape
        self._regular = None if regular is None else self._bind(regular)

    def _bind(self, shard_shape: Shape) -> tuple[Wrapping, ...]:
        return self.layout.wrappings(shard_shape, self.largest_wrapping)

    @property
    def _leaf_limit(self) -> int:
        return self.longest(self._leaf_shape)

    def _shape(self, stored: Index) -> Shape:
        grid = self.layout.stored
        return grid.regular_shape or grid.chunk_shape(stored)

    @property
    def bare(self) -> bool:
        """Whether shards hold chunks, and are not wrapped."""
        levels = self.layout.levels
        return len(levels) == 1 and not levels[0].around

    def read(
        self, key: str, stored: Index, indices: Sequence[Index], *, scan: bool = False
    ) -> ShardRead:
        """The inner chunks ``indices`` (within the shard, in leaf chunks) of the shard ``key``.

        stored : the index of the shard.
        scan : whether its other inner chunks are wanted soon.

        Raises DecodeError if the shard as a whole cannot be read, StoreError if the store fails.
        """
        shape = self._shape(stored)
        around = self._regular or self._bind(shape)
        for _ in range(_TRIES):
            try:
                if around[0].codecs:
                    shard = self._shards.unwrapped(key, around[0])
                else:
                    # It tells a near store nothing.
                    all_of_it = not self._shards.near and (
                        len(indices) == self.layout.count_in(stored)
                    )
                    whole = len(indices) * self._leaf_limit if all_of_it else None
                    shard = self._shards.find(key, shape, whole=whole, scan=scan)
                return self._read(shard, shape, indices, around)
            except (ObjectChanged, StoreConflict):
                self.states.forget(key)
        # Writers replace it faster than its index and chunks can be read.
        try:
            blob = self.store.get(key, limit=self.largest_wrapping)
        except StoreTooLarge as error:
            raise StoreConflict(key, "keeps changing while it is read") from error
        return self.taken_from(Shard.in_memory(key, blob), shape, indices)

    def taken_from(
        self, shard: Shard | None, shard_shape: Shape, indices: Sequence[Index]
    ) -> ShardRead:
        """As `read`, from one state of a shard; None: it is not stored.

        Raises DecodeError if the shard as a whole cannot be read, ObjectChanged if it is in another
        state by now.
        """
        around = self._regular or self._bind(shard_shape)
        if shard is not None and around[0].codecs:
            (data,) = shard.part.read([(0, shard.part.size)])
            shard = Shard(MemoryPart(around[0].undo(data)), shard.generation)
        return self._read(shard, shard_shape, indices, around)

    def inner_chunk(self, key: str, stored: Index, leaf: Index) -> Shard | None:
        """An inner chunk of a shard, still encoded; None if it is not stored.

        Only if shards are `bare`. Raises as `read`, and ObjectChanged.
        """
        shape = self._shape(stored)
        if (shard := self._shards.find(key, shape)) is None:
            return None
        index = shard.places or self._shards.index(shard.part, 0, shape)
        where = index.locate(self.layout.levels[0].entry(leaf), self._leaf_limit)
        return None if where is None else Shard(shard.part.inner(*where), shard.generation)

    def stored_length(self, key: str, info: ObjectInfo, index: Index) -> int:
        """Encoded bytes of an inner chunk if the index is cached; else -1."""
        entries = None
        if self.bare:
            entries = self._shards.cached_index(self._shards.part(key, info), 0)
        if entries is None:
            return -1
        where = entries.locate(self.layout.levels[0].entry(index), self._leaf_limit)
        return 0 if where is None else where[1]

    def _read(
        self,
        shard: Shard | None,
        shape: Shape,
        indices: Sequence[Index],
        around: tuple[Wrapping, ...],
    ) -> ShardRead:
        if shard is None:
            return ShardRead([None] * len(indices), None)
        part, generation, places = shard
        return ShardRead(self._read_level(part, places, 0, shape, indices, around), generation)

    def _read_level(
        self,
        part: Part,
        places: ShardIndex | None,
        depth: int,
        shape: Shape,
        indices: Sequence[Index],
        around: tuple[Wrapping, ...],
    ) -> Iterable[Found]:
        level = self.layout.levels[depth]
        index = places or self._shards.index(part, depth, shape)
        if depth == len(self.layout.levels) - 1:
            return self._read_leaves(part, index, level.entries(indices))
        scale = [s // c for s, c in zip(level.inner_shape, self._leaf_shape, strict=True)]
        by_inner: dict[Index, list[Index]] = defaultdict(list)
        for leaf in indices:
            by_inner[tuple(i // n for i, n in zip(leaf, scale, strict=True))].append(leaf)
        found: dict[Index, Found] = {}
        for inner, leaves in by_inner.items():
            origin = [i * n for i, n in zip(inner, scale, strict=True)]
            relative = [tuple(i - o for i, o in zip(leaf, origin, strict=True)) for leaf in leaves]
            chunks: Iterable[Found] = [None] * len(leaves)
            try:
                most = around[depth + 1].encoded
                where = index.locate(level.entry(inner), part.size if most is None else most)
                if where is not None:
                    inner_part = self._unwrapped_inner(part, where, around[depth + 1])
                    chunks = self._read_level(
                        inner_part, None, depth + 1, level.inner_shape, relative, around
                    )
            except DecodeError as error:
                chunks = [error] * len(leaves)
            found.update(zip(leaves, chunks, strict=True))
        return [found[leaf] for leaf in indices]

    def _unwrapped_inner(self, part: Part, where: tuple[int, int], wrapping: Wrapping) -> Part:
        inner = part.inner(*where)
        if not wrapping.codecs:
            return inner
        name = None if inner.name is None else (*inner.name, "unwrapped")
        data = self.cache.get(name)
        if not isinstance(data, memoryview):
            (encoded,) = part.read([where])
            data = wrapping.undo(encoded)
            self.cache.put(name, data)
        return MemoryPart(data, name)

    def _read_leaves(
        self, part: Part, index: ShardIndex, entries: Sequence[Index]
    ) -> Iterable[Found]:
        """Inner chunks by their places in the index."""
        if (plan := self._plan(index, entries)) is not None:
            return plan.read(part)
        return [self._read_leaf(part, index, entry) for entry in entries]

    def _plan(self, index: ShardIndex, entries: Sequence[Index]) -> ReadPlan | None:
        """How to read inner chunks by their places in the index; None if one of these is bad."""
        limit = self._leaf_limit
        if len(entries) > _FEW:
            found = index.locate_all(entries, limit)
            return None if found is None else plan_scattered(*found)
        try:
            return plan_few([index.locate(entry, limit) for entry in entries])
        except DecodeError:
            return None

    def _read_leaf(self, part: Part, index: ShardIndex, entry: Index) -> Found:
        """One inner chunk alone; all are read this way if an entry of the index is bad."""
        try:
            where = index.locate(entry, self._leaf_limit)
        except DecodeError as error:
            return error
        return None if where is None else part.read([where])[0]
