"""The stored bytes of the chunks of one array: found by index, not decoded yet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice, pairwise, repeat
from operator import floordiv, mod, mul, sub

import numpy as np

from zarrfs.array.chunk_decoder import ChunkDecoder, ChunkResult, StoredBatch, StoredChunk
from zarrfs.array.shards.shard_reader import EncodedChunk, ShardReader, WantedShard
from zarrfs.errors import ChunkError, DecodeError, MissingChunkError, StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk, EncodedBatch
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Blob, Generation, Store

Together = tuple[EncodedBatch, Generation | None] | Exception | None
"""Inner chunks of one shard; see `ShardReader.read_several`."""


class StoredChunks:
    """Fetches chunks of one array. Thread-safe.

    path : of the array below the store's root; empty for the root itself.
    decoder : knows how large an encoded chunk may be.
    shards : None for an array without shards.
    fill_missing : whether a chunk that is not stored reads as the fill value.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        decoder: ChunkDecoder,
        shards: ShardReader | None,
        *,
        fill_missing: bool,
    ) -> None:
        self._store = store
        self._path = path
        self._layout = metadata.layout
        self._chunk_keys = metadata.chunk_keys
        self._decoder = decoder
        self._shards = shards
        self._fill_missing = fill_missing

    def key(self, stored: Index) -> str:
        """Key of a stored object: a shard, or a chunk if the array has no shards."""
        key = self._chunk_keys.key(stored)
        return f"{self._path}/{key}" if self._path else key

    def locate(self, index: Index) -> tuple[Index, Index]:
        """The shard that contains a read chunk, and the chunk's index within it."""
        layout = self._layout
        if layout.members is not None:
            stored = tuple(map(floordiv, index, layout.members))
            return stored, tuple(map(mod, index, layout.members))
        stored = layout.stored_index(index)
        shard_origin = layout.stored.origin(stored)
        leaf = layout.levels[-1].inner_shape
        return stored, tuple(i - o // n for i, o, n in zip(index, shard_origin, leaf, strict=True))

    def find(self, indices: Sequence[Index]) -> Iterator[StoredChunk | ChunkResult]:
        """Stored chunks or their results, in any order, each chunk once."""
        return self._whole(indices) if self._shards is None else self._inner(self._shards, indices)

    def alone(self, indices: Sequence[Index]) -> dict[Index, ChunkResult]:
        """Chunks that are read and decoded one by one."""
        found = (self._decoder.decode(chunk, None) for chunk in self.find(indices))
        return {result.index: result for result in found}

    def batches(
        self, indices: Sequence[Index], sizes: Sequence[int]
    ) -> Iterator[StoredBatch] | None:
        """Chunks in their order, in batches; None if `find` has to return each of them alone.

        sizes : the number of chunks of each batch.

        In a sharded array all indices must be in one shard, which is read in one state.
        """
        if self._shards is None:
            return self._whole_batches(indices, sizes)
        stored, _ = self.locate(indices[0])
        return self._inner_batches(self._shards, stored, indices, sizes)

    def _whole_batches(
        self, indices: Sequence[Index], sizes: Sequence[int]
    ) -> Iterator[StoredBatch]:
        keys = [self.key(index) for index in indices]
        blobs = self.fetch(keys, self._decoder.codec(indices[0]).encoded.maximum)
        for first, stop in pairwise(accumulate(sizes, initial=0)):
            part = indices[first:stop]
            pieces: list[Buffer] = []
            parts: list[tuple[int, int, int] | None] = []
            generations: list[Generation | None] = []
            alone: dict[int, ChunkResult] = {}
            for index, blob in zip(part, islice(blobs, len(part)), strict=True):
                if isinstance(blob, Blob):
                    parts.append((len(pieces), 0, len(blob.data)))
                    pieces.append(blob.data)
                    generations.append(blob.info.generation)
                    continue
                alone[len(parts)] = self._not_had(keys[first + len(parts)], index, blob)
                parts.append(None)
                generations.append(None)
            encoded = EncodedBatch(pieces, parts)
            yield StoredBatch(part, encoded, keys[first:stop], generations, alone, inner=False)

    def _inner_batches(
        self, shards: ShardReader, stored: Index, indices: Sequence[Index], sizes: Sequence[int]
    ) -> Iterator[StoredBatch] | None:
        """See `batches`."""
        members = self._layout.members
        if members is None:
            return None
        origin = tuple(map(mul, stored, members))
        local = [tuple(map(sub, index, origin)) for index in indices]
        for along, count in zip(zip(*local, strict=True), members, strict=True):
            if min(along) < 0 or max(along) >= count:
                return None
        key = self.key(stored)
        failed: ChunkError | None = None
        try:
            grid = self._layout.stored
            sides = zip(grid.valid_shape(stored), self._layout.levels[0].inner_shape, strict=True)
            all_of_it = len(local) == math.prod([-(-valid // inner) for valid, inner in sides])
            found = shards.read_together(key, grid.chunk_shape(stored), local, whole=all_of_it)
        except Exception as error:  # noqa: BLE001 - a decoder's error must affect this shard only
            failed = ChunkError(key, _reason(error))
            found = EncodedBatch([], [None] * len(indices)), None
        if found is None:
            return None
        return self._of_shard_together(key, indices, *found, failed, sizes)

    def _of_shard_together(
        self,
        key: str,
        indices: Sequence[Index],
        encoded: EncodedBatch,
        generation: Generation | None,
        failed: ChunkError | None,
        sizes: Sequence[int],
    ) -> Iterator[StoredBatch]:
        """
        failed : why the shard could not be read.
        """
        for first, stop in pairwise(accumulate(sizes, initial=0)):
            part = indices[first:stop]
            parts = encoded.parts[first:stop]
            alone = {
                number: ChunkResult(part[number], None, failed, None)
                if failed is not None
                else self.missing(key, part[number], generation)
                for number, place in enumerate(parts)
                if place is None
            }
            batch = EncodedBatch(encoded.pieces, parts)
            keys, generations = [key] * len(part), [generation] * len(part)
            yield StoredBatch(part, batch, keys, generations, alone, inner=True)

    def _whole(self, indices: Sequence[Index]) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are objects of their own."""

        def limit(index: Index) -> int:
            return self._decoder.codec(index).encoded.maximum

        groups: Iterable[tuple[int, Iterable[Index]]]
        if self._layout.read.regular_shape is None:
            groups = groupby(indices, limit)
        else:
            groups = [(limit(indices[0]), indices)] if indices else []
        for most, group in groups:
            members = list(group)
            keys = [self.key(index) for index in members]
            for index, key, blob in zip(members, keys, self.fetch(keys, most), strict=True):
                if isinstance(blob, Blob):
                    yield StoredChunk(index, key, blob.data, blob.info.generation, inner=False)
                else:
                    yield self._not_had(key, index, blob)

    def fetch(self, keys: Sequence[str], limit: int) -> Iterator[Blob | StoreError | None]:
        """As `Store.get_many`; an exception that no store should raise affects one object only."""
        done = 0
        while done < len(keys):
            try:
                for blob in self._store.get_many(keys[done:], limit=limit):
                    yield blob
                    done += 1
            except Exception as error:  # noqa: BLE001 - must affect one object only
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
        together: Iterator[Together] = repeat(None)
        if len(by_shard) > 1 and shards.reads_several and self._store.cheap_stat:
            shape = self._layout.stored.chunk_shape
            together = shards.read_several(
                [WantedShard(self.key(s), shape(s), list(local)) for s, local in by_shard.items()]
            )
        for (stored, by_local), found in zip(by_shard.items(), together, strict=False):
            yield from self._of_shard(shards, stored, by_local, found)

    def _of_shard(
        self,
        shards: ShardReader,
        stored: Index,
        by_local: dict[Index, Index],
        found: Together,
    ) -> Iterator[StoredChunk | ChunkResult]:
        """
        found : of these chunks.
        """
        key = self.key(stored)
        chunks: Iterable[EncodedChunk]
        reason = "not returned by its shard"
        try:
            shape = self._layout.stored.chunk_shape(stored)
            if found is None:
                found = shards.read_together(key, shape, list(by_local), whole=False)
            if isinstance(found, Exception):
                raise found
            if found is None:
                chunks = shards.read(key, shape, list(by_local))
            else:
                encoded, generation = found
                chunks = [
                    EncodedChunk(local, encoded.data(number), None, generation)
                    for number, local in enumerate(by_local)
                ]
            for chunk in chunks:
                yield self.of_shard(key, by_local.pop(chunk.index), chunk)
        except Exception as error:  # noqa: BLE001 - a decoder's error must affect this shard only
            reason = _reason(error)
        for index in by_local.values():
            yield ChunkResult(index, None, ChunkError(key, reason), None)

    def of_shard(self, key: str, index: Index, found: EncodedChunk) -> StoredChunk | ChunkResult:
        """The result of looking for an inner chunk in its shard."""
        if found.error is not None:
            error = ChunkError(key, f"inner chunk {list(index)}: {found.error}")
            return ChunkResult(index, None, error, found.generation)
        if found.data is None:
            return self.missing(key, index, found.generation)
        return StoredChunk(index, key, found.data, found.generation, inner=True)

    def fill_chunk(self, index: Index) -> Chunk:
        """A chunk of fill values that takes no memory."""
        spec = self._layout.spec(self._layout.read.chunk_shape(index))
        return np.broadcast_to(spec.data_type.element(spec.fill), spec.shape)

    def _not_had(self, key: str, index: Index, failure: StoreError | None) -> ChunkResult:
        """The result for a chunk that is not stored, or cannot be read."""
        if failure is None:
            return self.missing(key, index, None)
        return ChunkResult(index, None, ChunkError(key, failure.reason), None)

    def missing(self, key: str, index: Index, generation: Generation | None) -> ChunkResult:
        """The result for a chunk that is not stored."""
        if not self._fill_missing:
            error = MissingChunkError(key, f"chunk {list(index)} is not stored")
            return ChunkResult(index, None, error, generation)
        return ChunkResult(index, self.fill_chunk(index), None, generation)


def _reason(error: Exception) -> str:
    """Why a shard cannot be read."""
    if isinstance(error, StoreError):
        return error.reason
    return str(error) if isinstance(error, DecodeError) else f"decoder failed: {error!r}"
