"""One array in a store: decoded chunks by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from zarrfs.array.chunk_decoder import ChunkDecoder, ChunkResult, Memory, StoredChunk, why
from zarrfs.array.part_reader import PartReader
from zarrfs.array.presence import Presence
from zarrfs.array.shards.parts import PartCache
from zarrfs.array.shards.shard_reader import Found, ShardReader, shard_cost
from zarrfs.array.shards.stored_shards import Shard
from zarrfs.errors import (
    BudgetExceeded,
    ChunkError,
    DecodeError,
    MissingChunkError,
    StoreError,
    StoreTooLarge,
    TooLongToDecode,
    reason_of,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_parts import chunk_parts
from zarrfs.format.codec import Chunk
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Blob, Generation, ObjectInfo, Store

_DELETED = "the array was deleted from the source"


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
    parts : reads parts of chunks; None if these can only be decoded as a whole.
    decoder : of its chunks.
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
        wrapped = sum(bool(level.around) for level in self.layout.levels)
        # Undoing a wrapping takes twice this; all wrappings together take half of the memory.
        largest_wrapping = config.memory // (4 * max(1, wrapped))
        self._check_sizes(parts, largest_wrapping)
        self.shard_cost = (
            shard_cost(self.layout, self.layout.stored.largest_chunk, largest_wrapping)
            if self.layout.sharded
            else 0
        )
        self.decoder = ChunkDecoder(self.layout, config.memory, self.shard_cost)
        self._shards = (
            ShardReader(store, self.layout, parts, largest_wrapping, self.decoder.longest)
            if self.layout.sharded
            else None
        )
        self._deleted = Presence(store, path, metadata.zarr_format, config.document).deleted
        self._last_fill: Chunk | None = None
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
        self.decoder.set_memory(memory)
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

    def key(self, stored: Index) -> str:
        """Key of a stored object: a shard, or a chunk if the array has no shards."""
        key = self.metadata.chunk_keys.key(stored)
        return f"{self.path}/{key}" if self.path else key

    def read_chunks(
        self, indices: Sequence[Index], memory: Memory | None = None
    ) -> Iterator[ChunkResult]:
        """Decode read chunks, each once, in the order that `read_encoded` gives.

        memory : returns memory that the decoder may use for the decoded bytes of a chunk.

        An error of a chunk, or of its shard, is in the result of that chunk. A chunk that is not
        stored comes as an array of fill values that takes no memory.
        """
        for chunk in self.read_encoded(indices):
            yield self.decoder.decode(chunk, memory)

    def read_encoded(
        self, indices: Sequence[Index], *, scan: bool = False
    ) -> Iterator[StoredChunk | ChunkResult]:
        """Stored chunks or their results, each once, in the order of ``indices``.

        All chunks of a shard come where the first of them is. Each shard is read in one state.

        scan : whether the other chunks of their shards are wanted soon.
        """
        if self._shards is None:
            return self._whole(indices)
        return self._inner(self._shards, indices, scan=scan)

    def _whole(self, indices: Sequence[Index]) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are objects of their own."""
        grid, longest = self.layout.read, self.decoder.longest
        groups: Iterable[tuple[int, Iterable[Index]]]
        if (regular := grid.regular_shape) is not None:
            groups = [(longest(regular), indices)]
        else:
            groups = groupby(indices, lambda index: longest(grid.chunk_shape(index)))
        for most, group in groups:
            members = list(group)
            keys = [self.key(index) for index in members]
            for index, key, blob in zip(members, keys, self._fetch(keys, most), strict=True):
                if isinstance(blob, Blob):
                    yield StoredChunk(index, key, blob.data, blob.info.generation)
                elif blob is None:
                    yield self._missing(key, index, None)
                else:
                    remedy = self._remedy(index) if isinstance(blob, StoreTooLarge) else ""
                    yield ChunkResult(index, None, ChunkError(key, blob.reason + remedy), None)

    def _fetch(self, keys: Sequence[str], limit: int) -> Iterator[Blob | StoreError | None]:
        """As `Store.get_many`; an exception that no store should raise affects one object only."""
        done = 0
        while done < len(keys):
            try:
                for blob in self.store.get_many(keys[done:], limit=limit):
                    yield blob
                    done += 1
            except Exception as error:  # noqa: BLE001 - must affect one object only
                yield StoreError(keys[done], f"failed: {reason_of(error)}")
                done += 1
            else:
                return

    def _inner(
        self, shards: ShardReader, indices: Sequence[Index], *, scan: bool
    ) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are in shards."""
        by_shard: dict[Index, dict[Index, Index]] = {}
        for index in indices:
            stored, local = self.layout.locate(index)
            by_shard.setdefault(stored, {})[local] = index
        for stored, by_local in by_shard.items():
            key = self.key(stored)
            try:
                found, generation = shards.read(key, stored, list(by_local), scan=scan)
            except Exception as error:  # noqa: BLE001 - must affect this shard only
                reason = why(error)
                for index in by_local.values():
                    yield ChunkResult(index, None, ChunkError(key, reason), None)
                continue
            for index, data in zip(by_local.values(), found, strict=True):
                yield self._of_shard(key, index, data, generation)

    def _of_shard(
        self, key: str, index: Index, found: Found, generation: Generation | None
    ) -> StoredChunk | ChunkResult:
        """The result of looking for an inner chunk in its shard."""
        if found is None:
            return self._missing(key, index, generation)
        if not isinstance(found, DecodeError):
            return StoredChunk(index, key, found, generation)
        reason = f"inner chunk {list(index)}: {found}"
        if isinstance(found, TooLongToDecode):
            reason += self._remedy(index)
        return ChunkResult(index, None, ChunkError(key, reason), generation)

    def stored_chunk(self, result: ChunkResult) -> Chunk:
        """The chunk that changes are merged with: fill values if it is not stored.

        result : of reading it, which may say that a chunk that is not stored is an error.

        Raises ChunkError.
        """
        if isinstance(result.error, MissingChunkError):
            return self.fill_chunk(result.index)
        if result.error is not None:
            raise result.error
        assert result.chunk is not None
        return result.chunk

    def fill_chunk(self, index: Index) -> Chunk:
        """A chunk of fill values that takes no memory."""
        shape = self.layout.read.chunk_shape(index)
        # Arrays of a million chunks may have none of them stored.
        if (last := self._last_fill) is None or last.shape != shape:
            spec = self.layout.spec(shape)
            last = self._last_fill = np.broadcast_to(spec.data_type.element(spec.fill), shape)
        return last

    def _remedy(self, index: Index) -> str:
        """The end of the reason why a chunk is too long; empty if no budget would help."""
        shape = self.layout.read.chunk_shape(index)
        if self.decoder.longest(shape) == self.decoder.codec_of(shape).encoded.maximum:
            return ""
        return " with this memory budget: raise it with -o memory="

    def _missing(self, key: str, index: Index, generation: Generation | None) -> ChunkResult:
        """The result for a chunk that is not stored."""
        if not self.config.fill_missing:
            error = MissingChunkError(key, f"chunk {list(index)} is not stored")
            return ChunkResult(index, None, error, generation)
        if generation is None and self._deleted():
            return ChunkResult(index, None, ChunkError(key, _DELETED), None)
        return ChunkResult(index, self.fill_chunk(index), None, generation)

    def stored_info(self, stored: Index) -> ObjectInfo | None:
        """Size and state of a stored object; None if it does not exist."""
        return self.store.info(self.key(stored))

    def may_be_stored(self, stored: Sequence[Index]) -> list[Index] | None:
        """Those of the stored objects that may exist; None if a missing one is an error."""
        if not self.config.fill_missing:
            return None
        by_key = {self.key(index): index for index in stored}
        there = [by_key[key] for key in self.store.may_exist(list(by_key))]
        return None if len(there) < len(by_key) and self._deleted() else there

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
                self.decoder.decode, self._of_shard(key, index, encoded, generation), None
            )
            for index, encoded in zip(indices, found, strict=True)
        }
