"""Memory that is ready before it is asked for: how much there is, and when it is given up."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numcodecs import zstd

from tests.fs.arrays import Cached
from tests.fs.documents import LITTLE, ZSTD, array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.cache import spare_memory
from zarrfs.cache.budget import MemoryBudget
from zarrfs.cache.decoded_chunks import ENTRY_OVERHEAD
from zarrfs.cache.spare_memory import SpareMemory

pytestmark = pytest.mark.timeout(60)

MIB, KIB = 1 << 20, 1 << 10
SMALL = 64 * KIB


@pytest.fixture
def budget():
    return MemoryBudget(64 * MIB)


@pytest.fixture
def spares(budget):
    return SpareMemory(budget)


def address(memory):
    return memory.__array_interface__["data"][0]


def make_spares(spares, size, count=4):
    used = spares.take(size)
    for _ in range(count):
        spares.prepare()
    return used


def resident(memory):
    """Whether all whole pages of some memory are there."""
    page = 4096
    first, stop = -(-address(memory) // page), (address(memory) + memory.nbytes) // page
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(first * 8)
        entries = np.frombuffer(file.read((stop - first) * 8), "<u8")
    return bool((entries >> 63).all())


def test_its_pages_are_there(spares):
    used = make_spares(spares, MIB)
    spare = spares.take(MIB)
    assert resident(spare)
    assert address(spare) != address(used)


def test_at_most_two_and_charged(budget, spares):
    used = make_spares(spares, MIB)
    assert used.nbytes == MIB
    assert budget.used == 2 * MIB
    taken = spares.take(MIB)
    assert taken.nbytes == MIB
    assert budget.used == MIB


def test_never_handed_out_twice(spares):
    kept = []
    for _ in range(8):
        kept.append(spares.take(MIB))
        spares.prepare()
    for i, memory in enumerate(kept):
        memory[:] = i
    assert [set(memory) for memory in kept] == [{i} for i in range(8)]


def test_only_of_the_size_that_is_asked_for(budget, spares):
    used = make_spares(spares, MIB)
    assert spares.take(MIB + 8).nbytes == MIB + 8
    assert used.nbytes == MIB
    assert budget.used == 2 * MIB


def test_those_of_another_size_make_room(budget, spares):
    used = [make_spares(spares, MIB), make_spares(spares, 2 * MIB)]
    assert budget.used == 4 * MIB
    assert resident(spares.take(2 * MIB))
    assert len(used) == 2


def test_none_of_what_nobody_kept(budget, spares):
    """A decoder need not use the memory that it is given."""
    used = spares.take(MIB)
    del used
    spares.prepare()
    assert budget.used == 0


def test_none_of_small_chunks(budget, spares):
    used = make_spares(spares, SMALL)
    assert used.nbytes == SMALL
    assert budget.used == 0


def test_none_that_is_much_of_the_budget(budget, spares):
    used = make_spares(spares, 5 * MIB)
    assert used.nbytes == 5 * MIB
    assert budget.used == 0


def test_given_up_for_whoever_needs_memory(budget, spares):
    used = make_spares(spares, MIB)
    budget.reserve(63 * MIB)
    assert budget.used == 64 * MIB
    budget.reserve(MIB)
    assert budget.used == 64 * MIB
    assert spares.take(MIB).nbytes == used.nbytes
    assert budget.used == 64 * MIB


def test_nothing_else_is_given_up_for_them(budget, spares):
    budget.add_reclaim(lambda _wanted: pytest.fail("asked for memory"))
    budget.reserve(64 * MIB - 1)
    used = make_spares(spares, MIB)
    assert used.nbytes == MIB
    assert budget.used == 64 * MIB - 1


def test_none_where_the_kernel_cannot(monkeypatch, budget, spares):
    monkeypatch.setattr(spare_memory, "_madvise", lambda: lambda *_: -1)
    used = make_spares(spares, MIB)
    assert used.nbytes == MIB
    assert budget.used == 0


@pytest.fixture
def cached():
    """Two chunks of 1 MiB, encoded so that they are decoded into memory that is given."""
    document = array_document(
        (2 * MIB,),
        (MIB,),
        data_type="uint8",
        fill_value=0,
        codecs=[LITTLE, ZSTD],
    )
    objects = {f"c/{i}": zstd.compress(np.full(MIB, i + 1, np.uint8)) for i in range(2)}
    made = Cached(MemoryStore({"zarr.json": document, **objects}))
    yield made
    made.close()


def idle(cached):
    """Wait until no loader has anything to do."""
    give_up = time.monotonic() + 20
    while len(cached.pool._asleep) != cached.pool.count:
        assert time.monotonic() < give_up
        time.sleep(0.001)


def test_the_next_chunk_is_loaded_into_it(cached):
    assert set(np.unique(cached.read((0,)))) == {1}
    idle(cached)
    (spare,) = cached.cache.spares._spares
    place = address(spare)
    del spare
    assert set(np.unique(cached.read((1,)))) == {2}
    assert address(cached.array.get((1,))) == place
    assert set(np.unique(cached.array.get((0,)))) == {1}


def test_charged_beside_what_is_held(cached):
    cached.read((0,))
    cached.read((1,))
    idle(cached)
    held = 2 * (MIB + ENTRY_OVERHEAD)
    ready = sum(spare.nbytes for spare in cached.cache.spares._spares)
    assert ready >= MIB
    assert held + ready <= cached.budget.used < held + ready + KIB
    cached.budget.shrink()
    assert not cached.cache.spares._spares
    assert cached.budget.used == 0
