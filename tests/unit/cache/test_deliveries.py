"""Chunks that are loaded by one job are handed over together, and each to whom it concerns."""

import threading
from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fs.arrays import Cached, Fetch
from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from zarrfs.cache.read import chunk_loads
from zarrfs.cache.read.chunk_jobs import equal_jobs
from zarrfs.cache.read.flights import Keep
from zarrfs.format.shard_index import MISSING

pytestmark = pytest.mark.timeout(60)

SIDE, MEMBERS = 16, 6


def shard(first):
    """``MEMBERS`` inner chunks, one full of each number from ``first`` on; the last is missing."""
    chunks = [np.full(SIDE, first + i, "<i2").tobytes() for i in range(MEMBERS - 1)]
    entries = [(i * SIDE * 2, SIDE * 2) for i in range(MEMBERS - 1)] + [(MISSING, MISSING)]
    return b"".join(chunks) + np.array(entries, "<u8").tobytes()


@pytest.fixture
def store():
    """Two shards; inner chunk ``i`` is full of ``i``, but for the last ones of each shard."""
    document = array_document(
        (2 * MEMBERS * SIDE,),
        (MEMBERS * SIDE,),
        codecs=[sharding((SIDE,), codecs=[LITTLE], index_codecs=[LITTLE])],
        fill_value=-1,
    )
    objects = {"c/0": shard(0), "c/1": shard(MEMBERS)}
    return FaultStore(MemoryStore({"zarr.json": document, **objects}))


def value(number):
    return -1 if number % MEMBERS == MEMBERS - 1 else number


ALL = [(i,) for i in range(2 * MEMBERS)]


class Deliveries(Fetch):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def deliver(self, delivery):
        self.sizes.append(len(delivery))
        super().deliver(delivery)

    def check(self, indices):
        assert self.error is None
        assert sorted(self.chunks) == sorted(indices)
        for (number,), chunk in self.chunks.items():
            assert np.array_equal(chunk, np.full(SIDE, value(number)))


def ask(cached, indices, **how):
    fetch = Deliveries()
    cached.array.request(indices, fetch.deliver, fetch.done, **how)
    return fetch


@pytest.mark.parametrize("keep", [Keep.IN_ORDER, Keep.AS_STORED, Keep.NO])
def test_those_of_a_shard_come_together(store, monkeypatch, keep):
    monkeypatch.setattr(chunk_loads, "_PATIENCE", inf)
    cached = Cached(store)
    fetch = ask(cached, ALL, keep=keep)
    fetch.check(ALL)
    assert fetch.sizes == [2 * MEMBERS]
    again = ask(cached, ALL)
    again.check(ALL)
    if keep:
        assert again.sizes == [2 * MEMBERS]
    cached.close()


def test_none_waits_long_for_the_others(monkeypatch):
    monkeypatch.setattr(chunk_loads, "_PATIENCE", 0.0)
    document = array_document((4 * SIDE,), (SIDE,))
    objects = {f"c/{i}": np.full(SIDE, i, "<i2").tobytes() for i in range(4)}
    store = FaultStore(MemoryStore({"zarr.json": document, **objects}))
    cached = Cached(store, loaders=1)
    first, go_on = threading.Event(), threading.Event()

    def deliver(delivery):
        for (number,), _ in delivery:
            (first.set if number == 0 else go_on.wait)()

    fetch = Fetch()
    store.before = lambda call: call.key != "c/3" or (first.wait(20) and go_on.wait(20)) or None
    cached.array.request([(i,) for i in range(4)], deliver, fetch.done)
    # It is there while another one of its job is yet to be read.
    assert first.wait(20)
    assert not fetch.over.is_set()
    go_on.set()
    assert fetch.error is None
    cached.close()


@pytest.fixture(params=[0.0, inf])
def cached(store, monkeypatch, request):
    monkeypatch.setattr(chunk_loads, "_PATIENCE", request.param)
    cached = Cached(store)
    yield cached
    cached.close()


