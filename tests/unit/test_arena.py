"""Buffers that are lent out: charged to the budget, and never too much of it."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress

import numpy as np
import pytest

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
    assert arena.kept_back == 50 * KIB
    assert 2 * arena.largest <= 50 * KIB


def test_half_of_the_budget_though_more_was_given_back(budget, arena):
    """Buffers of sizes that are of no use together are more than half."""
    small = [arena.lend(10 * KIB) for _ in range(5)]
    del small
    large = arena.lend(50 * KIB)
    assert budget.used == 100 * KIB
    assert large is not None
    assert arena.lend(10 * KIB) is None


def test_no_room_in_the_budget(budget, arena):
    budget.reserve(90 * KIB)
    assert arena.lend(20 * KIB) is None
    assert budget.used == 90 * KIB
    assert arena.lend(10 * KIB) is not None


class Holder:
    def __init__(self):
        self.buffers = []

    def give_back(self):
        self.buffers.clear()

    def recall(self, wanted, idle):
        if idle:
            return 0
        freed = 0
        while self.buffers and freed < wanted:
            freed += self.buffers.pop(0).nbytes
        return freed


def test_given_back_where_a_load_needs_more_than_what_is_kept_back(budget, arena):
    holder = Holder()
    arena.add_borrower(holder)
    holder.buffers = [arena.lend(25 * KIB), arena.lend(25 * KIB)]
    budget.reserve(50 * KIB)
    assert len(holder.buffers) == 2
    budget.release(50 * KIB)
    budget.reserve(51 * KIB)
    assert holder.buffers == []
    assert budget.highest <= budget.total


def test_more_than_half_may_be_kept_and_makes_room(budget, arena):
    holder, other = Holder(), Holder()
    for borrower in holder, other:
        arena.add_borrower(borrower)
    holder.buffers = [arena.lend(20 * KIB, keep=True) for _ in range(3)]
    assert all(memory is not None for memory in holder.buffers)
    # Nobody lets go of what was just used for what is only to be kept.
    assert arena.lend(20 * KIB, keep=True) is None
    assert len(holder.buffers) == 3
    needed = arena.lend(20 * KIB)
    assert needed is not None
    # More than was wanted, because at most half is lent then.
    assert len(holder.buffers) == 1
    other.buffers = [needed]
    del needed
    assert arena.lend(60 * KIB) is None
    assert budget.highest <= budget.total


def test_a_borrower_that_is_gone_is_forgotten(budget, arena):
    holder = Holder()
    arena.add_borrower(holder)
    kept = arena.lend(50 * KIB)
    del holder
    gc.collect()
    assert not budget.try_reserve(60 * KIB)
    assert np.count_nonzero(kept) <= kept.nbytes


def test_all_of_the_budget_where_that_is_said(budget):
    arena = Arena(budget, whole=True)
    lent = [arena.lend(25 * KIB) for _ in range(5)]
    assert [memory is None for memory in lent] == [False] * 4 + [True]
    assert arena.kept == 0


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
    lent = []
    threads = [threading.Thread(target=lambda: lent.append(arena.lend(30 * KIB))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(memory is not None for memory in lent) == 1


def test_many_threads_leave_the_budget_as_they_found_it():
    budget = MemoryBudget(100 * KIB)
    arena = Arena(budget)

    def borrow():
        for size in range(1, 200):
            memory = arena.lend(size * 40)
            if size % 3 == 0:
                budget.reserve(60 * KIB)
                budget.release(60 * KIB)
            del memory

    threads = [threading.Thread(target=borrow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    gc.collect()
    assert budget.used == arena.kept
    budget.shrink()
    assert budget.used == 0
