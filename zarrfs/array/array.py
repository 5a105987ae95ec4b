"""One array in a store: decoded chunks by index."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import floordiv, mod, mul, sub
from typing import NamedTuple

import numpy as np

from zarrfs.array.chunk_decoder import (
    ChunkDecoder,
    ChunkResult,
    DecodedBatch,
    Memory,
    StoredBatch,
    StoredChunk,
)
from zarrfs.array.parts import PartCache
from zarrfs.array.shard_reader import EncodedChunk, ShardReader
from zarrfs.errors import (
    BudgetExceeded,
    ChunkError,
    DecodeError,
    MissingChunkError,
    StoreError,
)
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Buffer, Chunk, EncodedBatch
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Blob, Generation, ObjectInfo, Store

# Chunks below which nothing is gained by having them together.
_TOGETHER = 2


class ArrayConfig(NamedTuple):
    """How arrays are read.

    memory : bytes that one array's chunks may take, the one being decoded included.
    fill_missing : whether a chunk that is not stored reads as the fill value.
    """

    memory: int
    fill_missing: bool = True


class Array:
    """Reads the chunks of one array. Safe for any number of threads.

    path : of the array below the store's root; empty for the root itself.
    shard_cost : the most bytes of memory that reading from one shard takes beyond its
        chunks; 0 where nothing is sharded.
    at_once : the most chunks that are in memory at once on their way, beyond what is read
        of a shard.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        parts: PartCache,
        config: ArrayConfig,
    ) -> None:
        """Raises BudgetExceeded where a single chunk or shard index is too large."""
        self.store = store
        self.path = path
        self.metadata = metadata
        self.layout = metadata.layout
        self.config = config
        self._decoder = ChunkDecoder(self.layout)
        self.at_once = self._decoder.at_once
        wrapped = sum(bool(level.around) for level in self.layout.levels)
        # Undoing all wrappings takes twice this for each, half of the memory in all.
        largest_wrapping = config.memory // (4 * max(1, wrapped))
        self._check_sizes(parts, largest_wrapping)
        self._shards = (
            ShardReader(store, self.layout, parts, largest_wrapping)
            if self.layout.sharded
            else None
        )
        self.shard_cost = (
            0 if self._shards is None else self._shards.cost(self.layout.stored.largest_chunk)
        )
        self._check_cost()

    def _check_cost(self) -> None:
        largest = self.cost(self.layout.read.largest_chunk) + self.shard_cost
        if largest > self.config.memory:
            raise BudgetExceeded(
                f"decoding one chunk takes up to {largest} bytes, the memory budget is "
                f"{self.config.memory}: raise it with -o memory="
            )

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

    def cost(self, shape: Shape) -> int:
        """The most bytes of memory that decoding one chunk of ``shape`` takes.

        The encoded bytes, the chunk, and one copy of it between two codecs.
        """
        codec = self._decoder.codec_of(shape)
        in_place = codec.array_bytes.is_memory_layout and not codec.bytes_bytes
        # Inner chunks come as parts of something larger and are copied out of it.
        if in_place and not codec.array_array and not self.layout.sharded:
            return codec.spec.nbytes
        cost = codec.encoded.maximum + 2 * codec.spec.nbytes
        if self.layout.data_type.fixed_size:
            return cost
        # Metadata do not tell how large such a chunk is, and the limit is far above what
        # they mostly are. Where that is more than there is, one is decoded at a time.
        return min(cost, self.config.memory - self.shard_cost)

    @property
    def light(self) -> bool:
        """Whether chunks are objects of their own and cost little more than copying them."""
        return (
            not self.layout.sharded and self._decoder.codec_of(self.layout.read.largest_chunk).light
        )

    def key(self, stored: Index) -> str:
        """Key of a stored object: a shard, or a chunk where nothing is sharded."""
        key = self.metadata.chunk_keys.key(stored)
        return f"{self.path}/{key}" if self.path else key

    def stored_info(self, stored: Index) -> ObjectInfo | None:
        """Size and state of a stored object; None if it is not there."""
        return self.store.info(self.key(stored))

    def forget(self, stored: Iterable[Index] | None = None) -> None:
        """Rely no longer on the state in which these objects were seen; None: on any."""
        if self._shards is None:
            return
        if stored is None:
            self._shards.forget()
        else:
            for index in stored:
                self._shards.forget(self.key(index))

    def inner_length(self, index: Index, info: ObjectInfo) -> int:
        """Encoded bytes of an inner chunk, where its shard's index is at hand; else -1."""
        if self._shards is None:
            return info.size
        stored, local = self.locate(index)
        shape = self.layout.stored.chunk_shape(stored)
        try:
            return self._shards.stored_length(self.key(stored), info, shape, local)
        except DecodeError:
            return -1

    def read_chunks(
        self, indices: Sequence[Index], memory: Memory | None = None
    ) -> Iterator[ChunkResult]:
        """Decode read chunks, in any order; each of ``indices`` comes exactly once.

        memory : gives memory for the decoded bytes of a chunk, which may be used.

        What concerns one chunk, or the shard it is in, is in its result. A chunk
        that is not stored comes as an array of fill values that takes no memory.
        """
        found = self._whole(indices) if self._shards is None else self._inner(self._shards, indices)
        for chunk in found:
            yield self._decoder.decode(chunk, memory)

    def read_together(
        self, indices: Sequence[Index], memory: Callable[[int, int], memoryview]
    ) -> Iterator[DecodedBatch] | None:
        """Decode small chunks several at once, in this order; None where that cannot be.

        memory : gives memory for the decoded bytes of chunks, of which it is told the position
            of the first one in ``indices`` and how many they are, at most ``at_once``.

        Of what is in shards, all indices must be of one, which is read in one state.
        """
        if self._decoder.together is None or len(indices) < _TOGETHER:
            return None
        if self._shards is None:
            return self._decode_batches(self._whole_batches(indices), memory)
        stored, _ = self.locate(indices[0])
        batches = self._inner_batches(self._shards, stored, indices)
        return None if batches is None else self._decode_batches(batches, memory)

    def _decode_batches(
        self, batches: Iterable[StoredBatch], memory: Callable[[int, int], memoryview]
    ) -> Iterator[DecodedBatch]:
        first = 0
        for batch in batches:
            count = len(batch.indices)
            yield self._decoder.decode_batch(batch, memory(first, count))
            first += count

    def _whole_batches(self, indices: Sequence[Index]) -> Iterator[StoredBatch]:
        keys = [self.key(index) for index in indices]
        blobs = self._fetch(keys, self._decoder.codec(indices[0]).encoded.maximum)
        for first in range(0, len(indices), self.at_once):
            part = indices[first : first + self.at_once]
            pieces: list[Buffer] = []
            parts: list[tuple[int, int, int] | None] = []
            generations: list[Generation | None] = []
            alone: dict[int, ChunkResult] = {}
            for index, blob in zip(part, blobs, strict=False):
                if isinstance(blob, Blob):
                    parts.append((len(pieces), 0, len(blob.data)))
                    pieces.append(blob.data)
                    generations.append(blob.info.generation)
                    continue
                alone[len(parts)] = self._not_had(keys[first + len(parts)], index, blob)
                parts.append(None)
                generations.append(None)
            encoded = EncodedBatch(pieces, parts)
            yield StoredBatch(part, encoded, keys[first:], generations, alone, inner=False)

    def _inner_batches(
        self, shards: ShardReader, stored: Index, indices: Sequence[Index]
    ) -> Iterator[StoredBatch] | None:
        """All of one shard; None where `read_chunks` has to tell of each what it is."""
        members = self.layout.members
        if members is None:
            return None
        origin = tuple(map(mul, stored, members))
        local = [tuple(map(sub, index, origin)) for index in indices]
        for along, count in zip(zip(*local, strict=True), members, strict=True):
            if min(along) < 0 or max(along) >= count:
                return None
        key = self.key(stored)
        try:
            found = shards.read_together(key, self.layout.stored.chunk_shape(stored), local)
        except Exception:  # noqa: BLE001 - whatever it was
            return None
        return None if found is None else self._batches_of_shard(key, indices, *found)

    def _batches_of_shard(
        self, key: str, indices: Sequence[Index], encoded: EncodedBatch, generation: Generation
    ) -> Iterator[StoredBatch]:
        for first in range(0, len(indices), self.at_once):
            part = indices[first : first + self.at_once]
            parts = encoded.parts[first : first + self.at_once]
            alone = {}
            if None in parts:
                alone = {
                    number: self._missing(key, part[number], generation)
                    for number, place in enumerate(parts)
                    if place is None
                }
            count = len(part)
            yield StoredBatch(
                part,
                EncodedBatch(encoded.pieces, parts),
                [key] * count,
                [generation] * count,
                alone,
                inner=True,
            )

    def in_shard(
        self, stored: Index, blob: Blob | None, indices: Sequence[Index]
    ) -> dict[Index, Callable[[], ChunkResult]]:
        """What decodes read chunks of a shard that is at hand, each in whatever thread.

        blob : all of it; None: it is not stored.
        """
        assert self._shards is not None
        key = self.key(stored)
        by_local = {self.locate(index)[1]: index for index in indices}
        shape = self.layout.stored.chunk_shape(stored)
        try:
            found = self._shards.taken_from(blob, shape, list(by_local))
        except DecodeError as error:
            failed = ChunkError(key, str(error))
            return {index: partial(ChunkResult, index, None, failed, None) for index in indices}
        return {
            index: partial(self._decoder.decode, self._of(key, index, encoded), None)
            for encoded in found
            for index in (by_local[encoded.index],)
        }

    def locate(self, index: Index) -> tuple[Index, Index]:
        """The shard that holds a read chunk, and the chunk's index within it."""
        layout = self.layout
        if layout.members is not None:
            stored = tuple(map(floordiv, index, layout.members))
            return stored, tuple(map(mod, index, layout.members))
        stored = layout.stored_index(index)
        shard_origin = layout.stored.origin(stored)
        leaf = layout.levels[-1].inner_shape
        return stored, tuple(i - o // n for i, o, n in zip(index, shard_origin, leaf, strict=True))

    def _whole(self, indices: Sequence[Index]) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are objects of their own."""

        def limit(index: Index) -> int:
            return self._decoder.codec(index).encoded.maximum

        groups: Iterable[tuple[int, Iterable[Index]]]
        if self.layout.read.regular_shape is None:
            groups = groupby(indices, limit)
        else:
            groups = [(limit(indices[0]), indices)] if indices else []
        for most, group in groups:
            members = list(group)
            keys = [self.key(index) for index in members]
            for index, key, blob in zip(members, keys, self._fetch(keys, most), strict=True):
                if isinstance(blob, Blob):
                    yield StoredChunk(index, key, blob.data, blob.info.generation, inner=False)
                else:
                    yield self._not_had(key, index, blob)

    def _fetch(self, keys: Sequence[str], limit: int) -> Iterator[Blob | StoreError | None]:
        """`Store.get_many`, in which what no store should raise is one object's own matter."""
        done = 0
        while done < len(keys):
            try:
                for blob in self.store.get_many(keys[done:], limit=limit):
                    yield blob
                    done += 1
            except Exception as error:  # noqa: BLE001 - a surprise must stop nothing else
                yield StoreError(keys[done], f"failed: {error!r}")
                done += 1
            else:
                return

    def _inner(
        self, shards: ShardReader, indices: Sequence[Index]
    ) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are in shards."""
        by_shard: dict[Index, dict[Index, Index]] = defaultdict(dict)
        for index in indices:
            stored, local = self.locate(index)
            by_shard[stored][local] = index
        for stored, by_local in by_shard.items():
            yield from self._of_shard(shards, stored, by_local)

    def _of_shard(
        self, shards: ShardReader, stored: Index, by_local: dict[Index, Index]
    ) -> Iterator[StoredChunk | ChunkResult]:
        key = self.key(stored)
        shape = self.layout.stored.chunk_shape(stored)
        reason = "not returned by its shard"
        try:
            for found in shards.read(key, shape, list(by_local)):
                yield self._of(key, by_local.pop(found.index), found)
        except StoreError as error:
            reason = error.reason
        except DecodeError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a decoder's surprise must stop nothing else
            reason = f"decoder failed: {error!r}"
        for index in by_local.values():
            yield ChunkResult(index, None, ChunkError(key, reason), None)

    def _of(self, key: str, index: Index, found: EncodedChunk) -> StoredChunk | ChunkResult:
        """What was found of an inner chunk in its shard."""
        if found.error is not None:
            error = ChunkError(key, f"inner chunk {list(index)}: {found.error}")
            return ChunkResult(index, None, error, found.generation)
        if found.data is None:
            return self._missing(key, index, found.generation)
        return StoredChunk(index, key, found.data, found.generation, inner=True)

    def chunks_in(self, stored: Index) -> int:
        """How many read chunks of a stored object hold part of the array."""
        if not self.layout.sharded:
            return 1
        valid = self.layout.stored.valid_shape(stored)
        leaf = self.layout.levels[-1].inner_shape
        return math.prod(-(-v // n) for v, n in zip(valid, leaf, strict=True))

    def fill_chunk(self, index: Index) -> Chunk:
        """A chunk of fill values that takes no memory."""
        spec = self.layout.spec(self.layout.read.chunk_shape(index))
        return np.broadcast_to(spec.data_type.element(spec.fill), spec.shape)

    def _not_had(self, key: str, index: Index, failure: StoreError | None) -> ChunkResult:
        """What there is of a chunk that is not stored, or cannot be read."""
        if failure is None:
            return self._missing(key, index, None)
        return ChunkResult(index, None, ChunkError(key, failure.reason), None)

    def _missing(self, key: str, index: Index, generation: Generation | None) -> ChunkResult:
        if not self.config.fill_missing:
            error = MissingChunkError(key, f"chunk {list(index)} is not stored")
            return ChunkResult(index, None, error, generation)
        return ChunkResult(index, self.fill_chunk(index), None, generation)
