"""Decoding for the cache: how chunks are divided into jobs, and how soon readers get them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.cache.read.array_chunks import CHUNK_OVERHEAD
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.format.chunk_grid import Index

# Bytes of memory that one job should take. A switch between threads costs as much as decoding some
# 50 KiB. A request to a remote store costs far more, so for such a store larger jobs are better. A
# request for many chunks keeps all threads busy with fewer and larger jobs, too, as long as each
# thread gets several.
_LOCAL_BATCH = 4 << 20
_LARGEST_LOCAL_BATCH = 12 << 20
_JOBS_A_THREAD = 4
_REMOTE_BATCH = 32 << 20
# Seconds after which decoded chunks are handed over although their job is not finished. Handing
# over many chunks together costs less, but a reader may wait for the first one only.
_PATIENCE = 0.004


class LoadPlan:
    """The memory that loading chunks of one array takes, and how chunks are divided into jobs."""

    def __init__(self, array: Array, cache: BlockCache) -> None:
        self._array = array
        self._cache = cache
        layout = array.layout
        regular = layout.read.regular_shape
        self._regular = regular
        self._regular_bytes = 0
        if regular is not None and layout.data_type.fixed_size:
            self._regular_bytes = layout.spec(regular).nbytes

    def cost(self, index: Index) -> int:
        """The most bytes that one more chunk takes, during the load and after it."""
        shape = self._regular
        if shape is None:
            shape = self._array.layout.read.chunk_shape(index)
        return self._array.cost(shape) + CHUNK_OVERHEAD

    def total(self, indices: Sequence[Index]) -> int:
        """The bytes that loading these chunks takes."""
        if self._regular is None:
            return sum(map(self.cost, indices))
        return len(indices) * self.cost(indices[0])

    def memory(self, _index: Index) -> memoryview | None:
        """Memory for the bytes of a chunk; see `Array.read_chunks`.

        The decoder touches this memory first, without the interpreter's lock. A bytearray would be
        cleared with the lock held, while all other threads wait.
        """
        return np.empty(self._regular_bytes, np.uint8).data if self._regular_bytes else None

    def jobs(self, indices: Sequence[Index]) -> Iterator[list[Index]]:
        """Divide chunks into jobs of a worthwhile size, as few and as equal as possible.

        A remote store is asked for several shards at once by several jobs. From a local one, a
        thread reads them faster in one job: threads would wait for each other more than for a disk.
        To divide the chunks that one small read crosses among two threads took as long, for chunks
        of 16 KiB to 1 MiB, and 15 to 45 % more processor time.
        """
        if len(indices) <= 1:
            if indices:
                yield list(indices)
            return
        sharded, stored = self._array.layout.sharded, self._array.layout.stored_index
        wanted = [(stored(i), i) for i in indices] if sharded else [(i, i) for i in indices]
        wanted.sort()
        most = _REMOTE_BATCH
        if self._array.store.traits.near:
            share = self.total(indices) // (_JOBS_A_THREAD * self._cache.pool.count)
            most = min(max(share, _LOCAL_BATCH), _LARGEST_LOCAL_BATCH)
        # A job takes no more than that, unless a single chunk does.
        most = min(most, self._cache.budget.total // 16)
        most -= self._array.shard_cost
        if sharded and not self._array.store.traits.near:
            for _, shard in groupby(wanted, key=itemgetter(0)):
                yield from self._equal_jobs([index for _, index in shard], most)
        else:
            yield from self._equal_jobs([index for _, index in wanted], most)

    def _equal_jobs(self, indices: Sequence[Index], most: int) -> Iterator[list[Index]]:
        """Divide chunks in this order; each job takes ``most`` bytes or is a single chunk.

        A short last job would let its thread wait for those of the others.
        """
        if not indices:
            return
        if (total := self.total(indices)) <= most:
            yield list(indices)
            return
        costs = list(map(self.cost, indices))
        share = total / _count_jobs(costs, most)
        batch: list[Index] = []
        cost = gone = jobs = 0
        for index, more in zip(indices, costs, strict=True):
            if batch and (cost + more > most or gone + more / 2 > share * (jobs + 1)):
                yield batch
                batch, cost = [], 0
                jobs += 1
            batch.append(index)
            cost += more
            gone += more
        yield batch


def _count_jobs(costs: Sequence[int], most: int) -> int:
    """The fewest jobs of ``most`` bytes, in this order."""
    jobs, cost = 1, 0
    for more in costs:
        if cost and cost + more > most:
            jobs, cost = jobs + 1, 0
        cost += more
    return jobs


def in_time(results: Iterable[ChunkResult]) -> Iterator[list[ChunkResult]]:
    """Several results together, none of them delayed for long.

    If reading fails unexpectedly, the results before the failure come first.
    """
    ready: list[ChunkResult] = []
    late = time.monotonic() + _PATIENCE
    try:
        for result in results:
            ready.append(result)
            if time.monotonic() >= late:
                yield ready
                ready = []
                late = time.monotonic() + _PATIENCE
    except Exception:
        if ready:
            yield ready
        raise
    if ready:
        yield ready
