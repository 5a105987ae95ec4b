"""An array of the chunk cache: what its chunks cost, and how they are cut into jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from zarrfs.array.array import Array
from zarrfs.cache.read.decoded_chunks import ENTRY_OVERHEAD
from zarrfs.cache.read.freshness import Freshness
from zarrfs.format.chunk_grid import Index

# Bytes of memory that one job should take. A hop between threads costs as much as decoding
# some 50 KiB; a request to a remote store costs far more, so there its size counts. Where a
# request is for many chunks, all threads are busy with fewer and larger jobs, too, as long as
# each gets several.
_LOCAL_BATCH = 4 << 20
_LARGEST_LOCAL_BATCH = 12 << 20
_JOBS_A_THREAD = 4
_REMOTE_BATCH = 32 << 20


class Member:
    """An array of the cache. ``number`` tells it from the others."""

    def __init__(self, number: int, array: Array, freshness: Freshness) -> None:
        self.number = number
        self.array = array
        self.freshness = freshness
        layout = array.layout
        regular = layout.read.regular_shape
        self._regular_cost = None if regular is None else array.cost(regular)
        self._regular_bytes = 0
        if regular is not None and layout.data_type.fixed_size:
            self._regular_bytes = layout.spec(regular).nbytes

    def cost(self, index: Index) -> int:
        """The most bytes that one more chunk takes, while it is loaded and after."""
        cost = self._regular_cost
        if cost is None:
            cost = self.array.cost(self.array.layout.read.chunk_shape(index))
        return cost + ENTRY_OVERHEAD

    def memory(self, _index: Index) -> memoryview | None:
        """Memory for a chunk's bytes; see `Array.read_chunks`.

        It is first touched by the decoder, which leaves the interpreter to others meanwhile;
        a bytearray would be cleared before, with all of them waiting.
        """
        return np.empty(self._regular_bytes, np.uint8).data if self._regular_bytes else None

    def jobs(self, indices: Sequence[Index], memory: int, threads: int) -> Iterator[list[Index]]:
        """Chunks for one job each: of one shard, where there are any, and worth a hop.

        memory : bytes that one job may take, unless a single chunk takes more.
        threads : how many there are for them.
        """
        layout = self.array.layout
        wanted = sorted((layout.stored_index(index), index) for index in indices)
        most = _REMOTE_BATCH
        if self.array.store.cheap_stat:
            share = sum(map(self.cost, indices)) // (_JOBS_A_THREAD * threads)
            most = min(max(share, _LOCAL_BATCH), _LARGEST_LOCAL_BATCH)
        most = min(most, memory)
        most -= self.array.shard_cost
        batch: list[Index] = []
        cost = 0
        last = None
        for stored, index in wanted:
            more = self.cost(index)
            if batch and (cost + more > most or (layout.sharded and stored != last)):
                yield batch
                batch, cost = [], 0
            batch.append(index)
            cost += more
            last = stored
        if batch:
            yield batch
