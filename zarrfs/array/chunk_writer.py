"""Replaces stored objects of one array: chunks, or shards with some inner chunks changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from zarrfs.array.array import Array
from zarrfs.array.shards.parts import ObjectChanged, StoredPart
from zarrfs.array.shards.shard_parts import ShardParts
from zarrfs.array.shards.shard_writer import InnerChanges, ShardWriter
from zarrfs.array.shards.stored_shards import Shard
from zarrfs.errors import ChunkError, DecodeError, StoreConflict, StoreError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.copying import plain_type
from zarrfs.store.base import ANY, Data, Expected, Generation, Put

Each = Callable[[Callable[[int], None], int], None]
"""Calls a function with every number below the given one, in any order, also concurrently."""

Merge = Callable[[Chunk], Chunk]
"""Makes the new chunk from the old one."""

Stored: TypeAlias = Generation | StoreError | None
"""The new state of an object, None if it was removed; or the error."""

_NONE: Mapping[Index, Merge] = MappingProxyType({})


class Replaced(NamedTuple):
    """New read chunks of one shard.

    chunks : whole chunks by index; None for a chunk to be removed.
    merges : functions that complete other chunks from their stored elements.
    """

    chunks: Mapping[Index, Chunk | None]
    merges: Mapping[Index, Merge] = _NONE


Batch = Callable[[], Replaced]


def one_by_one(work: Callable[[int], None], count: int) -> None:
    for number in range(count):
        work(number)


# Bytes and number of the chunks of a shard that are encoded in one batch. Handing a smaller one to
# another thread takes longer than it saves.
_BATCH_BYTES = 1 << 20
_BATCH_CHUNKS = 4096


class EncodedObject(NamedTuple):
    """An object to be stored.

    parts : its bytes; None: the object is to be removed.
    expected : the state that it must be in; ANY if any state is accepted.
    """

    key: str
    parts: Sequence[Data] | None
    expected: Expected


class ChunkWriter:
    """Writes to one array. Thread-safe, but one thread at a time per stored object.

    store_fill : whether chunks of fill values only are stored. They always are if the fill value is
        ``null``: for missing chunks zarr-python 2 then returns uninitialised memory.
    largest_whole : bytes of a stored shard up to which a rewrite reads all of it at once.
    each : encodes the chunks of a shard, in any threads.
    """

    def __init__(
        self,
        array: Array,
        *,
        store_fill: bool,
        largest_whole: int,
        each: Each = one_by_one,
    ) -> None:
        self.array = array
        self._each = each
        self.store_fill = store_fill or not array.metadata.has_fill
        self.largest_whole = largest_whole
        layout = array.layout
        self._shards = ShardWriter(layout) if layout.sharded else None
        fill = layout.data_type.element(layout.fill)
        # Elements of variable length have no bits to compare.
        self._plain = fill.dtype if fill.dtype.hasobject else plain_type(fill.itemsize)
        fill = fill.reshape(1)
        self._fill = (fill if self._plain.hasobject else fill.view(self._plain))[0]

    def write(
        self,
        stored: Index,
        chunks: Mapping[Index, Chunk | None],
        expected: Expected,
    ) -> tuple[Expected, Generation | None]:
        """Store read chunks that all lie in the stored object ``stored``; see `encode`.

        Returns the state it was in, ANY if any state was accepted, and its new state.

        Raises StoreConflict if the object changed meanwhile, StoreError if the store fails,
        ChunkError if the old shard is damaged.
        """
        encoded = self.encode(stored, chunks, expected)
        (result,) = self.store([encoded])
        if isinstance(result, StoreError):
            raise result
        return encoded.expected, result

    def encode(
        self,
        stored: Index,
        chunks: Mapping[Index, Chunk | None],
        expected: Expected,
    ) -> EncodedObject:
        """The stored object ``stored`` with new read chunks in it.

        chunks : whole chunks by index; None for a chunk to be removed. Elements beyond the array
            are stored as fill value, whatever the chunk has there.
        expected : state of the object that old elements in the chunks came from; ANY if there are
            none.

        Raises as `write`.
        """
        key = self.array.key(stored)
        if self._shards is None:
            ((index, chunk),) = chunks.items()
            chunk = self._to_be_encoded(index, chunk)
            if chunk is None:
                return EncodedObject(key, None, expected)
            codec = self.array.decoder.codec_of(chunk.shape)
            return EncodedObject(key, codec.encode_in_parts(chunk), expected)
        # Indices beyond the array may be there to be removed.
        inside = sum(map(self.array.layout.read.contains, chunks))
        whole = inside == self.array.layout.count_in(stored)
        return self.encode_shard(stored, [partial(Replaced, chunks)], expected, whole=whole)

    @property
    def batch_size(self) -> int:
        """How many chunks of a shard to encode in one batch."""
        size = max(1, self.array.layout.spec(self.array.layout.read.largest_chunk).nbytes)
        return max(1, min(_BATCH_BYTES // size, _BATCH_CHUNKS))

    def encode_shard(
        self, stored: Index, batches: Sequence[Batch], expected: Expected, *, whole: bool
    ) -> EncodedObject:
        """The shard ``stored`` with new chunks; as `encode`.

        batches : each is called once, in the thread that encodes its chunks.
        whole : whether the shard keeps no other chunk.
        """
        assert self._shards is not None
        key = self.array.key(stored)
        shape = self.array.layout.stored.chunk_shape(stored)
        old: Shard | None = None
        if not whole:
            old = self._read_shard(key, shape)
            found = None if old is None else old.generation
            if expected not in (ANY, found):
                raise StoreConflict(key, "changed while it was rewritten")
            expected = found
        changes = InnerChanges.none(self._shards.counts(shape))
        lock = Lock()

        def encode(number: int) -> None:
            indices, data = self._encoded_batch(stored, old, batches[number]())
            local = [self.array.layout.locate(index)[1] for index in indices]
            # In one buffer: many small chunks would take more memory as objects of their own.
            with lock:
                changes.replace(local, data)

        try:
            self._each(encode, len(batches))
            pieces = self._shards.rewrite(None if old is None else old.part, shape, changes)
        except DecodeError as error:
            raise ChunkError(key, f"cannot be rewritten: {error}") from error
        except ObjectChanged as error:
            raise StoreConflict(key, "changed while it was rewritten") from error
        return EncodedObject(key, None if pieces is None else ShardParts(key, pieces), expected)

    def assemble(self, stored: Index, encoded: Mapping[Index, Buffer]) -> EncodedObject:
        """The stored object of chunks that are encoded already, and of no others."""
        key = self.array.key(stored)
        if self._shards is None:
            return EncodedObject(key, list(encoded.values()) or None, ANY)
        shape = self.array.layout.stored.chunk_shape(stored)
        changes = InnerChanges.none(self._shards.counts(shape))
        local = [self.array.layout.locate(index)[1] for index in encoded]
        changes.replace(local, list(encoded.values()))
        pieces = self._shards.rewrite(None, shape, changes)
        return EncodedObject(key, None if pieces is None else ShardParts(key, pieces), ANY)

    def _encoded_batch(
        self, stored: Index, old: Shard | None, batch: Replaced
    ) -> tuple[list[Index], list[Buffer | None]]:
        chunks = dict(batch.chunks)
        if batch.merges:
            decoded = self.array.in_shard(stored, old, list(batch.merges))
            base = self.array.stored_chunk
            chunks.update({i: merge(base(decoded[i]())) for i, merge in batch.merges.items()})
        given = [self._to_be_encoded(index, chunk) for index, chunk in chunks.items()]
        # The inner chunks of all shards have one shape.
        codec = self.array.decoder.codec_of(self.array.layout.read.largest_chunk)
        data = iter(codec.encode_all([chunk for chunk in given if chunk is not None]))
        return list(chunks), [None if chunk is None else next(data) for chunk in given]

    def store(self, objects: Sequence[EncodedObject]) -> list[Stored]:
        """Store objects; returns the new state or the error of each."""
        store = self.array.store
        results: dict[str, Stored] = {}
        puts: list[Put] = []
        for key, parts, expected in objects:
            if parts is not None:
                puts.append(Put(key, parts, expected))
                continue
            try:
                store.delete(key, expected=expected)
                results[key] = None
            except StoreError as error:
                results[key] = error.without_frames()
        for put, info in zip(puts, store.put_many(puts), strict=True):
            results[put.key] = info if isinstance(info, StoreError) else info.generation
        return [results[key] for key, _, _ in objects]

    def _read_shard(self, key: str, shape: Shape) -> Shard | None:
        """A small shard is read at once.

        Parts of a larger shard are read when they are needed, and the rest is copied piece by
        piece.
        """
        store, layout = self.array.store, self.array.layout
        decoded = layout.spec(shape).nbytes
        limit = self.largest_whole
        if not store.traits.near:
            limit *= 2
        if layout.levels[0].around:
            # The shard can only be read whole; `Array` refuses those that are too large.
            limit = max(limit, 2 * decoded + _BATCH_BYTES)
        if 2 * decoded <= limit:
            try:
                return Shard.in_memory(key, store.get(key, limit=limit))
            except StoreError:
                # Unused bytes may make a shard larger than its chunks.
                info = store.info(key)
                if info is None or info.size <= limit or layout.levels[0].around:
                    raise
        else:
            info = store.info(key)
        if info is None:
            return None
        if info.size <= limit:
            return Shard.in_memory(key, store.get(key, limit=limit))
        if not store.traits.near:
            # A remote store takes all parts of a put into memory first.
            raise StoreError(
                key,
                f"has {info.size} bytes, there is room to rewrite {limit}: raise it with "
                "-o memory=",
            )
        return Shard(StoredPart(store, key, info, 0, info.size), info.generation)

    def _to_be_encoded(self, index: Index, chunk: Chunk | None) -> Chunk | None:
        """A chunk as it is to be stored; None if it should not be stored."""
        if chunk is None:
            return None
        grid = self.array.layout.read
        valid = grid.valid_shape(index)
        if valid != chunk.shape:
            whole = self.array.layout.spec(chunk.shape).filled()
            inside = tuple(slice(n) for n in valid)
            whole[inside] = chunk[inside]
            chunk = whole
        if not self.store_fill and self.is_fill(chunk):
            return None
        return chunk

    def is_fill(self, chunk: Chunk) -> bool:
        """Whether every element has the exact bits of the fill value."""
        plain = chunk if self._plain.hasobject else chunk.view(self._plain)
        # The first element decides for almost every chunk with other values.
        if plain.size and plain.reshape(-1)[:1] != self._fill:
            return False
        return bool((plain == self._fill).all())
