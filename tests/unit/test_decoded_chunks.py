"""Chunks that share memory are charged for and evicted together."""

from __future__ import annotations

import json
from math import inf

import numpy as np
import pytest

from tests.fs.arrays import Cached
from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.cache.read.decoded_chunks import ENTRY_OVERHEAD, DecodedChunks, Entry, Group
from zarrfs.cache.stats import Stats
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.memory.budget import MemoryBudget

SIDE = 512
COUNT = 8
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


class Held:
    """Chunks ``0`` to ``COUNT - 1`` of one group and ``COUNT`` on its own, none of them pinned."""

    def __init__(self):
        self.budget = MemoryBudget(1 << 20)
        self.chunks = DecodedChunks(self.budget, Stats())
        memory = np.zeros((COUNT, SIDE), np.uint8)
        group = Group()
        self.entries = [Entry(memory[i], (1,), group) for i in range(COUNT)]
        self.entries.append(Entry(np.zeros(SIDE, np.uint8), (1,)))
        for number, entry in enumerate(self.entries):
            self.budget.reserve(entry.charged)
            self.chunks.put([(self.key(number), entry)])
        self.chunks.unpin(self.entries)

    def key(self, number):
        return (0, (number,))

    def held(self):
        return [n for n in range(COUNT + 1) if self.chunks.peek(self.key(n)) is not None]


def test_a_group_goes_as_a_whole():
    held = Held()
    one = SIDE + ENTRY_OVERHEAD
    assert held.budget.used == (COUNT + 1) * one
    assert held.chunks.evict(1) == COUNT * one
    assert held.held() == [COUNT]
    assert held.chunks.evict(1) == one
    assert held.held() == []
    assert held.chunks.evict(1) == 0


def test_whoever_uses_one_uses_all():
    held = Held()
    assert held.chunks.get(held.key(3), -inf) is not None
    held.chunks.evict(1)
    assert held.held() == list(range(COUNT))


def test_a_pin_of_one_holds_all():
    held = Held()
    (found, _) = held.chunks.pin(0, [(5,)], -inf)
    held.chunks.evict(1 << 20)
    assert held.held() == list(range(COUNT))
    held.chunks.unpin([entry for _, entry in found])
    held.chunks.evict(1 << 20)
    assert held.held() == []


def test_memory_is_charged_for_until_the_last_is_forgotten():
    held = Held()
    one = SIDE + ENTRY_OVERHEAD
    held.chunks.drop([held.key(n) for n in range(COUNT - 1)])
    assert held.held() == [COUNT - 1, COUNT]
    assert held.budget.used == (COUNT + 1) * one
    held.chunks.drop([held.key(COUNT - 1)])
    assert held.budget.used == one


def test_what_takes_the_place_of_one_is_not_of_its_group():
    held = Held()
    one = SIDE + ENTRY_OVERHEAD
    for number in range(COUNT):
        entry = Entry(np.ones(SIDE, np.uint8), (2,))
        held.budget.reserve(entry.charged)
        held.chunks.put([(held.key(number), entry)])
    assert held.budget.used == (COUNT + 1) * one
    assert held.held() == list(range(COUNT + 1))


class Files:
    """Chunks of 512 bytes, of which two may stay when their files have been read."""

    def __init__(self, count):
        self.budget = MemoryBudget(3 * 16 * (SIDE + ENTRY_OVERHEAD) - 16)
        self.chunks = DecodedChunks(self.budget, Stats())
        self.entries = [Entry(np.zeros(SIDE, np.uint8), (1,)) for _ in range(count)]
        for number, entry in enumerate(self.entries):
            self.budget.reserve(entry.charged)
            self.chunks.put([(self.key(number), entry)])
        self.chunks.unpin(self.entries)

    def key(self, number):
        return (0, (number,))

    def held(self):
        found = [self.chunks.peek(self.key(n)) for n in range(len(self.entries))]
        assert self.budget.used == sum(entry.charged for entry in found if entry is not None)
        return [n for n, entry in enumerate(found) if entry is not None]

    def read(self, *numbers):
        for number in numbers:
            assert self.chunks.get_bytes(self.key(number), -inf) is not None
            self.chunks.passed(self.key(number))


