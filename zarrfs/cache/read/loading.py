"""Decoding for the cache: how chunks are divided into jobs, and how soon readers get them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from zarrfs.array.array import Array
from zarrfs.array.stored_chunks import ChunkResult
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


def jobs(array: Array, cache: BlockCache, indices: Sequence[Index]) -> Iterator[list[Index]]:
    """Divide chunks into jobs of a worthwhile size, as few and as equal as possible.

    A remote store is asked for several shards at once by several jobs. From a local one, a thread
    reads them faster in one job: threads would wait for each other more than for a disk. To divide
    the chunks that one small read crosses among two threads took as long, for chunks of 16 KiB to
    1 MiB, and 15 to 45 % more processor time.
    """
    sharded, stored = array.layout.sharded, array.layout.stored_index
    wanted = [(stored(i), i) for i in indices] if sharded else [(i, i) for i in indices]
    wanted.sort()
    most = _REMOTE_BATCH
    if array.store.traits.near:
        share = array.total_cost(indices, CHUNK_OVERHEAD) // (_JOBS_A_THREAD * cache.pool.count)
        most = min(max(share, _LOCAL_BATCH), _LARGEST_LOCAL_BATCH)
    # A job takes no more than that, unless a single chunk does.
    most = min(most, cache.budget.total // 16)
    most -= array.shard_cost
    if sharded and not array.store.traits.near:
        for _, shard in groupby(wanted, key=itemgetter(0)):
            yield from _jobs(array, [index for _, index in shard], most)
    else:
        yield from _jobs(array, [index for _, index in wanted], most)


def _jobs(array: Array, indices: list[Index], most: int) -> Iterator[list[Index]]:
    """Divide chunks in this order; each job takes ``most`` bytes or is a single chunk."""
    if array.total_cost(indices, CHUNK_OVERHEAD) <= most:
        yield indices
        return
    costs = [array.total_cost([index], CHUNK_OVERHEAD) for index in indices]
    yield from equal_jobs(indices, costs, most)


def equal_jobs(indices: Sequence[Index], costs: Sequence[int], most: int) -> Iterator[list[Index]]:
    """As many chunks in each job as ``most`` allows, at least one, about as much in each job.

    costs : of each chunk.

    A short last job would let its thread wait for those of the others.
    """
    if not indices:
        return
    share = sum(costs) / _count_jobs(costs, most)
    batch: list[Index] = []
    cost = gone = number = 0
    for index, more in zip(indices, costs, strict=True):
        if batch and (cost + more > most or gone + more / 2 > share * (number + 1)):
            yield batch
            batch, cost = [], 0
            number += 1
        batch.append(index)
        cost += more
        gone += more
    yield batch


def _count_jobs(costs: Sequence[int], most: int) -> int:
    """The fewest jobs of ``most`` bytes, in this order."""
    count, cost = 1, 0
    for more in costs:
        if cost and cost + more > most:
            count, cost = count + 1, 0
        cost += more
    return count


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
