"""Memory stays within the budget whatever is read, and every request is answered."""

import random
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fs.arrays import Cached
from tests.fs.documents import GZIP, LITTLE, ZSTD, array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.model.arrays import chunk_at
from zarrfs.errors import StoreError

pytestmark = pytest.mark.timeout(90)

ROWS, COLUMNS, CHUNK = 150, 90, 32


def numbers():
    return np.arange(ROWS * COLUMNS, dtype="<i2").reshape(ROWS, COLUMNS)


def chunk_of(array, index):
    return chunk_at(array, 7, index, (CHUNK, CHUNK))


PLAIN = [LITTLE]
SHARDED = [sharding((CHUNK, CHUNK), codecs=[LITTLE, ZSTD])]
WRAPPED = [sharding((CHUNK, CHUNK)), GZIP]


def written(codecs, chunks):
    """A store with the array of `numbers`, written by TensorStore."""
    import tensorstore as ts

    spec = {
        "driver": "zarr3",
        "kvstore": "memory://",
        "metadata": {
            "shape": [ROWS, COLUMNS],
            "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "fill_value": 7,
            "codecs": codecs,
        },
    }
    context = ts.Context()
    array = ts.open(spec, create=True, context=context).result()
    array[...] = numbers()
    objects = ts.KvStore.open("memory://", context=context).result()
    return MemoryStore(
        {key.decode(): objects.read(key).result().value for key in objects.list().result()}
    )


def store_of(codecs):
    if codecs is WRAPPED:
        import gzip

        store = written([codecs[0]], (4 * CHUNK, 2 * CHUNK))
        for key in list(store.objects):
            if key.startswith("c/"):
                store.put(key, gzip.compress(store.objects[key], 1))
        store.put(
            "zarr.json", array_document((ROWS, COLUMNS), (4 * CHUNK, 2 * CHUNK), codecs=codecs)
        )
        return store
    chunks = (4 * CHUNK, 2 * CHUNK) if codecs is SHARDED else (CHUNK, CHUNK)
    return written(codecs, chunks)


INDICES = [(i, j) for i in range(-(-ROWS // CHUNK)) for j in range(-(-COLUMNS // CHUNK))]


@pytest.mark.parametrize("codecs", [PLAIN, [LITTLE, ZSTD], SHARDED, WRAPPED],
                         ids=["plain", "zstd", "sharded", "wrapped"])  # fmt: skip
@pytest.mark.parametrize("room", [1.0, 1.5, 3.0, 12.0])
def test_random_requests_of_many_threads(codecs, room):
    store = FaultStore(store_of(codecs))
    rng = random.Random(1)

    def fail_sometimes(call):
        if call.operation in ("get", "ranges") and rng.random() < 0.02:
            raise StoreError(call.key, "now and then")

    probe = Cached(store)
    least = probe.array.array.decoder.cost((CHUNK, CHUNK)) + probe.array.array.shard_cost
    probe.close()
    # Room for one chunk at the least, so that one of them takes more than half.
    cached = Cached(store, int(room * (least + 1024)))
    store.before = fail_sometimes
    expected = {index: chunk_of(numbers(), index) for index in INDICES}
    wrong = []

    def work(seed):
        choose = random.Random(seed)
        for _ in range(20):
            wanted = choose.sample(INDICES, choose.choice((1, 2, len(INDICES))))
            fetch = cached.start(*wanted).wait()
            failed = fetch.error is not None
            if failed and fetch.error.reason != "now and then":
                wrong.append(fetch.error)
            if not failed and set(fetch.chunks) != set(wanted):
                wrong.append(wanted)
            wrong.extend(
                index for index, chunk in fetch.chunks.items()
                if not np.array_equal(chunk, expected[index])
            )  # fmt: skip

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert wrong == []
    assert 0 < cached.budget.highest <= cached.budget.total
    # Loads end after their last waiter is told, so join them before counting.
    cached.pool.close()
    cached.array._loads.drop_stored({(i, j) for i in range(10) for j in range(10)})
    assert cached.budget.used == 0
    assert cached.cache.chunks == 0


def root_size(chunk):
    """Bytes of the memory that a chunk keeps alive."""
    while isinstance(chunk, np.ndarray) and chunk.base is not None:
        chunk = chunk.base
    return chunk.nbytes if isinstance(chunk, np.ndarray) else len(memoryview(chunk).obj)


@pytest.mark.parametrize("codecs", [[sharding((CHUNK, CHUNK))], WRAPPED])
def test_an_inner_chunk_does_not_keep_its_shard_alive(codecs):
    cached = Cached(store_of(codecs) if codecs is WRAPPED else written(codecs, (128, 64)))
    for index in INDICES:
        cached.read(index)
        chunk = cached.array.get(index)
        assert root_size(chunk) <= 1.125 * chunk.nbytes
    least = len(INDICES) * (CHUNK * CHUNK * 2 + 1024)
    assert least <= cached.settled_use() <= 1.125 * least
    cached.close()


def test_an_old_chunk_is_let_go_when_it_is_evicted_while_its_state_is_asked_for():
    store = FaultStore(written(PLAIN, (CHUNK, CHUNK)), near=False)
    cached = Cached(store, recheck=0, loaders=1)
    cached.start(*INDICES).wait()
    chunks = {index: weakref.ref(cached.array.get(index)) for index in INDICES}
    cached.array.check()
    alive = []

    def evict(call):
        if call.operation == "info" and not alive:
            cached.budget.reserve(cached.budget.total)
            alive.append(sum(chunk() is not None for chunk in chunks.values()))
            cached.budget.release(cached.budget.total)

    store.before = evict
    fetch = cached.start(*INDICES)
    assert fetch.error is None
    # The one that is just being asked about may be kept.
    assert alive[0] <= 1
    assert all(np.array_equal(fetch.chunks[i], chunk_of(numbers(), i)) for i in INDICES)
    cached.close()