def test_few_chunks_stay_whose_files_were_read():
    files = Files(6)
    files.read(1, 2, 3, 4)
    assert files.held() == [0, 3, 4, 5]


def test_they_are_the_first_to_go():
    files = Files(4)
    files.read(3)
    freed = files.chunks.evict(1)
    files.budget.release(freed)
    assert files.held() == [0, 1, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda chunks: chunks.get((0, (1,)), -inf),
        lambda chunks: chunks.get_all(0, [(1,)], -inf),
        lambda chunks: chunks.get_row(0, (), [1], -inf),
        lambda chunks: chunks.unpin([entry for _, entry in chunks.pin(0, [(1,)], -inf)[0]]),
    ],
    ids=["get", "get_all", "get_row", "pin"],
)
@pytest.mark.parametrize("late", [False, True])
def test_not_those_that_others_use(use, late):
    """Before their file was read to its end, or after."""
    files = Files(6)
    if not late:
        use(files.chunks)
    files.read(1)
    if late:
        use(files.chunks)
    files.read(2, 3, 4, 5)
    assert files.held() == [0, 1, 4, 5]
    freed = files.chunks.evict(3 * files.entries[0].charged)
    files.budget.release(freed)
    assert files.held() == [1]


def test_not_those_that_somebody_copies_from():
    files = Files(4)
    files.entries[1].pins += 1
    files.read(1, 2, 3)
    assert files.held() == [0, 1, 2, 3]


def test_those_that_are_gone_do_not_count_for_ever():
    files = Files(6)
    files.read(1, 2)
    files.chunks.drop([files.key(1), files.key(2)])
    files.read(3, 4)
    assert files.held() == [0, 3, 4, 5]
    files.read(5)
    assert files.held() == [0, 4, 5]


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


def test_inner_chunks_of_one_load_share_their_memory(inner_chunks):
    cached, values = inner_chunks
    fetch = cached.start(*[(n,) for n in range(COUNT)])
    assert fetch.error is None
    for n, chunk in enumerate(values):
        assert np.array_equal(fetch.chunks[n,], chunk)
    entries = [cached.cache.chunks.peek((cached.array.number, (n,))) for n in range(COUNT)]
    assert len({id(entry.group) for entry in entries}) == 1
    first, second = (entry.chunk.__array_interface__["data"][0] for entry in entries[:2])
    assert second - first == entries[0].chunk.nbytes
    cached.pool.close()
    assert cached.budget.used == sum(entry.charged for entry in entries)


def test_what_is_kept_of_a_load_in_part_is_copied(inner_chunks):
    """Else it would keep the memory of all of them."""
    cached, _ = inner_chunks
    begun = []

    def late(batch):
        begun.append(batch)

    submit, cached.pool.submit = cached.pool.submit, lambda run, **_: late(run)
    indices = [(n,) for n in range(COUNT)]
    over = []
    cached.array.request(indices, lambda _: None, over.append, keep=False)
    cached.array.request([(2,)], lambda _: None, over.append)
    for run in begun:
        run()
    cached.pool.submit = submit
    assert over == [None, None]
    assert cached.held(indices) == [(2,)]
    entry = cached.cache.chunks.peek((cached.array.number, (2,)))
    assert entry.chunk.base is None
    cached.pool.close()
    assert cached.budget.used == entry.charged


def test_memory_is_charged_for_what_has_to_be_loaded_again(inner_chunks):
    """It lasts as long as that of the others does."""
    cached, values = inner_chunks
    number, flights = cached.array.number, cached.cache._flights
    begun = []
    submit, cached.pool.submit = cached.pool.submit, lambda run, **_: begun.append(run)
    over = []
    indices = [(n,) for n in range(COUNT)]
    cached.array.request(indices, lambda _: None, over.append)
    flights[number, (3,)].again = True
    (run,) = begun
    run()
    assert cached.held(indices) == [index for index in indices if index != (3,)]
    each = values[0].nbytes + ENTRY_OVERHEAD
    assert cached.budget.used == COUNT * each
    begun[1]()
    cached.pool.submit = submit
    assert over == [None]
    assert cached.held(indices) == indices
    assert cached.budget.used == (COUNT + 1) * each
    cached.array.distrust()
    assert cached.budget.used == 0
