"""Chunks and slabs are charged to one budget, and make room in one order."""

import gc
from itertools import permutations

import numpy as np
import pytest

from zarrfs.cache.read import block_cache
from zarrfs.cache.read.array_chunks import ArrayChunks, CachedChunk
from zarrfs.cache.read.block_cache import BlockCache, BufferEntry
from zarrfs.cache.read.flights import Flights, Keep
from zarrfs.cache.stats import Stats
from zarrfs.memory.budget import MemoryBudget
from zarrfs.threads import ThreadPool

KIB = 1 << 10
SIZE = 8 * KIB


class Slab(BufferEntry):
    def __init__(self, name, memory):
        super().__init__(SIZE)
        self.name = name
        self.memory = memory
        self.gone = False

    def forget(self):
        self.gone = True
        self.memory = None


class Cache:
    """Chunks by number and slabs by name; each takes 8 KiB of 64."""

    def __init__(self):
        self.budget = MemoryBudget(8 * SIZE)
        self.blocks = BlockCache(self.budget, ThreadPool(0), Stats())
        self.chunks = ArrayChunks(self.blocks)
        self.slabs = {}

    def chunk(self, number):
        self.budget.reserve(SIZE)
        memory = np.zeros(SIZE - 1024, np.uint8)
        with self.blocks.lock:
            self.chunks.put([((number,), CachedChunk(self.chunks, (number,), memory, None))])

    def use(self, number):
        assert self.chunks.find((number,), 0.0) is not None

    def slab(self, name, **how):
        """Whether there was room for one."""
        memory = self.blocks.lend(SIZE, shared=False, beside=0, **how)
        if memory is None:
            return False
        slab = self.slabs[name] = Slab(name, memory)
        with self.blocks.lock:
            self.blocks.add(slab)
        return True

    def read(self, name):
        slab = self.slabs[name]
        with self.blocks.lock:
            self.blocks.order.move_to_end(slab)
            slab.read = slab.wanted = True
            slab.used = block_cache.time.monotonic()

    def done(self, name):
        with self.blocks.lock:
            self.blocks.done_with(self.slabs[name])

    @property
    def held(self):
        chunks = [number for number in range(16) if self.chunks.peek((number,)) is not None]
        return chunks, [name for name, slab in self.slabs.items() if not slab.gone]


@pytest.fixture
def cache():
    return Cache()


def test_the_least_recently_used_goes_first_be_it_a_chunk_or_a_slab(cache, monkeypatch):
    monkeypatch.setattr(block_cache, "_IDLE", 0.0)
    for number, name in enumerate("abc"):
        cache.chunk(number)
        cache.slab(name)
    cache.chunk(3)
    cache.chunk(4)
    cache.use(0)
    cache.read("a")
    gone = []
    for _ in range(6):
        before = cache.held
        cache.budget.reserve(SIZE)
        cache.budget.release(SIZE)
        # One more for each that is taken away and not given back.
        cache.budget.charge(SIZE)
        chunks, slabs = cache.held
        gone += sorted({*before[0], *before[1]} - {*chunks, *slabs}, key=str)
    assert gone == [1, "b", 2, "c", 3, 4]
    assert cache.held == ([0], ["a"])


def test_a_slab_in_use_stays_where_a_load_can_wait_for_others(cache):
    """Jobs of one scan would else take the slabs of each other."""
    for name in "abc":
        cache.slab(name)
    cache.budget.reserve(4 * SIZE)
    assert not cache.budget.try_reserve(2 * SIZE)
    assert cache.held == ([], ["a", "b", "c"])
    cache.budget.release(4 * SIZE)
    assert cache.budget.try_reserve(5 * SIZE)
    assert cache.held == ([], ["a", "b", "c"])
    cache.budget.release(5 * SIZE)
    # Whoever needs so much might wait for ever.
    assert cache.budget.try_reserve(6 * SIZE)
    assert cache.held == ([], ["b", "c"])


def test_buffers_that_nobody_holds_go_before_all_others(cache):
    """After a scan they are no better than memory that was never used."""
    lent = [cache.blocks.lend(SIZE, shared=False, beside=0) for _ in range(4)]
    for number in range(4):
        cache.chunk(number)
    assert cache.budget.used == cache.budget.total
    lent.clear()
    gc.collect()
    for number in range(4, 8):
        cache.chunk(number)
    assert cache.held == ([0, 1, 2, 3, 4, 5, 6, 7], [])


def test_what_its_reader_is_done_with_goes_before_what_is_older(cache, monkeypatch):
    monkeypatch.setattr(block_cache, "_IDLE", 0.0)
    for number in range(6):
        cache.chunk(number)
    cache.slab("a")
    cache.slab("b")
    cache.read("a")
    cache.read("b")
    cache.done("b")
    cache.chunk(6)
    assert cache.held == ([0, 1, 2, 3, 4, 5, 6], ["a"])


def test_a_slab_takes_the_place_of_what_can_best_be_made_again(cache, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(block_cache.time, "monotonic", lambda: float(next(clock)))
    for name in "abcd":
        cache.slab(name)
    cache.read("a")
    cache.read("b")
    cache.done("a")
    assert cache.slab("e")
    assert cache.held == ([], ["b", "c", "d", "e"])
    # Nobody has read "c", "d" and "e" yet: the one that is wanted last is made again.
    assert cache.slab("f")
    assert cache.held == ([], ["b", "c", "d", "f"])
    for name in "cdf":
        cache.read(name)
    assert cache.slab("g")
    assert cache.held == ([], ["c", "d", "f", "g"])


@pytest.mark.parametrize("how", [{"ahead": True}, {"keep": True}])
def test_what_nobody_waits_for_displaces_no_slab_that_was_just_used(cache, monkeypatch, how):
    count = 5 if "keep" in how else 4
    for number in range(count):
        assert cache.slab(number, **how)
    assert not cache.slab("more", **how)
    monkeypatch.setattr(block_cache, "_IDLE", 0.0)
    assert cache.slab("more", **how)


def test_a_slab_that_is_to_stay_does_not_go(cache):
    for name in "abcd":
        cache.slab(name)
    stay = [cache.slabs[name] for name in "abcd"]
    assert not cache.slab("e", stay=stay)
    assert cache.slab("e", stay=stay[1:])
    assert cache.held == ([], ["b", "c", "d", "e"])


def test_all_of_a_load_wait_for_the_first():
    flights = Flights()
    assert flights.join("a", 1)
    assert not flights.join("a", 2)
    assert flights.join_any(3)
    assert flights.end("a") == [1, 2, 3]
    assert not flights.join_any(4)
    assert flights.join("a", None)
    assert not flights.awaited("a")
    flights.repeat(flights.keys())
    assert flights.end("a") is None
    assert flights.end("a") == []


@pytest.mark.parametrize("wishes", list(permutations(Keep)))
def test_of_several_wishes_the_largest_counts(wishes):
    flights = Flights()
    for number, keep in enumerate(wishes):
        flights.join_all(["a"], number, [], keep=keep)
        assert flights.kept(["a", "b"]) == [max(wishes[: number + 1]), Keep.NO]
