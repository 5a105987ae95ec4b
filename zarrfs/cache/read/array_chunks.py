"""The decoded chunks of one array that are in the cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zarrfs.cache.read.block_cache import BlockCache, Entry
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import contiguous as in_c_order
from zarrfs.store.base import Generation

# Bytes that a chunk takes in addition to its elements, measured.
CHUNK_OVERHEAD = 1024


class NotCached(LookupError):
    """A chunk is not in the cache, or not fresh, so the bytes cannot be had without a load."""


class CachedChunk(Entry):
    """A chunk in memory.

    chunk : read-only; a copy if the given array would keep more memory alive.
    data : the bytes of the chunk in C order, if its memory has that order.
    generation : of the stored object that the chunk came from.
    checked : the last check (`Freshness.checks`) since whose begin the chunk is known to have
        matched the store; -1 if it must be checked again.
    """

    __slots__ = ("_home", "_index", "checked", "chunk", "data", "generation")

    def __init__(
        self,
        home: ArrayChunks,
        index: Index,
        chunk: Chunk,
        generation: Generation | None,
        *,
        in_order: bool = True,
    ) -> None:
        """
        in_order : whether to bring the chunk into C order, in which flat views copy fastest.
        """
        super().__init__()
        self._home = home
        self._index = index
        self.charged = CHUNK_OVERHEAD
        contiguous = chunk.flags.c_contiguous
        if any(chunk.strides) or not chunk.ndim:
            size = _base_size(chunk)
            # A view into a much larger buffer would keep all of that buffer alive.
            crowded = size > 1.125 * chunk.nbytes
            if (in_order and not contiguous) or crowded:
                # A copy, also if it is in that order already.
                chunk = chunk.copy() if contiguous else in_c_order(chunk, chunk.dtype)
                contiguous = True
                size = _base_size(chunk)
            self.charged += size
        chunk.flags.writeable = False
        self.chunk = chunk
        self.data: memoryview | None = None
        if contiguous and chunk.nbytes and not chunk.dtype.hasobject:
            self.data = chunk.reshape(-1).view(np.uint8).data
        self.generation = generation
        self.checked = 0

    def forget(self) -> None:
        self._home.forget(self._index)


class ArrayChunks:
    """The chunks of one array, by index. Thread-safe; no method blocks.

    "With the lock held" means that the caller holds the lock of the cache.
    """

    def __init__(self, cache: BlockCache) -> None:
        self._cache = cache
        self._held: dict[Index, CachedChunk] = {}

    def find(self, index: Index, not_before: int) -> CachedChunk | None:
        """A chunk that is good since the check ``not_before``, else None; as `find_all`."""
        found = self.find_all((index,), not_before)
        return None if found is None else found[0]

    def find_all(self, indices: Iterable[Index], not_before: int) -> list[CachedChunk] | None:
        """Several chunks that are good since the check ``not_before``; None if one is missing.

        The chunks stay valid. The caller should not keep them: once evicted, no budget is charged
        for them.
        """
        found = []
        held, order = self._held, self._cache.order
        with self._cache.lock:
            for index in indices:
                chunk = held.get(index)
                if chunk is None or chunk.checked < not_before:
                    return None
                order.move_to_end(chunk)
                found.append(chunk)
        self._cache.stats.hits += len(found)
        return found

    def pin(
        self, indices: Iterable[Index], not_before: int
    ) -> tuple[list[tuple[Index, CachedChunk]], list[Index]]:
        """Pin the chunks that `find` would return, and list the others. With the lock held."""
        found: list[tuple[Index, CachedChunk]] = []
        missing: list[Index] = []
        held, order = self._held, self._cache.order
        for index in indices:
            chunk = held.get(index)
            if chunk is None or chunk.checked < not_before:
                missing.append(index)
                continue
            order.move_to_end(chunk)
            chunk.pins += 1
            found.append((index, chunk))
        return found, missing

    def peek(self, index: Index) -> CachedChunk | None:
        """A chunk, no matter when it was checked; neither pinned nor marked as used."""
        return self._held.get(index)

    def count(self, indices: Iterable[Index]) -> int:
        """How many of these chunks are cached, no matter when they were checked."""
        return sum([index in self._held for index in indices])

    def holds_any(self, indices: Iterable[Index]) -> bool:
        """Whether any of these chunks is cached, no matter when it was checked."""
        return not self._held.keys().isdisjoint(indices)

    def confirm(self, index: Index, chunk: CachedChunk, checked: int) -> bool:
        """Pin a chunk that the store has confirmed, if it is still cached. With the lock held.

        Returns whether it is still cached. An evicted chunk must not be used: no budget is charged
        for it.
        """
        if self._held.get(index) is not chunk:
            return False
        chunk.checked = max(chunk.checked, checked)
        chunk.pins += 1
        return True

    def put(self, coming: Iterable[tuple[Index, CachedChunk]]) -> int:
        """Cache chunks, which are charged already, in place of older ones. With the lock held.

        Returns the bytes to release to the budget.
        """
        freed = 0
        for index, chunk in coming:
            if index in self._held:
                freed += self._drop(index)
            self._held[index] = chunk
            self._cache.chunks += 1
            self._cache.add(chunk)
        return freed

    def drop(self, indices: Iterable[Index] | None = None) -> int:
        """Forget chunks; None: all. Readers that are copying from a chunk can finish.

        Returns the bytes to release to the budget. With the lock held.
        """
        return sum(
            [self._drop(index) for index in list(self._held if indices is None else indices)]
        )

    def keys(self) -> list[Index]:
        """The indices of all cached chunks. With the lock held."""
        return list(self._held)

    def forget(self, index: Index) -> None:
        """For `CachedChunk`: this chunk has been evicted. With the lock held."""
        del self._held[index]
        self._cache.chunks -= 1

    def _drop(self, index: Index) -> int:
        chunk = self._held.get(index)
        return 0 if chunk is None else self._cache.remove(chunk)


def _base_size(chunk: Chunk) -> int:
    """Bytes that ``chunk`` keeps alive."""
    base: Any = chunk
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if not isinstance(base, np.ndarray):
        # A memoryview keeps the whole underlying object alive, even if it shows only a part.
        base = memoryview(base)
        base = base if base.obj is None else memoryview(base.obj)
    return int(base.nbytes)
