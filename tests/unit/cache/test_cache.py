"""The chunk cache: one load per chunk, errors to whom they concern, order of use."""

import gc
import threading
import weakref

import numpy as np
import pytest

from tests.fs.arrays import Cached, Fetch
from tests.fs.documents import array_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import ChunkError, StoreError

pytestmark = pytest.mark.timeout(60)

CHUNKS = 8
SIDE = 64
CHARGED = SIDE * 2 + 1024


def stored_chunk(number):
    return np.full(SIDE, number, "<i2")


@pytest.fixture
def store():
    """Chunk ``i`` is full of ``i``."""
    objects = {f"c/{i}": stored_chunk(i).tobytes() for i in range(CHUNKS)}
    document = array_document((CHUNKS * SIDE,), (SIDE,))
    return FaultStore(MemoryStore({"zarr.json": document, **objects}))


@pytest.fixture
def cached(store):
    made = []

    def make(budget=64 << 20, **options):
        made.append(Cached(store, budget, **options))
        store.calls.clear()
        return made[-1]

    yield make
    for each in made:
        each.close()


def hold(store, operation):
    """Make requests of one kind wait until the event that is returned is set."""
    go = threading.Event()
    store.before = lambda call: call.operation != operation or go.wait(20) or None
    return go


@pytest.fixture
def array(cached):
    return cached()


class TestSingleFlight:
    def test_one_load_for_many(self, store, array):
        go = hold(store, "get")
        fetches = [array.start((3,)) for _ in range(50)]
        assert array.stats.shared == 49
        assert not any(fetch.over.is_set() for fetch in fetches)
        go.set()
        for fetch in fetches:
            assert fetch.error is None
            assert np.array_equal(fetch.chunks[3,], stored_chunk(3))
        assert store.count() == 1
        assert (array.stats.misses, array.stats.loads) == (1, 1)

    def test_a_hit_asks_nobody(self, store, array):
        array.read((1,))
        store.calls.clear()
        assert np.array_equal(array.read((1,)), stored_chunk(1))
        assert np.array_equal(array.array.get((1,)), stored_chunk(1))
        assert store.calls == []
        assert array.stats.hits == 2

    def test_get_does_not_wait_for_a_load(self, store, array):
        go = hold(store, "get")
        fetch = array.start((1,))
        assert array.array.get((1,)) is None
        go.set()
        assert fetch.error is None
        assert array.array.get((1,)) is not None

    def test_a_chunk_named_twice(self, cached):
        seen = []
        array = cached()
        fetch = array.start((1,), (1,), deliver=lambda index, _chunk: seen.append(index))
        assert fetch.error is None
        assert seen == [(1,), (1,)]

    def test_cached_chunks_cannot_be_changed(self, array):
        array.read((1,))
        with pytest.raises(ValueError, match="read-only"):
            array.array.get((1,))[0] = 5

    def test_a_chunk_that_is_not_stored_takes_no_memory(self, store, cached):
        store.inner.delete("c/2")
        array = cached()
        assert np.array_equal(array.read((2,)), stored_chunk(7))
        assert array.settled_use() == 1024


