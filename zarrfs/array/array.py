"""One array in a store: decoded chunks by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from zarrfs.array.chunk_memory import ChunkMemory
from zarrfs.array.part_reader import PartReader
from zarrfs.array.shards.parts import PartCache
from zarrfs.array.shards.shard_reader import ShardReader, shard_cost
from zarrfs.array.shards.stored_shards import Shard
from zarrfs.array.stored_chunks import ChunkDecoder, ChunkResult, StoredChunks
from zarrfs.errors import BudgetExceeded, ChunkError, DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_parts import chunk_parts
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import ObjectInfo, Store


class ArrayConfig(NamedTuple):
    """How arrays are read.

    memory : bytes that the chunks of one array may take, including the chunk being decoded.
    fill_missing : whether a chunk that is not stored reads as the fill value.
    document : key without which the array is not there, and no chunk of it the fill value.
    """

    memory: int
    fill_missing: bool = True
    document: str | None = None


class ArrayName(NamedTuple):
    """Identifies an array among all arrays of one store.

    fingerprint : see `ArrayMetadata.fingerprint`.
    """

    path: str
    fingerprint: str
    config: ArrayConfig


class Array:
    """Reads the chunks of one array. Thread-safe.

    path : of the array below the store's root; empty for the root itself.
    stored_shape : as this program and those that make the array larger have stored it.
    shard_cost : the most bytes of memory that reading from one shard takes in addition to its
        chunks; 0 for an array without shards.
    cost, total_cost, cost_in_block : see `ChunkMemory`.
    key : of a stored object, by its index.
    fill_chunk : a chunk of fill values that takes no memory.
    read_chunks, read_encoded : see `StoredChunks.read` and `StoredChunks.find`.
    parts : reads parts of chunks; None if these can only be decoded as a whole.
    decoder : of its chunks.
    at_once : the most chunks that a read holds in memory at once, in addition to data read from a
        shard.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        parts: PartCache,
        config: ArrayConfig,
    ) -> None:
        """Raises BudgetExceeded if a single chunk or shard index is too large."""
        self.store = store
        self.path = path
        self.metadata = metadata
        self.stored_shape = metadata.shape
        self.layout = metadata.layout
        self.config = config
        self.decoder = ChunkDecoder(self.layout)
        self.at_once = self.decoder.at_once
        wrapped = sum(bool(level.around) for level in self.layout.levels)
        # Undoing a wrapping takes twice this; all wrappings together take half of the memory.
        largest_wrapping = config.memory // (4 * max(1, wrapped))
        self._check_sizes(parts, largest_wrapping)
        self.shard_cost = (
            shard_cost(self.layout, self.layout.stored.largest_chunk, largest_wrapping)
            if self.layout.sharded
            else 0
        )
        self._memory = memory = ChunkMemory(
            self.layout, self.decoder, config.memory, self.shard_cost
        )
        self.cost, self.cost_in_block = memory.cost, memory.cost_in_block
        self.total_cost = memory.total_cost
        self._shards = (
            ShardReader(store, self.layout, parts, largest_wrapping, memory.longest)
            if self.layout.sharded
            else None
        )
        self._stored = StoredChunks(
            store,
            path,
            metadata,
            self.decoder,
            self._shards,
            memory.longest,
            fill_missing=config.fill_missing,
            document=config.document,
        )
        self.key = self._stored.key
        self.fill_chunk = self._stored.fill_chunk
        self.read_chunks, self.read_encoded = self._stored.read, self._stored.find
        self.parts = self._part_reader()

    def _part_reader(self) -> PartReader | None:
        shape, shards = self.layout.read.regular_shape, self._shards
        if shape is None or not self.layout.data_type.fixed_size:
            return None
        parts = chunk_parts(self.decoder.codec_of(shape))
        if parts is None or (shards is not None and not shards.bare):
            return None
        return PartReader(self.store, parts, self.key, self.layout.locate, shards)

    def set_memory(self, memory: int) -> None:
        """Change the bytes that chunks may take; the array must fit, as when it was opened."""
        self._memory.set_memory(memory)
        self.config = self.config._replace(memory=memory)

    def _check_sizes(self, parts: PartCache, largest_wrapping: int) -> None:
        shape = self.layout.stored.largest_chunk
        for level in self.layout.levels:
            index = level.index_codec(shape)
            if index.nbytes > parts.capacity:
                raise BudgetExceeded(
                    f"the index of a shard takes {index.nbytes} bytes, there is room for "
                    f"{parts.capacity}: raise it with -o memory="
                )
            whole = self.layout.spec(shape).nbytes
            if level.around and whole > largest_wrapping:
                raise BudgetExceeded(
                    f"a shard of {whole} bytes must be read whole, the memory budget has room "
                    f"for one of {largest_wrapping}: raise it with -o memory="
                )
            shape = level.inner_shape

    def fetched(self, shape: Shape) -> int:
        """The most bytes of a stored chunk of ``shape`` that is fetched."""
        return self._memory.longest(self.decoder.codec_of(shape))

    @property
    def name(self) -> ArrayName:
        return ArrayName(self.path, self._fingerprint, self.config)

    @cached_property
    def _fingerprint(self) -> str:
        return self.metadata.fingerprint

    @property
    def light(self) -> bool:
        """Whether chunks are objects of their own and cost little more than copying them."""
        return (
            not self.layout.sharded and self.decoder.codec_of(self.layout.read.largest_chunk).light
        )

    def stored_info(self, stored: Index) -> ObjectInfo | None:
        """Size and state of a stored object; None if it does not exist."""
        return self.store.info(self.key(stored))

    def may_be_stored(self, stored: Sequence[Index]) -> list[Index] | None:
        """Those of the stored objects that may exist; None if a missing one is an error."""
        if not self.config.fill_missing:
            return None
        by_key = {self.key(index): index for index in stored}
        there = [by_key[key] for key in self.store.may_exist(list(by_key))]
        return None if len(there) < len(by_key) and self._stored.deleted() else there

    def forget(self, stored: Iterable[Index]) -> None:
        """No longer trust the state in which these objects were seen."""
        if self._shards is not None:
            for index in stored:
                self._shards.states.forget(self.key(index))

    def forget_others(self, stored: Iterable[Index] = ()) -> None:
        """As `forget`, for all other objects."""
        if self._shards is not None:
            self._shards.states.keep({self.key(index) for index in stored})

    def inner_length(self, index: Index, info: ObjectInfo) -> int:
        """Encoded bytes of an inner chunk if the index of its shard is cached; else -1."""
        if self._shards is None:
            return info.size
        stored, local = self.layout.locate(index)
        try:
            return self._shards.stored_length(self.key(stored), info, local)
        except DecodeError:
            return -1

    def in_shard(
        self, stored: Index, shard: Shard | None, indices: Sequence[Index]
    ) -> dict[Index, Callable[[], ChunkResult]]:
        """Functions that decode read chunks of one state of a shard, each in any thread.

        shard : None: it is not stored.

        Raises ObjectChanged if the shard is in another state by now.
        """
        assert self._shards is not None
        key = self.key(stored)
        local = [self.layout.locate(index)[1] for index in indices]
        shape = self.layout.stored.chunk_shape(stored)
        try:
            found, generation = self._shards.taken_from(shard, shape, local)
        except DecodeError as error:
            failed = ChunkError(key, str(error))
            return {index: partial(ChunkResult, index, None, failed, None) for index in indices}
        return {
            index: partial(
                self.decoder.decode, self._stored.of_shard(key, index, encoded, generation), None
            )
            for index, encoded in zip(indices, found, strict=True)
        }
