"""The chunks of one array: found by index, and decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from zarrfs.array.presence import Presence
from zarrfs.array.shards.shard_reader import Found, ShardReader
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
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Blob, Generation, Store

Memory = Callable[[Index], memoryview | None]

_DELETED = "the array was deleted from the source"

# Decoded bytes that are copied together: with the encoded bytes they fit a core's own cache.
_AT_ONCE = 1 << 20


# Not frozen: that would triple the cost of creating an instance.
@dataclass(slots=True, eq=False, repr=False)
class ChunkResult:
    """One chunk, or the error of reading it.

    generation : state of the stored object it came from; None if it is not stored.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None


@dataclass(slots=True, eq=False, repr=False)
class StoredChunk:
    """The stored bytes of a chunk.

    key : of the stored object.
    """

    index: Index
    key: str
    data: Buffer
    generation: Generation | None


class ChunkDecoder:
    """Decodes chunks of ``layout``. Thread-safe.

    as_stored : the codec that decodes to elements in stored order, if all chunks have one shape;
        else None.
    at_once : the most chunks that are decoded to memory before they are copied together.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        shape = layout.read.regular_shape
        self._regular = regular = None if shape is None else layout.chunk_codec(shape)
        self.at_once = 1
        self.as_stored = None
        if regular is not None and regular.as_stored is not None:
            self.at_once = max(1, _AT_ONCE // regular.as_stored.size)
            self.as_stored = regular

    def codec(self, index: Index) -> ChunkCodec:
        """The codec of that chunk."""
        return self._regular or self.codec_of(self._layout.read.chunk_shape(index))

    def codec_of(self, shape: Shape) -> ChunkCodec:
        """The codec of chunks of that shape."""
        return self._regular or self._layout.chunk_codec(shape)

    def decode(self, stored: StoredChunk | ChunkResult, memory: Memory | None) -> ChunkResult:
        """Decode one chunk; a result is returned unchanged.

        memory : as `StoredChunks.read` takes it.
        """
        if isinstance(stored, ChunkResult):
            return stored
        index = stored.index
        try:
            chunk = self.codec(index).decode(stored.data, memory and memory(index))
        except Exception as error:  # noqa: BLE001 - a decoder's error must affect this chunk only
            reason = _reason(error)
        else:
            return ChunkResult(index, chunk, None, stored.generation)
        if self._layout.sharded:
            reason = f"inner chunk {list(index)}: {reason}"
        return ChunkResult(index, None, ChunkError(stored.key, reason), stored.generation)


class StoredChunks:
    """Fetches chunks of one array. Thread-safe.

    path : of the array below the store's root; empty for the root itself.
    decoder : has the codec of each chunk.
    shards : None for an array without shards.
    longest : the most bytes of a stored chunk.
    fill_missing : whether a chunk that is not stored reads as the fill value.
    document : see `ArrayConfig`.
    deleted : see `Presence`.
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
        document: str | None,
    ) -> None:
        self._store = store
        self._path = path
        self._layout = metadata.layout
        self._chunk_keys = metadata.chunk_keys
        self._decoder = decoder
        self._shards = shards
        self._longest = longest
        self._fill_missing = fill_missing
        self.deleted = Presence(store, path, metadata.zarr_format, document).deleted
        self._last_fill: Chunk | None = None

    def key(self, stored: Index) -> str:
        """Key of a stored object: a shard, or a chunk if the array has no shards."""
        key = self._chunk_keys.key(stored)
        return f"{self._path}/{key}" if self._path else key

    def read(self, indices: Sequence[Index], memory: Memory | None = None) -> Iterator[ChunkResult]:
        """Decode read chunks, each once, in the order that `find` gives.

        memory : returns memory that the decoder may use for the decoded bytes of a chunk.

        An error of a chunk, or of its shard, is in the result of that chunk. A chunk that is not
        stored comes as an array of fill values that takes no memory.
        """
        for chunk in self.find(indices):
            yield self._decoder.decode(chunk, memory)

    def find(
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

        def limit(index: Index) -> int:
            return self._longest(self._decoder.codec(index))

        groups: Iterable[tuple[int, Iterable[Index]]] = groupby(indices, limit)
        if indices and self._layout.read.regular_shape is not None:
            groups = [(limit(indices[0]), indices)]
        for most, group in groups:
            members = list(group)
            keys = [self.key(index) for index in members]
            for index, key, blob in zip(members, keys, self.fetch(keys, most), strict=True):
                if isinstance(blob, Blob):
                    yield StoredChunk(index, key, blob.data, blob.info.generation)
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
        by_shard: dict[Index, dict[Index, Index]] = {}
        for index in indices:
            stored, local = self._layout.locate(index)
            by_shard.setdefault(stored, {})[local] = index
        for stored, by_local in by_shard.items():
            key = self.key(stored)
            try:
                found, generation = shards.read(key, stored, list(by_local), scan=scan)
            except Exception as error:  # noqa: BLE001 - must affect this shard only
                reason = _reason(error)
                for index in by_local.values():
                    yield ChunkResult(index, None, ChunkError(key, reason), None)
                continue
            for index, data in zip(by_local.values(), found, strict=True):
                yield self.of_shard(key, index, data, generation)

    def of_shard(
        self, key: str, index: Index, found: Found, generation: Generation | None
    ) -> StoredChunk | ChunkResult:
        """The result of looking for an inner chunk in its shard."""
        if found is None:
            return self.missing(key, index, generation)
        if not isinstance(found, DecodeError):
            return StoredChunk(index, key, found, generation)
        reason = f"inner chunk {list(index)}: {found}"
        if isinstance(found, TooLongToDecode):
            reason += self._remedy(index)
        return ChunkResult(index, None, ChunkError(key, reason), generation)

    def fill_chunk(self, index: Index) -> Chunk:
        """A chunk of fill values that takes no memory."""
        shape = self._layout.read.chunk_shape(index)
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
        if generation is None and self.deleted():
            return ChunkResult(index, None, ChunkError(key, _DELETED), None)
        return ChunkResult(index, self.fill_chunk(index), None, generation)


def _reason(error: Exception) -> str:
    """Why a chunk or shard cannot be read."""
    if isinstance(error, StoreError):
        return error.reason
    if isinstance(error, DecodeError):
        return str(error)
    return f"cannot be decoded: {reason_of(error)}"