def test_each_gets_what_it_asked_for(store, cached):
    go = threading.Event()
    store.before = lambda call: call.operation != "ranges" or go.wait(20) or None
    asked = [ALL, ALL[3:8], ALL[5:6], ALL[::-1], [ALL[11], ALL[0]]]
    fetches = [ask(cached, indices) for indices in asked]
    go.set()
    for indices, fetch in zip(asked, fetches, strict=True):
        fetch.check(indices)
    assert cached.stats.misses == len(ALL)
    assert cached.stats.shared == sum(map(len, asked[1:]))
    assert cached.settled_use() == len(ALL) * 1024 + 2 * (MEMBERS - 1) * SIDE * 2


def test_one_whose_copy_fails_is_told_alone(store, cached):
    go = threading.Event()
    store.before = lambda call: call.operation != "ranges" or go.wait(20) or None
    before = ask(cached, ALL)

    def fail(_delivery):
        raise ValueError("no room")

    failing = Fetch()
    cached.array.request(ALL[2:9], fail, failing.done)
    after = ask(cached, ALL)
    go.set()
    assert "no room" in failing.error.reason
    before.check(ALL)
    after.check(ALL)


def test_what_came_before_an_unforeseen_failure_is_good(cached, monkeypatch):
    read = cached.array.array.read_chunks

    def failing(indices, memory=None):
        for number, result in enumerate(read(indices, memory)):
            if number == 4:
                raise RuntimeError("a bug")
            yield result

    monkeypatch.setattr(cached.array.array, "read_chunks", failing)
    fetch = ask(cached, ALL)
    assert "a bug" in fetch.error.reason
    assert len(fetch.chunks) == 4
    assert cached.stats.errors == 8
    monkeypatch.setattr(cached.array.array, "read_chunks", read)
    ask(cached, ALL).check(ALL)


def test_what_is_stored_meanwhile_is_loaded_once_more(store, cached):
    """All of a job are on their way when some of them are replaced."""
    ask(cached, ALL).check(ALL)
    cached.array._loads.drop(None)
    reading, go = threading.Event(), threading.Event()

    def hold(call):
        if call.operation == "ranges":
            reading.set()
            assert go.wait(20)

    store.before = hold
    fetch = ask(cached, ALL)
    assert reading.wait(20)
    store.inner.put("c/1", shard(100))
    cached.array.stored_anew({(1,): store.inner.info("c/1").generation}, {})
    go.set()
    assert fetch.error is None
    assert [int(fetch.chunks[i,][0]) for i in range(2 * MEMBERS)] == [
        *map(value, range(MEMBERS)), *range(100, 99 + MEMBERS), -1
    ]  # fmt: skip
    assert cached.stats.loads > 2 * len(ALL)


@pytest.mark.parametrize("changed", [0, 1])
def test_a_change_of_any_shard_of_a_job_is_noticed(store, changed):
    cached = Cached(store)
    ask(cached, [(0,), (MEMBERS,)]).check([(0,), (MEMBERS,)])
    store.inner.put(f"c/{changed}", shard(100))
    fetch = ask(cached, [(1,), (MEMBERS + 1,)])
    expected = {1: 1, MEMBERS + 1: MEMBERS + 1} | {changed * MEMBERS + 1: 101}
    assert fetch.error is None
    assert {number: int(chunk[0]) for (number,), chunk in fetch.chunks.items()} == expected
    # What was cached of the other state is forgotten.
    first = ask(cached, [(changed * MEMBERS,)])
    assert first.error is None
    assert int(first.chunks[changed * MEMBERS,][0]) == 100
    cached.close()


@given(count=st.integers(0, 60), most=st.integers(1, 50))
@example(count=16, most=12)
def test_jobs_are_few_and_about_as_large(count, most):
    """None is longer than another by more than one chunk."""
    jobs = list(equal_jobs([(n,) for n in range(count)], most))
    assert [index for job in jobs for index in job] == [(n,) for n in range(count)]
    sizes = list(map(len, jobs))
    assert len(jobs) == -(-count // most)
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert max(sizes, default=0) <= most
