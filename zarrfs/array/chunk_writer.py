"""Replaces stored objects of one array: chunks, or shards with some inner chunks changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.shard_writer import ShardWriter
from zarrfs.errors import ChunkError, DecodeError, StoreConflict
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.store.base import ANY, Data, Expected, Generation

Each = Callable[[Callable[[int], None], int], None]
"""Calls a function with every number below another one, in any order, maybe at once."""


def one_by_one(work: Callable[[int], None], count: int) -> None:
    for number in range(count):
        work(number)


_UNSIGNED = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}


class ChunkWriter:
    """Writes to one array. Safe for any number of threads, one at a time per stored object.

    store_fill : whether chunks of nothing but fill values are stored. They always are where
        the fill value is ``null``: zarr-python 2 returns memory as it finds it for the others.
    largest_shard : the most bytes of a stored shard that is taken apart.
    each : encodes the chunks of a shard, in whatever threads.
    """

    def __init__(
        self, array: Array, *, store_fill: bool, largest_shard: int, each: Each = one_by_one
    ) -> None:
        self._array = array
        self._each = each
        self._store_fill = store_fill or not array.metadata.has_fill
        self._largest_shard = largest_shard
        layout = array.layout
        self._shards = ShardWriter(layout) if layout.sharded else None
        fill = layout.data_type.element(layout.fill)
        self._plain = np.dtype(_UNSIGNED.get(fill.itemsize, f"V{fill.itemsize}"))
        self._fill = fill.reshape(1).view(self._plain)[0]

    def write(
        self, stored: Index, chunks: Mapping[Index, Chunk | None], expected: Expected
    ) -> tuple[Expected, Generation | None]:
        """Store read chunks that all lie in the stored object ``stored``.

        Returns the state it was in, ANY where that did not matter, and its new state.

        chunks : whole chunks by index; None for one that is to be removed. What lies
            beyond the array is stored as fill value, whatever the chunk holds there.
        expected : state of the object that old elements in the chunks came from; ANY if
            there are none.

        Raises StoreConflict where the object changed meanwhile, StoreError where the
        store fails, ChunkError where the old shard is damaged.
        """
        key = self._array.key(stored)
        encoded: dict[Index, Buffer | None] = dict.fromkeys(chunks)
        indices = list(chunks)

        def encode(number: int) -> None:
            index = indices[number]
            encoded[index] = self._encoded(index, chunks[index])

        self._each(encode, len(indices))
        store = self._array.store
        parts: Sequence[Data] | None
        if self._shards is None:
            (data,) = encoded.values()
            parts = None if data is None else [data]
        else:
            old: Buffer | None = None
            # Others, which lie beyond the array, may be there to be removed.
            inside = sum(map(self._array.layout.read.contains, chunks))
            if inside < self._array.chunks_in(stored):
                old, expected = self._old_shard(key, expected)
            local = {self._array.locate(index)[1]: data for index, data in encoded.items()}
            shape = self._array.layout.stored.chunk_shape(stored)
            try:
                parts = self._shards.rewrite(old, shape, local)
            except DecodeError as error:
                raise ChunkError(key, f"cannot be rewritten: {error}") from error
        if parts is None:
            store.delete(key, expected=expected)
            return expected, None
        return expected, store.put(key, parts, expected=expected).generation

    def _old_shard(self, key: str, expected: Expected) -> tuple[Buffer | None, Expected]:
        """A stored shard and its state, which must be the expected one."""
        blob = self._array.store.get(key, limit=self._largest_shard)
        found = None if blob is None else blob.info.generation
        if expected not in (ANY, found):
            raise StoreConflict(key, "changed while it was rewritten")
        return None if blob is None else blob.data, found

    def _encoded(self, index: Index, chunk: Chunk | None) -> Buffer | None:
        """The bytes to store for a chunk; None if it should not be stored."""
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
        return self._array.layout.chunk_codec(chunk.shape).encode(chunk)

    def is_fill(self, chunk: Chunk) -> bool:
        """Whether every element has the very bits of the fill value."""
        plain = chunk.view(self._plain)
        # One element tells for almost every chunk that is not fill.
        if plain.size and plain.reshape(-1)[:1] != self._fill:
            return False
        return bool((plain == self._fill).all())
