"""The memory budget: never exceeded, and nobody waits for ever."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from zarrfs.errors import BudgetExceeded
from zarrfs.memory.budget import MemoryBudget

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def budget():
    return MemoryBudget(100)


def test_reserve_and_release(budget):
    budget.reserve(60)
    budget.reserve(40)
    assert budget.used == 100
    budget.release(70)
    assert (budget.used, budget.highest, budget.total) == (30, 100, 100)


def test_what_is_cached_gives_way(budget):
    asked = []

    def reclaim(wanted):
        asked.append(wanted)
        return 45

    budget.add_reclaim(reclaim)
    budget.reserve(90)
    budget.reserve(50)
    assert asked == [40]
    assert budget.used == 95


def test_without_waiting(budget):
    assert budget.try_reserve(70)
    assert not budget.try_reserve(31)
    assert budget.try_reserve(30)
    assert budget.used == 100


def waiting(budget, size):
    """A thread that reserves, once it waits."""
    waits = threading.Event()
    budget.add_reclaim(lambda _wanted: waits.set() or 0)
    thread = threading.Thread(target=budget.reserve, args=(size,), daemon=True)
    thread.start()
    assert waits.wait(10)
    return thread


def test_waits_for_something_to_reclaim(budget):
    budget.reserve(100)
    thread = waiting(budget, 30)
    assert thread.is_alive()
    budget.add_reclaim(lambda wanted: wanted)
    budget.wake()
    thread.join(10)
    assert not thread.is_alive()
    assert budget.used == 100


def test_many_threads_stay_within_it():
    budget = MemoryBudget(1000)

    def work(seed):
        rng = random.Random(seed)
        for _ in range(300):
            size = rng.choice((1, 10, 400, 600, 1000))
            budget.reserve(size)
            assert budget.used <= budget.total
            budget.release(size)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert budget.used == 0
    assert budget.highest <= budget.total


def test_what_is_in_use_already_is_charged_whether_or_not_it_fits(budget):
    budget.reserve(90)
    budget.charge(20)
    assert (budget.used, budget.highest) == (110, 110)
    assert not budget.try_reserve(1)
    budget.release(20)
    assert budget.try_reserve(10)


def test_an_attempt_is_made_again_when_something_comes_free(budget):
    tried: list[int] = []

    def take() -> bool:
        tried.append(budget.used)
        return not budget.used

    assert budget.attempt(take)
    budget.reserve(100)
    tried.clear()
    assert not budget.attempt(take)
    other = threading.Timer(0.05, budget.release, [100])
    other.start()
    assert budget.attempt(take, wait=10)
    other.join()
    assert tried == [100, 100, 0]


@pytest.mark.parametrize("way", ["wake", "release"])
def test_no_wake_is_lost_between_a_try_and_the_wait(way):
    """The reclaimer is asked, and then something comes free before the thread waits."""
    budget = MemoryBudget(100, patience=3600)
    budget.reserve(100)
    tries = []

    def reclaim(wanted):
        tries.append(wanted)
        if len(tries) == 2:  # the last one before the thread waits
            if way == "wake":
                budget.wake()
            else:
                # It has the lock as soon as this thread lets go of it.
                threading.Thread(target=budget.release, args=(100,)).start()
        return wanted if len(tries) > 2 else 0

    budget.add_reclaim(reclaim)
    thread = threading.Thread(target=budget.reserve, args=(50,), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_thread_is_woken_with_the_lock_of_the_budget_held_elsewhere():
    """A finalizer wakes, in a thread that may hold any lock."""
    budget = MemoryBudget(100, patience=3600)
    budget.reserve(100)
    thread = waiting(budget, 30)
    woken = threading.Event()

    def holds_the_lock():
        wakes = threading.Thread(target=lambda: (budget.wake(), woken.set()))
        wakes.start()
        assert woken.wait(10)
        return False

    assert not budget.attempt(holds_the_lock)
    budget.release(50)
    thread.join(20)
    assert not thread.is_alive()


def test_more_and_less(budget):
    """A lower total has what is cached given up; what was planned before still succeeds."""
    cached = [40, 40]

    def reclaim(wanted):
        freed = 0
        while cached and freed < wanted:
            freed += cached.pop()
        return freed

    budget.add_reclaim(reclaim)
    budget.charge(80)
    budget.resize(50)
    assert (budget.total, budget.used, cached) == (50, 40, [40])
    assert not budget.try_reserve(60, wait=0.0) or cached == []
    budget.release(budget.used)
    assert budget.try_reserve(60)
    assert not budget.try_reserve(20)
    budget.release(60)
    with pytest.raises(BudgetExceeded, match="101"):
        budget.reserve(101)
    budget.resize(200)
    assert budget.try_reserve(200)


def test_more_wakes_whoever_waits():
    budget = MemoryBudget(100, patience=3600)
    budget.reserve(90)
    waits = threading.Thread(target=budget.reserve, args=(50,))
    waits.start()
    budget.resize(150)
    waits.join(20)
    assert not waits.is_alive()
    assert budget.used == 140
