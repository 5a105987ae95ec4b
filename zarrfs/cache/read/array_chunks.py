"""The decoded chunks of one array that are in the cache."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from zarrfs.cache.read.block_cache import BlockCache, Entry
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation

# Bytes that a chunk takes beside its elements, measured.
CHUNK_OVERHEAD = 1024


class ChunkGroup(Entry):
    """Chunks that lie in one piece of memory, and go when all of them do; mostly one alone.

    chunks : those that are still there; ``charged`` counts those that are not, too.
    """

    __slots__ = ("_home", "chunks")

    def __init__(self, home: ArrayChunks) -> None:
        super().__init__()
        self.chunks: dict[Index, CachedChunk] = {}
        self._home = home

    def forget(self) -> None:
        self._home.forget(self.chunks)
        # They refer to it, too.
        self.chunks.clear()


class CachedChunk:
    """A chunk in memory.

    chunk : read-only; a copy where the one given would keep more memory alive.
    data : its bytes in C order, if it has them so.
    generation : of the stored object that it came from.
    charged : bytes of the budget.
    checked : when it was known to be what is stored, as `time.monotonic` counts.
    """

    __slots__ = ("charged", "checked", "chunk", "data", "generation", "group")

    def __init__(
        self, chunk: Chunk, generation: Generation | None, group: ChunkGroup, *, alone: bool
    ) -> None:
        """
        alone : whether no other chunk of the group lies in the same memory.
        """
        self.charged = CHUNK_OVERHEAD
        self.group = group
        contiguous = chunk.flags.c_contiguous
        if any(chunk.strides) or not chunk.ndim:
            # Flat views copy fastest from C order, and a view into something much larger
            # would keep all of that alive.
            size = _base_size(chunk) if alone else chunk.nbytes
            if not contiguous or size > 1.125 * chunk.nbytes:
                chunk = np.array(chunk, order="C")
                contiguous = True
                size = _base_size(chunk)
            self.charged += size
        chunk.flags.writeable = False
        self.chunk = chunk
        self.data: memoryview | None = None
        if contiguous and chunk.nbytes and not chunk.dtype.hasobject:
            self.data = chunk.reshape(-1).view(np.uint8).data
        self.generation = generation
        self.checked = time.monotonic()


class ArrayChunks:
    """The chunks of one array, by index; safe for any number of threads, and none of it blocks.

    Where a method says so, its caller has the cache's lock.
    """

    def __init__(self, cache: BlockCache) -> None:
        self._cache = cache
        self._held: dict[Index, CachedChunk] = {}

    def find(self, index: Index, not_before: float, *, wanted: bool = True) -> CachedChunk | None:
        """A chunk that was checked at ``not_before`` or later.

        wanted : whether the reader may come back to it.

        The chunk stays valid, but should not be kept, because it may be evicted and is then
        charged to nobody.
        """
        with self._cache.lock:
            found = self._held.get(index)
            if found is None or found.checked < not_before:
                return None
            self._cache.order.move_to_end(found.group)
            if wanted:
                found.group.wanted = True
        self._cache.stats.hits += 1
        return found

    def find_all(self, indices: Iterable[Index], not_before: float) -> list[CachedChunk] | None:
        """The same for several chunks; None if one is missing."""
        found = []
        held, order = self._held, self._cache.order
        with self._cache.lock:
            for index in indices:
                chunk = held.get(index)
                if chunk is None or chunk.checked < not_before:
                    return None
                order.move_to_end(chunk.group)
                chunk.group.wanted = True
                found.append(chunk)
        self._cache.stats.hits += len(found)
        return found

    def pin(
        self, indices: Iterable[Index], not_before: float
    ) -> tuple[list[tuple[Index, CachedChunk]], list[Index]]:
        """Pin those that `find` would find; also which it would not. With the lock held."""
        found: list[tuple[Index, CachedChunk]] = []
        missing: list[Index] = []
        held, order = self._held, self._cache.order
        for index in indices:
            chunk = held.get(index)
            if chunk is None or chunk.checked < not_before:
                missing.append(index)
                continue
            group = chunk.group
            order.move_to_end(group)
            group.wanted = True
            group.pins += 1
            found.append((index, chunk))
        return found, missing

    def unpin(self, chunks: Iterable[CachedChunk]) -> None:
        """See `BlockCache.unpin`."""
        self._cache.unpin([chunk.group for chunk in chunks])

    def peek(self, index: Index) -> CachedChunk | None:
        """A chunk whenever it was checked, without a pin."""
        return self._held.get(index)

    def count(self, indices: Iterable[Index]) -> int:
        """How many of these chunks are held, however old."""
        return sum([index in self._held for index in indices])

    def holds_any(self, indices: Iterable[Index]) -> bool:
        """Whether any of these chunks is held, however old."""
        return not self._held.keys().isdisjoint(indices)

    def confirm(self, index: Index, chunk: CachedChunk, checked: float) -> bool:
        """Pin what is still there, and was found to be what is stored. With the lock held.

        Whether it is there: the bytes of what was evicted are nobody's.
        """
        if self._held.get(index) is not chunk:
            return False
        chunk.checked = checked
        chunk.group.wanted = True
        chunk.group.pins += 1
        return True

    def put(self, coming: Iterable[tuple[Index, CachedChunk]]) -> int:
        """Hold chunks, charged for already, in place of those that there were.

        The bytes to release are returned. With the lock held.
        """
        freed = 0
        for index, chunk in coming:
            freed += self._drop(index)
            self._held[index] = chunk
            self._cache.chunks += 1
            group = chunk.group
            group.chunks[index] = chunk
            group.charged += chunk.charged
            if len(group.chunks) == 1:
                self._cache.add(group)
        return freed

    def drop(self, indices: Iterable[Index] | None = None) -> int:
        """Forget chunks, None: all; whoever copies from one right now still can.

        The bytes to release are returned. With the lock held.
        """
        return sum(
            [self._drop(index) for index in list(self._held if indices is None else indices)]
        )

    def passed(self, index: Index) -> None:
        """A chunk was loaded for its own file, and the kernel has all of that by now.

        Whoever reads the file again is not seen here. So unless somebody else made use of the
        chunk, its reader is done with it.
        """
        freed = 0
        with self._cache.lock:
            chunk = self._held.get(index)
            if chunk is not None and not chunk.group.wanted and len(chunk.group.chunks) == 1:
                freed = self._cache.passed(chunk.group)
        self._cache.release(freed)

    def keys(self) -> list[Index]:
        """Of all chunks that are held. With the lock held."""
        return list(self._held)

    def forget(self, indices: Iterable[Index]) -> None:
        """For `ChunkGroup`: these have gone. With the lock held."""
        for index in indices:
            del self._held[index]
            self._cache.chunks -= 1

    def _drop(self, index: Index) -> int:
        chunk = self._held.get(index)
        if chunk is None:
            return 0
        group = chunk.group
        if len(group.chunks) == 1:
            return self._cache.remove(group)
        del self._held[index]
        del group.chunks[index]
        self._cache.chunks -= 1
        return 0


def _base_size(chunk: Chunk) -> int:
    """Bytes that ``chunk`` keeps alive."""
    base: Any = chunk
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if not isinstance(base, np.ndarray):
        # A part of a memoryview keeps all that the whole one is of.
        base = memoryview(base)
        base = base if base.obj is None else memoryview(base.obj)
    return int(base.nbytes)
