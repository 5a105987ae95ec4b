"""Memory that is ready before it is asked for: where it comes from, and when it is given up."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numcodecs import zstd

from tests.fs.arrays import Cached
from tests.fs.documents import LITTLE, ZSTD, array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.cache.read.array_chunks import CHUNK_OVERHEAD
from zarrfs.memory import arena, spare_memory
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.spare_memory import SpareMemory

pytestmark = pytest.mark.timeout(60)

MIB, KIB = 1 << 20, 1 << 10
SMALL = 64 * KIB
# Bytes that are charged for spares of 1 MiB.
ROOM = 4 * MIB
COUNT = 12


@pytest.fixture
def budget():
    return MemoryBudget(64 * MIB)


@pytest.fixture
def spares(budget):
    return SpareMemory(budget)


def address(memory):
    return memory.__array_interface__["data"][0]


def resident(memory):
    """Whether all whole pages of some memory are there."""
    page = 4096
    first, stop = -(-address(memory) // page), (address(memory) + memory.nbytes) // page
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(first * 8)
        entries = np.frombuffer(file.read((stop - first) * 8), "<u8")
    return bool((entries >> 63).all())


def test_what_nobody_sees_any_more_is_used_again(spares):
    used = spares.take(MIB)
    place = address(used)
    del used
    assert address(spares.take(MIB)) == place


@pytest.mark.parametrize(
    "see",
    [
        lambda memory: memory[5:7],
        lambda memory: memory.data[5:7],
        lambda memory: np.frombuffer(memory.data, "<u2").reshape(8, -1)[3],
        lambda memory: memory.view("<u4")[1:].data.cast("B")[3:],
    ],
)
def test_not_while_there_is_any_view_of_it(spares, see):
    used = spares.take(MIB)
    place = address(used)
    view = see(used)
    del used
    other = spares.take(MIB)
    assert address(other) != place
    del view
    assert address(spares.take(MIB)) == place


def test_spares_are_made(spares):
    used = spares.take(MIB)
    spares.prepare()
    spare = spares.take(MIB)
    assert resident(spare)
    assert address(spare) != address(used)


def test_none_are_made_where_some_have_come_back(monkeypatch, spares):
    used = [spares.take(MIB) for _ in range(2)]
    del used
    monkeypatch.setattr(spare_memory, "_populate", lambda _: pytest.fail("made one"))
    spares.prepare()


def test_charged_for_before_they_come(budget, spares):
    kept = [spares.take(MIB) for _ in range(20)]
    assert budget.used == ROOM
    spares.prepare()
    assert budget.used == ROOM
    places = {address(memory) for memory in kept}
    del kept
    assert budget.used == ROOM
    again = [spares.take(MIB) for _ in range(4)]
    assert {address(memory) for memory in again} <= places


def test_no_more_are_kept_than_are_charged_for(spares):
    kept = [spares.take(MIB) for _ in range(20)]
    del kept
    assert len(spares._spares.pieces) * MIB == ROOM


def test_never_handed_out_twice(spares):
    kept = []
    for _ in range(8):
        kept.append(spares.take(MIB))
        spares.prepare()
    for i, memory in enumerate(kept):
        memory[:] = i
    assert [set(memory) for memory in kept] == [{i} for i in range(8)]


def test_of_the_size_that_is_asked_for(budget, spares):
    used = spares.take(MIB)
    other = spares.take(MIB + 8)
    assert other.nbytes == MIB + 8
    assert budget.used == 4 * (MIB + 8)
    del used
    again = spares.take(MIB + 8)
    assert again.nbytes == MIB + 8
    assert address(again) != address(other)


def test_none_of_small_chunks(budget, spares):
    used = spares.take(SMALL)
    spares.prepare()
    assert used.nbytes == SMALL
    assert budget.used == 0


def test_none_that_are_much_of_the_budget(budget, spares):
    used = spares.take(3 * MIB)
    spares.prepare()
    assert used.nbytes == 3 * MIB
    del used
    assert budget.used == 0
    assert not spares._spares.pieces


def test_given_up_for_whoever_needs_memory(budget, spares):
    used = spares.take(MIB)
    spares.prepare()
    budget.reserve(60 * MIB)
    assert budget.used == 64 * MIB
    budget.reserve(MIB)
    assert budget.used == 61 * MIB
    del used
    assert not spares._spares.pieces
    assert spares.take(MIB).nbytes == MIB


def test_nothing_else_is_given_up_for_them(budget, spares):
    budget.add_reclaim(lambda _wanted: pytest.fail("asked for memory"))
    budget.reserve(61 * MIB)
    used = spares.take(MIB)
    spares.prepare()
    assert used.nbytes == MIB
    assert budget.used == 61 * MIB


def test_none_are_made_where_the_kernel_cannot(monkeypatch, spares):
    monkeypatch.setattr(spare_memory, "_madvise", lambda: lambda *_: -1)
    used = spares.take(MIB)
    spares.prepare()
    assert used.nbytes == MIB
    assert not spares._spares.pieces


@pytest.fixture
def cached():
    """Chunks of 1 MiB, encoded so that they are decoded into memory that is given."""
    document = array_document(
        (COUNT * MIB,),
        (MIB,),
        data_type="uint8",
        fill_value=0,
        codecs=[LITTLE, ZSTD],
    )
    objects = {f"c/{i}": zstd.compress(np.full(MIB, i + 1, np.uint8)) for i in range(COUNT)}
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
    places = set(map(address, cached.cache.spares._spares.pieces))
    assert places
    assert set(np.unique(cached.read((1,)))) == {2}
    assert address(cached.array.get((1,))) in places
    assert set(np.unique(cached.array.get((0,)))) == {1}


def test_charged_beside_what_is_held(cached):
    cached.read((0,))
    cached.read((1,))
    idle(cached)
    held = 2 * (MIB + CHUNK_OVERHEAD)
    assert cached.cache.spares._spares.pieces
    assert held + ROOM <= cached.budget.used < held + ROOM + KIB
    cached.budget.shrink()
    assert not cached.cache.spares._spares.pieces
    assert cached.budget.used == 0


def test_memory_of_a_chunk_that_makes_room_is_used_again(monkeypatch, cached):
    """Where the budget is full, nothing new is needed for the next chunk."""
    handed_out = []

    def lease(memory, size, back):
        handed_out.append(memory)
        return arena.lease(memory, size, back)

    monkeypatch.setattr(spare_memory, "lease", lease)
    cached.read((0,))
    idle(cached)
    # What loading one takes is more than the chunk.
    cached.budget.reserve(cached.budget.total - cached.budget.used - 4 * MIB)
    for i in range(1, COUNT):
        assert set(np.unique(cached.read((i,)))) == {i + 1}
        idle(cached)
    assert cached.cache.chunks < 4
    assert len(handed_out) == COUNT
    assert len(set(map(id, handed_out))) <= 5


def test_what_is_on_its_way_stays_what_it_is(cached):
    """A reply is part of a chunk's own memory, and may be sent after the chunk has gone."""
    replies = []
    for i in range(COUNT):
        cached.read((i,))
        replies.append(cached.array.get_row((), [i])[0][7 : MIB - 9])
        cached.array._drop([(i,)])
        idle(cached)
    assert [set(reply) for reply in replies] == [{i + 1} for i in range(COUNT)]