class TestErrors:
    def test_nothing_of_a_failed_load_stays_until_a_garbage_collection(self, cached):
        array, decoded = cached(), []

        def fail(*_):
            chunk = stored_chunk(3)
            decoded.append(weakref.ref(chunk))
            raise ZeroDivisionError

        array.array.array.read_chunks = fail
        gc.disable()
        try:
            assert isinstance(array.start((3,)).error, ChunkError)
            array.close()
            assert [chunk() is None for chunk in decoded] == [True]
        finally:
            gc.enable()

    def test_all_who_wait_for_a_failing_load_are_told_and_the_next_tries_again(self, store, array):
        go = threading.Event()

        def wait_and_fail(call):
            assert go.wait(20)
            raise StoreError(call.key, "broken")

        store.before = wait_and_fail
        fetches = [array.start((3,)) for _ in range(10)]
        go.set()
        for fetch in fetches:
            assert isinstance(fetch.error, ChunkError)
            assert (fetch.error.key, fetch.error.reason) == ("c/3", "broken")
            assert fetch.chunks == {}
        assert store.count() == 1
        store.before = lambda _call: None
        assert np.array_equal(array.read((3,)), stored_chunk(3))
        assert array.settled_use() == CHARGED

    @pytest.mark.parametrize("failure", [StoreError("c/3", "broken"), RuntimeError("a bug")])
    def test_a_failing_chunk_is_not_the_others(self, store, cached, failure):
        def fail(call):
            if call.key == "c/3":
                raise failure

        store.before = fail
        array = cached()
        fetch = array.start(*((i,) for i in range(CHUNKS)))
        assert fetch.error is not None
        assert fetch.error.key == "c/3"
        assert sorted(fetch.chunks) == [(i,) for i in range(CHUNKS) if i != 3]
        assert array.stats.errors == 1
        # What the failed load had reserved was given back.
        assert array.settled_use() == CHARGED * (CHUNKS - 1)

    def test_one_whose_answer_fails_does_not_disturb_the_others(self, store, array):
        go = hold(store, "get")
        gone = Fetch()

        def nobody_listens(_error):
            raise RuntimeError("the loop is over")

        array.array.request([(3,)], gone.deliver, nobody_listens)
        others = [array.start((i,)) for i in range(CHUNKS)]
        go.set()
        for i, fetch in enumerate(others):
            assert fetch.error is None
            assert np.array_equal(fetch.chunks[i,], stored_chunk(i))
        assert array.settled_use() == CHARGED * CHUNKS


class TestEviction:
    def indices(self):
        return [(i,) for i in range(CHUNKS)]

    def test_least_recently_used_first(self, cached):
        array = cached(3 * CHARGED)
        for i in (0, 1, 2, 0, 3):
            array.read((i,))
        assert array.held(self.indices()) == [(0,), (2,), (3,)]
        assert array.array.get((2,)) is not None
        array.read((4,))
        assert array.held(self.indices()) == [(2,), (3,), (4,)]

    def test_a_chunk_being_copied_is_not_evicted(self, cached):
        array = cached(2 * CHARGED)
        array.read((0,))
        array.read((1,))
        array.read((2,))
        array.read((1,))
        assert array.held(self.indices()) == [(1,), (2,)]
        copying, go_on = threading.Event(), threading.Event()

        def deliver(_index, chunk):
            copying.set()
            assert go_on.wait(20)
            assert np.array_equal(chunk, stored_chunk(1))

        fetches = []
        thread = threading.Thread(
            target=lambda: fetches.append(array.start((1,), deliver=deliver)), daemon=True
        )
        thread.start()
        assert copying.wait(20)
        # (2,) was used before (1,), then others come and go while (1,) is copied.
        for i in (3, 4, 5, 6):
            assert np.array_equal(array.read((i,)), stored_chunk(i))
            assert (1,) in array.held(self.indices())
        go_on.set()
        thread.join(20)
        assert fetches[0].error is None
        assert array.budget.highest <= array.budget.total

    def test_who_needs_memory_waits_for_the_copy(self, store, cached):
        array = cached(CHARGED)
        copying, go_on = threading.Event(), threading.Event()

        def deliver(_index, _chunk):
            copying.set()
            assert go_on.wait(20)

        slow = array.start((0,), deliver=deliver)
        assert copying.wait(20)
        second = array.start((1,))
        assert not second.over.is_set()
        assert array.held(self.indices()) == [(0,)]
        go_on.set()
        assert slow.error is None
        assert second.error is None
        assert array.held(self.indices()) == [(1,)]

    def test_dropping_gives_the_memory_back(self, array):
        array.start(*self.indices()).wait()
        array.array._loads.drop_stored({(1,), (2,)})
        assert array.settled_use() == CHARGED * (CHUNKS - 2)
        assert array.held(self.indices()) == [(0,), *((i,) for i in range(3, CHUNKS))]
