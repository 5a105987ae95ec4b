"""The division of the chunks of a request into jobs for loader threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from zarrfs.array.array import Array
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


def jobs(array: Array, cache: BlockCache, indices: Sequence[Index]) -> Iterator[Sequence[Index]]:
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
        share = array.decoder.total_cost(indices, CHUNK_OVERHEAD) // (
            _JOBS_A_THREAD * cache.pool.count
        )
        most = min(max(share, _LOCAL_BATCH), _LARGEST_LOCAL_BATCH)
    # A job takes no more than that, unless a single chunk does.
    most = min(most, cache.budget.total // 16) - array.shard_cost
    each = array.decoder.cost(array.layout.read.largest_chunk) + CHUNK_OVERHEAD
    by_shard = sharded and not array.store.traits.near
    for _, shard in groupby(wanted, key=lambda one: one[0] if by_shard else None):
        yield from equal_jobs([index for _, index in shard], max(1, most // each))


def equal_jobs(indices: Sequence[Index], most: int) -> Iterator[Sequence[Index]]:
    """As few jobs of up to ``most`` chunks as possible, each about as long.

    A short last job would let its thread wait for those of the others.
    """
    total = len(indices)
    count = -(-total // most)
    for i in range(count):
        yield indices[total * i // count : total * (i + 1) // count]
