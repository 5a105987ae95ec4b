"""Replaces stored objects of one array: chunks, or shards with some inner chunks changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.array.shards.shard_writer import ShardWriter
from zarrfs.errors import ChunkError, DecodeError, MissingChunkError, StoreConflict, StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.store.base import ANY, Blob, Data, Expected, Generation, Put

Each = Callable[[Callable[[int], None], int], None]
"""Calls a function with every number below another one, in any order, maybe at once."""

Merge = Callable[[Chunk], Chunk]
"""From the old chunk to the new one."""

Stored: TypeAlias = Generation | StoreError | None
"""The new state of an object, None where it was removed; or why it is not stored."""

_NONE: Mapping[Index, Merge] = MappingProxyType({})


class EncodesApart(Protocol):
    """Encodes chunks of a shard where that holds up nobody else."""

    def share(self, count: int) -> int:
        """Of so many chunks, how many it should be asked for at once."""
        ...

    def encode(self, chunks: Mapping[Index, Chunk]) -> Mapping[Index, Buffer | None]:
        """The bytes to store for those chunks that it could encode; None: not to be stored."""
        ...


def one_by_one(work: Callable[[int], None], count: int) -> None:
    for number in range(count):
        work(number)


_UNSIGNED = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}


class EncodedObject(NamedTuple):
    """What is to be stored.

    parts : None: the object is to be removed.
    expected : the state it must be in; ANY where that does not matter.
    """

    key: str
    parts: Sequence[Data] | None
    expected: Expected


class ChunkWriter:
    """Writes to one array. Safe for any number of threads, one at a time per stored object.

    store_fill : whether chunks of nothing but fill values are stored. They always are where
        the fill value is ``null``: zarr-python 2 returns memory as it finds it for the others.
    largest_shard : the most bytes of a stored shard that is taken apart.
    each : encodes the chunks of a shard, in whatever threads.
    apart : asked first, where a shard is written from whole chunks.
    """

    def __init__(
        self,
        array: Array,
        *,
        store_fill: bool,
        largest_shard: int,
        each: Each = one_by_one,
        apart: EncodesApart | None = None,
    ) -> None:
        self._array = array
        self._each = each
        self._apart = apart
        self._store_fill = store_fill or not array.metadata.has_fill
        self._largest_shard = largest_shard
        layout = array.layout
        self._shards = ShardWriter(layout) if layout.sharded else None
        regular = layout.read.regular_shape
        # Looked up once: all that tells one codec from another takes a while to compare.
        self._regular = None if regular is None else layout.chunk_codec(regular)
        fill = layout.data_type.element(layout.fill)
        self._plain = np.dtype(_UNSIGNED.get(fill.itemsize, f"V{fill.itemsize}"))
        self._fill = fill.reshape(1).view(self._plain)[0]

    @property
    def encodes_apart(self) -> bool:
        return self._apart is not None

    def write(
        self,
        stored: Index,
        chunks: Mapping[Index, Chunk | None],
        expected: Expected,
        merges: Mapping[Index, Merge] = _NONE,
    ) -> tuple[Expected, Generation | None]:
        """Store read chunks that all lie in the stored object ``stored``; see `encode`.

        Returns the state it was in, ANY where that did not matter, and its new state.

        Raises StoreConflict where the object changed meanwhile, StoreError where the
        store fails, ChunkError where the old shard is damaged.
        """
        encoded = self.encode(stored, chunks, expected, merges)
        (result,) = self.store([encoded])
        if isinstance(result, StoreError):
            raise result
        return encoded.expected, result

    def encode(
        self,
        stored: Index,
        chunks: Mapping[Index, Chunk | None],
        expected: Expected,
        merges: Mapping[Index, Merge] = _NONE,
    ) -> EncodedObject:
        """The stored object ``stored`` with new read chunks in it.

        chunks : whole chunks by index; None for one that is to be removed. What lies
            beyond the array is stored as fill value, whatever the chunk holds there.
        expected : state of the object that old elements in the chunks came from; ANY if
            there are none.
        merges : makes others of them whole, where `reads_old` says that the object is read.

        Raises as `write`.
        """
        key = self._array.key(stored)
        if self._shards is None:
            ((index, chunk),) = chunks.items()
            data = self.encoded(index, chunk)
            return EncodedObject(key, None if data is None else [data], expected)
        encoded: dict[Index, Buffer | None] = dict.fromkeys([*chunks, *merges])
        indices = list(encoded)
        old: Blob | None = None
        rewritten = self.reads_old(stored, indices)
        if rewritten:
            old, expected = self._old_shard(key, expected)
        decoded = self._array.in_shard(stored, old, list(merges)) if merges else {}

        apart = None if merges else self._apart
        together = 1 if apart is None else apart.share(len(indices))

        def encode(number: int) -> None:
            some = indices[number * together : (number + 1) * together]
            done: Mapping[Index, Buffer | None] = {}
            if apart is not None:
                done = apart.encode({i: each for i in some if (each := chunks[i]) is not None})
                encoded.update(done)
            for index in some:
                if index in done:
                    continue
                if index in decoded:
                    chunk: Chunk | None = merges[index](self._base(decoded[index]()))
                else:
                    chunk = chunks[index]
                encoded[index] = self.encoded(index, chunk)

        self._each(encode, -(-len(indices) // together))
        local = {self._array.locate(index)[1]: data for index, data in encoded.items()}
        shape = self._array.layout.stored.chunk_shape(stored)
        try:
            parts = self._shards.rewrite(None if old is None else old.data, shape, local)
        except DecodeError as error:
            raise ChunkError(key, f"cannot be rewritten: {error}") from error
        return EncodedObject(key, parts, expected)

    def store(self, objects: Sequence[EncodedObject]) -> list[Stored]:
        """What became of each object."""
        store = self._array.store
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

    def reads_old(self, stored: Index, indices: Collection[Index]) -> bool:
        """Whether the stored object is read when these chunks of it are replaced."""
        if self._shards is None:
            return False
        # Others, which lie beyond the array, may be there to be removed.
        inside = sum(map(self._array.layout.read.contains, indices))
        return inside < self._array.chunks_in(stored)

    def _base(self, old: ChunkResult) -> Chunk:
        """The stored chunk that others are to be merged with. Raises ChunkError."""
        if isinstance(old.error, MissingChunkError):
            return self._array.fill_chunk(old.index)
        if old.error is not None:
            raise old.error
        assert old.chunk is not None
        return old.chunk

    def _old_shard(self, key: str, expected: Expected) -> tuple[Blob | None, Expected]:
        """A stored shard and its state, which must be the expected one."""
        blob = self._array.store.get(key, limit=self._largest_shard)
        found = None if blob is None else blob.info.generation
        if expected not in (ANY, found):
            raise StoreConflict(key, "changed while it was rewritten")
        return blob, found

    def encoded(self, index: Index, chunk: Chunk | None) -> Buffer | None:
        """The bytes to store for a chunk; None if it should not be stored."""
        chunk = self._to_be_encoded(index, chunk)
        if chunk is None:
            return None
        codec = self._regular or self._array.layout.chunk_codec(chunk.shape)
        return codec.encode(chunk)

    def encoded_together(self, chunks: Mapping[Index, Chunk]) -> list[Buffer | None]:
        """The same for each of several chunks, of a grid where all have one shape."""
        assert self._regular is not None
        given = [self._to_be_encoded(index, chunk) for index, chunk in chunks.items()]
        data = iter(self._regular.encode_all([chunk for chunk in given if chunk is not None]))
        return [None if chunk is None else next(data) for chunk in given]

    def _to_be_encoded(self, index: Index, chunk: Chunk | None) -> Chunk | None:
        """A chunk as it is to be stored; None if it should not be."""
        if chunk is None:
            return None
        grid = self._array.layout.read
        valid = grid.valid_shape(index)
        if valid != chunk.shape:
            whole = self._array.layout.spec(chunk.shape).filled()
            inside = tuple(slice(n) for n in valid)
            whole[inside] = chunk[inside]
            chunk = whole
        if not self._store_fill and self.is_fill(chunk):
            return None
        return chunk

    def is_fill(self, chunk: Chunk) -> bool:
        """Whether every element has the very bits of the fill value."""
        plain = chunk.view(self._plain)
        # One element tells for almost every chunk that is not fill.
        if plain.size and plain.reshape(-1)[:1] != self._fill:
            return False
        return bool((plain == self._fill).all())
