"""Cached chunks against a store that changes."""

import numpy as np
import pytest

from tests.fs.arrays import Cached
from tests.fs.documents import array_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.write_store import refusing
from zarrfs.cache.read import array_chunks
from zarrfs.errors import StoreError

pytestmark = pytest.mark.timeout(60)

SIDE = 4


def data(value):
    return np.full(SIDE, value, "<i2").tobytes()


@pytest.fixture(params=[True, False], ids=["local", "remote"])
def cheap(request):
    return request.param


@pytest.fixture
def plain(cheap):
    """Chunks 0 to 2 of four are stored."""
    objects = {f"c/{i}": data(i) for i in range(3)}
    inner = MemoryStore({"zarr.json": array_document((16,), (SIDE,)), **objects})
    cached = Cached(FaultStore(inner, near=cheap), recheck=0)
    yield cached
    cached.close()


def value(cached, i):
    chunk = cached.read((i,))
    assert len(set(chunk.tolist())) == 1
    return int(chunk[0])


def test_nothing_changed(plain, cheap):
    assert [value(plain, i) for i in range(4)] == [0, 1, 2, 7]
    plain.store.calls.clear()
    plain.array.check()
    assert [value(plain, i) for i in range(4)] == [0, 1, 2, 7]
    # Asked about, but not read again.
    assert plain.store.count("info") == 4
    assert plain.store.count() == 4
    assert plain.stats.loads == 4
    assert plain.stats.revalidated == (0 if cheap else 4)


def test_a_chunk_that_cannot_be_read_does_not_end_the_trust_in_the_others():
    inner = MemoryStore({"zarr.json": array_document((16,), (SIDE,)), "c/0": data(1), "c/1": b"?"})
    cached = Cached(inner, recheck=0)
    value(cached, 0)
    assert cached.start((1,)).error is not None
    epoch = cached.array.freshness.epoch
    assert not cached.array.check()
    assert cached.array.freshness.epoch == epoch
    cached.close()


def test_what_is_one_too_many_is_not_remembered(monkeypatch):
    monkeypatch.setattr(array_chunks, "_MOST_CHECKED", 1)
    inner = MemoryStore({"zarr.json": array_document((16,), (SIDE,))})
    cached = Cached(inner, recheck=0)
    seen = cached.array.freshness
    assert seen.remembers([(0,)])
    for i in range(3):
        value(cached, i)
    # One more than is asked about shows that nothing can be relied on.
    assert seen.remembers([(2,), (1,)])
    assert not seen.remembers([(2,), (3,)])
    epoch = seen.epoch
    cached.array.check()
    assert seen.epoch > epoch
    assert seen.remembers([(2,)])
    cached.close()


def test_a_store_that_cannot_tell_is_asked_for_the_chunk(plain):
    value(plain, 0)
    plain.store.inner.put("c/0", data(5))

    plain.store.before = refusing(StoreError, "info")
    plain.array.check()
    assert value(plain, 0) == 5


def test_a_chunk_that_became_unreadable_is_an_error(plain):
    value(plain, 0)
    plain.store.inner.put("c/0", b"short")
    plain.array.check()
    assert plain.start((0,)).error is not None
    plain.store.inner.put("c/0", data(6))
    plain.array.check()
    assert value(plain, 0) == 6


def test_many_objects_are_checked_as_they_are_used(monkeypatch, plain):
    monkeypatch.setattr(array_chunks, "_MOST_CHECKED", 2)
    assert [value(plain, i) for i in range(4)] == [0, 1, 2, 7]
    plain.store.inner.put("c/0", data(10))
    plain.store.inner.put("c/3", data(13))
    plain.store.calls.clear()
    epoch = plain.array.freshness.epoch
    plain.array.check()
    assert plain.store.count() == 0
    assert plain.array.freshness.epoch > epoch
    # No reader gets them unasked.
    assert plain.array.get((0,)) is None
    assert plain.array.get_all([(0,)]) is None
    with pytest.raises(array_chunks.NotCached):
        plain.array.get_data([(0,)])
    assert [value(plain, i) for i in range(4)] == [10, 1, 2, 13]
    assert plain.stats.revalidated == 2


def test_an_old_chunk_that_is_evicted_while_it_is_asked_about_is_read_again():
    inner = MemoryStore({"zarr.json": array_document((16,), (SIDE,)), "c/0": data(1)})
    store = FaultStore(inner, near=False)
    cached = Cached(store, recheck=0)
    value(cached, 0)
    cached.array.check()

    def evict(call):
        if call.operation == "info":
            cached.array._loads.drop_stored({(0,)})

    store.before = evict
    assert value(cached, 0) == 1
    assert cached.stats.loads == 2
    cached.close()


# --- shards -----------------------------------------------------------------------------


def test_an_older_state_that_is_seen_while_a_newer_one_is_noticed_is_found():
    """The load that saw it may bring its chunk after the chunks of older states are dropped."""
    inner = MemoryStore({"zarr.json": array_document((16,), (SIDE,)), "c/0": data(1)})
    cached = Cached(inner, recheck=0)
    value(cached, 0)
    seen, old = cached.array.freshness, inner.info("c/0").generation
    inner.put("c/0", data(2))
    dropped = []

    def drop(changed):
        dropped.append(changed)
        seen.saw([((0,), old)], dropped.append)

    seen.saw([((0,), inner.info("c/0").generation)], drop)
    dropped.clear()
    seen.check(dropped.append)
    assert dropped == [{(0,)}]
    cached.close()
