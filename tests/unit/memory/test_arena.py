"""Buffers that are lent out: charged to the budget, and never too much of it."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from zarrfs.memory import huge_pages
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget

pytestmark = pytest.mark.timeout(30)

KIB = 1 << 10


@pytest.fixture
def budget():
    return MemoryBudget(100 * KIB)


@pytest.fixture
def arena(budget):
    return Arena(budget)


def test_charged_until_the_budget_wants_it_back(budget, arena):
    memory = arena.lend(20 * KIB)
    assert memory.nbytes == 20 * KIB
    assert budget.used == 20 * KIB
    del memory
    gc.collect()
    assert budget.used == 20 * KIB
    budget.reserve(90 * KIB)
    assert budget.used == 90 * KIB


def test_used_again(budget, arena):
    memory = arena.lend(20 * KIB)
    memory[:] = 7
    del memory
    again = arena.lend(15 * KIB)
    assert again.nbytes == 15 * KIB
    assert budget.used == 20 * KIB
    assert set(again) == {7}


@pytest.mark.parametrize("part", [
    lambda memory: memory[5:],
    lambda memory: memory.data[5:8].toreadonly(),
    lambda memory: memory.view("<u4").reshape(-1, 2).T,
])  # fmt: skip
def test_not_before_the_last_part_of_it_is_gone(budget, arena, part):
    memory = arena.lend(40 * KIB)
    kept = part(memory)
    del memory
    gc.collect()
    other = arena.lend(40 * KIB)
    assert other is None
    assert len(kept)
    del kept
    assert arena.lend(40 * KIB) is not None


def test_half_of_the_budget_at_most(budget, arena):
    first = arena.lend(30 * KIB)
    assert arena.lend(21 * KIB) is None
    second = arena.lend(20 * KIB)
    assert second is not None
    assert arena.lend(1) is None
    del first
    assert arena.lend(30 * KIB) is not None
    assert 2 * arena.largest <= 50 * KIB


def test_no_room_in_the_budget(budget, arena):
    budget.reserve(90 * KIB)
    assert arena.lend(20 * KIB) is None
    assert budget.used == 90 * KIB
    assert arena.lend(10 * KIB) is not None


def test_what_is_kept_can_be_given_up(budget, arena):
    lent = arena.lend(20 * KIB)
    arena.lend(30 * KIB)
    gc.collect()
    assert (arena.kept, budget.used) == (30 * KIB, 50 * KIB)
    budget.shrink()
    assert (arena.kept, budget.used) == (0, 20 * KIB)
    assert lent is not None


def test_a_buffer_that_comes_back_wakes_whoever_waits():
    budget = MemoryBudget(100 * KIB, patience=3600)
    arena = Arena(budget)
    memory = arena.lend(40 * KIB)
    waits = threading.Event()
    budget.add_reclaim(lambda _wanted: waits.set() or 0)
    thread = threading.Thread(target=budget.reserve, args=(90 * KIB,), daemon=True)
    thread.start()
    assert waits.wait(10)
    del memory
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()
    assert budget.used == 90 * KIB


def test_threads_that_borrow_at_once_never_have_more_than_may_be_lent_out():
    together = threading.Barrier(2)

    class Slow(MemoryBudget):
        """Both threads have passed whatever was checked before; one alone waits in vain."""

        def try_reserve(self, size, wait=0.0):
            with suppress(threading.BrokenBarrierError):
                together.wait(0.5)
            return super().try_reserve(size, wait)

    arena = Arena(Slow(100 * KIB))
    with ThreadPoolExecutor(2) as pool:
        lent = list(pool.map(arena.lend, [30 * KIB] * 2))
    assert sum(memory is not None for memory in lent) == 1


def _flags(address):
    """The kernel's flags of the mapping that contains an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            start, stop = (int(number, 16) for number in first.split("-"))
            inside = start <= address < stop
        elif inside and first == "VmFlags:":
            return rest.split()
    raise AssertionError("no mapping has this address")


def _huge_bytes():
    """Bytes of this process in huge pages; the kernel joins neighbouring mappings."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("AnonHugePages:"))


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a kernel without huge pages"
)
def test_buffers_are_in_small_pages():
    budget = MemoryBudget(64 << 20)
    arena = Arena(budget)
    memory = arena.lend(8 << 20)
    assert "nh" in _flags(memory.__array_interface__["data"][0])
    memory[:] = 7
    assert memory.nbytes == 8 << 20
    del memory
    assert set(arena.lend(8 << 20)[::4096]) == {7}


@pytest.fixture
def huge_pages_come(monkeypatch):
    """The kernel has huge pages on request, however long they take."""
    monkeypatch.setattr(huge_pages, "_PATIENCE", float("inf"))
    before, memory = _huge_bytes(), huge_pages.small_pages(16 << 20)
    huge_pages.HugePages().fill(memory)
    if _huge_bytes() - before < 14 << 20:
        pytest.skip("this kernel has no huge pages now")


@pytest.mark.usefixtures("huge_pages_come")
def test_a_fresh_buffer_is_backed_by_huge_pages_once(monkeypatch):
    arena = Arena(MemoryBudget(64 << 20))
    memory = arena.lend(9 << 20)
    before = _huge_bytes()
    arena.back(memory)
    assert _huge_bytes() - before == 8 << 20
    assert not memory.any()
    memory[:] = 7
    # More of them come by request only.
    assert "nh" in _flags(memory.__array_interface__["data"][0])
    requested = []
    monkeypatch.setattr(huge_pages.HugePages, "fill", lambda *_: requested.append(1))
    del memory
    memory = arena.lend(9 << 20)
    arena.back(memory)
    assert memory.all()
    assert not requested
    # A buffer in the place of one that the budget has freed is a fresh one.
    del memory
    arena.reclaim(64 << 20)
    arena.back(arena.lend(9 << 20))
    assert requested
