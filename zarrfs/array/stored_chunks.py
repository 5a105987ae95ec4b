"""The stored bytes of the chunks of one array: found by index, not decoded yet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice, pairwise, repeat
from operator import floordiv, itemgetter, mod

import numpy as np

from zarrfs.array.chunk_decoder import ChunkDecoder, ChunkResult, StoredBatch, StoredChunk
from zarrfs.array.shards.shard_reader import EncodedChunk, ShardReader, WantedShard
from zarrfs.errors import (
    ChunkError,
    DecodeError,
    MissingChunkError,
    StoreError,
    StoreTooLarge,
    TooLongToDecode,
    reason_of,
)
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Buffer, Chunk, EncodedBatch
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Blob, Generation, Store

Together = tuple[EncodedBatch, Generation | None] | Exception | None
"""Inner chunks of one shard; see `ShardReader.read_several`."""


class StoredChunks:
    """Fetches chunks of one array. Thread-safe.

    path : of the array below the store's root; empty for the root itself.
    decoder : has the codec of each chunk.
    shards : None for an array without shards.
    longest : the most bytes of a stored chunk.
    fill_missing : whether a chunk that is not stored reads as the fill value.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        decoder: ChunkDecoder,
        shards: ShardReader | None,
        longest: Callable[[ChunkCodec], int],
        *,
        fill_missing: bool,
    ) -> None:
        self._store = store
        self._path = path
        self._layout = metadata.layout
        self._chunk_keys = metadata.chunk_keys
        self._decoder = decoder
        self._shards = shards
        self._longest = longest
        self._fill_missing = fill_missing
        self._last_fill: Chunk | None = None

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

    def find(
        self, indices: Sequence[Index], *, scan: bool = False
    ) -> Iterator[StoredChunk | ChunkResult]:
        """Stored chunks or their results, in any order, each chunk once.

        scan : whether the other chunks of their shards are wanted soon.
        """
        if self._shards is None:
            return self._whole(indices)
        return self._inner(self._shards, indices, scan=scan)

    def alone(self, indices: Sequence[Index], numbers: Sequence[int]) -> dict[int, ChunkResult]:
        """Some chunks that are read and decoded one by one, by their positions in ``indices``."""
        wanted = {indices[number]: number for number in numbers}
        found = (self._decoder.decode(chunk, None) for chunk in self.find(list(wanted)))
        return {wanted[result.index]: result for result in found}

    def batches(
        self, indices: Sequence[Index], sizes: Sequence[int], *, scan: bool
    ) -> Iterator[StoredBatch] | None:
        """Chunks in their order, in batches; None if `find` has to return each of them alone.

        indices : in a sharded array, those of one shard follow each other. They must be of one
            shard unless `joins_shards` is set.
        sizes : the number of chunks of each batch.
        scan : as in `find`.

        Each shard is read in one state.
        """
        if self._shards is None:
            return self._whole_batches(indices, sizes)
        if self._layout.members is None or not self._shards.reads_several:
            return None
        runs = list(self._by_shard(indices))
        if len(runs) > 1 and not self.joins_shards:
            return None
        return self._inner_batches(
            indices, sizes, runs, self._together(self._shards, indices[0], runs, scan=scan)
        )

    @property
    def joins_shards(self) -> bool:
        """Whether chunks of several shards are read faster together."""
        return self._shards is not None and self._shards.reads_several and self._store.traits.near

    def _whole_batches(
        self, indices: Sequence[Index], sizes: Sequence[int]
    ) -> Iterator[StoredBatch]:
        keys = [self.key(index) for index in indices]
        blobs = self.fetch(keys, self._longest(self._decoder.codec(indices[0])))
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

    def _by_shard(self, indices: Sequence[Index]) -> Iterator[WantedShard]:
        """The chunks of each shard, as far as they follow each other."""
        for stored, group in groupby(map(self.locate, indices), itemgetter(0)):
            shape = self._layout.stored.chunk_shape(stored)
            yield WantedShard(self.key(stored), shape, [index for _, index in group])

    def _together(
        self, shards: ShardReader, first: Index, runs: Sequence[WantedShard], *, scan: bool
    ) -> Iterator[Together]:
        """
        first : of all chunks.
        """
        if len(runs) > 1:
            yield from shards.read_several(runs)
            return
        (run,) = runs
        valid = self._layout.stored.valid_shape(self.locate(first)[0])
        inner = self._layout.levels[0].inner_shape
        count = math.prod([-(-v // n) for v, n in zip(valid, inner, strict=True)])
        try:
            yield shards.read_together(run, whole=len(run.indices) == count, scan=scan)
        except Exception as error:  # noqa: BLE001 - a decoder's error must affect this shard only
            yield error

    def _inner_batches(
        self,
        indices: Sequence[Index],
        sizes: Sequence[int],
        runs: Sequence[WantedShard],
        read: Iterator[Together],
    ) -> Iterator[StoredBatch]:
        """See `batches`.

        read : each of ``runs``.
        """
        coming = zip(runs, read, strict=True)
        key, begin, end = "", 0, 0
        found: Together = None
        for first, stop in pairwise(accumulate(sizes, initial=0)):
            part = indices[first:stop]
            pieces: list[Buffer] = []
            parts: list[tuple[int, int, int] | None] = []
            keys: list[str] = []
            generations: list[Generation | None] = []
            alone: dict[int, ChunkResult] = {}
            while (at := first + len(parts)) < stop:
                if at == end:
                    run, found = next(coming)
                    key, begin, end = run.key, end, end + len(run.indices)
                some = range(len(parts), min(end, stop) - first)
                keys += [key] * len(some)
                if isinstance(found, tuple):
                    encoded, generation = found
                    # Chunks of one shard share its pieces.
                    base = len(pieces)
                    pieces += encoded.pieces
                    parts += [
                        place and (place[0] + base, place[1], place[2])
                        for place in encoded.parts[at - begin : at - begin + len(some)]
                    ]
                    for number in some:
                        if parts[number] is None:
                            alone[number] = self.missing(key, part[number], generation)
                    generations += [generation] * len(some)
                else:
                    parts += [None] * len(some)
                    if found is None:
                        alone |= self.alone(part, some)
                    else:
                        error = ChunkError(key, _reason(found))
                        alone |= {n: ChunkResult(part[n], None, error, None) for n in some}
                    generations += [alone[number].generation for number in some]
            yield StoredBatch(
                part, EncodedBatch(pieces, parts), keys, generations, alone, inner=True
            )

    def _whole(self, indices: Sequence[Index]) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are objects of their own."""

        def limit(index: Index) -> int:
            return self._longest(self._decoder.codec(index))

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
                yield StoreError(keys[done], f"failed: {reason_of(error)}")
                done += 1
            else:
                return

    def _inner(
        self, shards: ShardReader, indices: Sequence[Index], *, scan: bool
    ) -> Iterator[StoredChunk | ChunkResult]:
        """Chunks that are in shards."""
        by_shard: dict[Index, dict[Index, Index]] = defaultdict(dict)
        for index in indices:
            stored, local = self.locate(index)
            by_shard[stored][local] = index
        together: Iterator[Together] = repeat(None)
        if len(by_shard) > 1 and self.joins_shards:
            shape = self._layout.stored.chunk_shape
            together = shards.read_several(
                [WantedShard(self.key(s), shape(s), list(local)) for s, local in by_shard.items()]
            )
        for (stored, by_local), found in zip(by_shard.items(), together, strict=False):
            yield from self._of_shard(shards, stored, by_local, found, scan=scan)

    def _of_shard(
        self,
        shards: ShardReader,
        stored: Index,
        by_local: dict[Index, Index],
        found: Together,
        *,
        scan: bool,
    ) -> Iterator[StoredChunk | ChunkResult]:
        """
        found : of these chunks.
        """
        key = self.key(stored)
        chunks: Iterable[EncodedChunk]
        reason = "not returned by its shard"
        try:
            shape = self._layout.stored.chunk_shape(stored)
            if found is None and shards.reads_several:
                wanted = WantedShard(key, shape, list(by_local))
                found = shards.read_together(wanted, whole=False, scan=scan)
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
            reason = f"inner chunk {list(index)}: {found.error}"
            if isinstance(found.error, TooLongToDecode):
                reason += self._remedy(index)
            error = ChunkError(key, reason)
            return ChunkResult(index, None, error, found.generation)
        if found.data is None:
            return self.missing(key, index, found.generation)
        return StoredChunk(index, key, found.data, found.generation, inner=True)

    def fill_chunk(self, index: Index) -> Chunk:
        """A chunk of fill values that takes no memory."""
        return self._filled(self._layout.read.chunk_shape(index))

    def _filled(self, shape: Shape) -> Chunk:
        # Arrays of a million chunks may have none of them stored.
        if (last := self._last_fill) is None or last.shape != shape:
            spec = self._layout.spec(shape)
            last = self._last_fill = np.broadcast_to(spec.data_type.element(spec.fill), shape)
        return last

    def _not_had(self, key: str, index: Index, failure: StoreError | None) -> ChunkResult:
        """The result for a chunk that is not stored, or cannot be read."""
        if failure is None:
            return self.missing(key, index, None)
        reason = failure.reason
        if isinstance(failure, StoreTooLarge):
            reason += self._remedy(index)
        return ChunkResult(index, None, ChunkError(key, reason), None)

    def _remedy(self, index: Index) -> str:
        """The end of the reason why a chunk is too long; empty if no budget would help."""
        codec = self._decoder.codec(index)
        if self._longest(codec) == codec.encoded.maximum:
            return ""
        return " with this memory budget: raise it with -o memory="

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
    if isinstance(error, DecodeError):
        return str(error)
    return f"cannot be decoded: {reason_of(error)}"
