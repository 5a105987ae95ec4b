"""What chunks in memory are charged, and which of them go first."""

import json

import numpy as np
import pytest

from tests.fs.arrays import Cached
from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.cache.read.array_chunks import (
    CHUNK_OVERHEAD,
    ArrayChunks,
    CachedChunk,
)
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.flights import Keep
from zarrfs.cache.stats import Stats
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.memory.budget import MemoryBudget
from zarrfs.threads import ThreadPool

SIDE = 512
COUNT = 8
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


def block_cache(budget):
    pool = ThreadPool(0)
    return BlockCache(budget, pool, Stats())


@pytest.fixture
def inner_chunks():
    document = array_document(
        (COUNT * SIDE,), (COUNT * SIDE,), codecs=[sharding((SIDE,), codecs=[LITTLE, ZSTD])]
    )
    plain = array_document((COUNT * SIDE,), (SIDE,), codecs=[LITTLE, ZSTD])
    codec = parse_node(json.loads(plain), "zarr.json").layout.chunk_codec((SIDE,))
    values = [np.arange(n, n + SIDE, dtype="<u2") for n in range(COUNT)]
    data = shard([bytes(codec.encode(chunk)) for chunk in values])
    cached = Cached(MemoryStore({"zarr.json": document, "c/0": data}))
    yield cached, values
    cached.close()


def test_inner_chunks_of_one_load_are_charged_for(inner_chunks):
    cached, values = inner_chunks
    fetch = cached.start(*[(n,) for n in range(COUNT)])
    assert fetch.error is None
    for n, chunk in enumerate(values):
        assert np.array_equal(fetch.chunks[n,], chunk)
    entries = [cached.array._chunks.peek((n,)) for n in range(COUNT)]
    cached.pool.close()
    assert cached.budget.used == sum(entry.charged for entry in entries)
    assert cached.budget.used == COUNT * (values[0].nbytes + CHUNK_OVERHEAD)


def test_what_is_kept_of_a_load_in_part_keeps_no_memory_of_others(inner_chunks):
    cached, _ = inner_chunks
    begun = []

    def late(batch):
        begun.append(batch)

    submit, cached.pool.submit = cached.pool.submit, lambda run, *_, **__: late(run)
    indices = [(n,) for n in range(COUNT)]
    over = []
    cached.array.request(indices, lambda _: None, over.append, keep=Keep.NO)
    cached.array.request([(2,)], lambda _: None, over.append)
    for run in begun:
        run()
    cached.pool.submit = submit
    assert over == [None, None]
    assert cached.held(indices) == [(2,)]
    entry = cached.array._chunks.peek((2,))
    assert entry.charged == entry.chunk.nbytes + CHUNK_OVERHEAD
    cached.pool.close()
    assert cached.budget.used == entry.charged


def test_what_has_to_be_loaded_again_is_charged_for_once(inner_chunks):
    cached, values = inner_chunks
    begun = []
    submit, cached.pool.submit = cached.pool.submit, lambda run, *_, **__: begun.append(run)
    over = []
    indices = [(n,) for n in range(COUNT)]
    cached.array.request(indices, lambda _: None, over.append)
    cached.array._loads.drop([(3,)], loading=True)
    (run,) = begun
    run()
    assert cached.held(indices) == [index for index in indices if index != (3,)]
    each = values[0].nbytes + CHUNK_OVERHEAD
    assert cached.budget.used == (COUNT - 1) * each
    begun[1]()
    cached.pool.submit = submit
    assert over == [None]
    assert cached.held(indices) == indices
    assert cached.budget.used == COUNT * each
    cached.array.distrust()
    assert cached.budget.used == 0


@pytest.mark.parametrize("in_order", [True, False])
def test_elements_are_brought_into_order_if_that_is_wanted(in_order):
    home = ArrayChunks(block_cache(MemoryBudget(1 << 20)))
    stored = np.arange(SIDE, dtype=np.uint8).reshape(2, -1)
    held = CachedChunk(home, (0,), stored.transpose(), (1,), in_order=in_order)
    assert np.array_equal(held.chunk, stored.transpose())
    assert held.chunk.flags.c_contiguous == in_order
    assert np.shares_memory(held.chunk, stored) != in_order
    # Only elements in order have bytes to be read as they are.
    assert (held.data is not None) == in_order
    assert held.charged == CHUNK_OVERHEAD + SIDE


def test_a_chunk_does_not_keep_much_more_memory_than_its_own():
    """In whichever order."""
    home = ArrayChunks(block_cache(MemoryBudget(1 << 20)))
    stored = np.zeros((SIDE, SIDE), np.uint8)
    held = CachedChunk(home, (0,), stored[:2].transpose(), (1,), in_order=False)
    assert not np.shares_memory(held.chunk, stored)
    assert held.charged == CHUNK_OVERHEAD + 2 * SIDE
