"""Locks are taken in one order, and the tests notice where one is not."""

import threading

import pytest

from zarrfs import locks
from zarrfs.locks import LockOrderError, Rank, ranked_condition, ranked_lock

pytestmark = pytest.mark.timeout(30)


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.setattr(locks, "checked", True)


def test_the_tests_check_the_order():
    assert locks._held.locks == []
    assert isinstance(ranked_lock(Rank.CACHE), locks._CheckedLock)


def test_a_lock_says_whether_it_is_taken():
    """As `threading.Condition` asks since Python 3.14."""
    for lock in (ranked_lock(Rank.CACHE), ranked_lock(Rank.BUDGET, reentrant=True)):
        assert not lock.locked()
        with lock:
            assert lock.locked()
        assert not lock.locked()


@pytest.mark.parametrize("second", [Rank.GATHERING, Rank.TILE])
def test_an_earlier_one_and_one_of_the_same_rank_may_not(second):
    other = ranked_lock(second)
    with ranked_lock(Rank.TILE), pytest.raises(LockOrderError, match=second.name):
        other.acquire()
    # It has not been taken, and can be now.
    with other:
        assert [lock.rank for lock in locks._held.locks] == [second]


def test_any_may_be_tried():
    earlier = ranked_lock(Rank.GATHERING)
    with ranked_lock(Rank.TILE):
        assert earlier.acquire(blocking=False)
        assert not earlier.acquire(blocking=False)
        # Now this is what a thread must not wait behind.
        with pytest.raises(LockOrderError):
            ranked_lock(Rank.GROWTH).acquire()
        earlier.release()


def test_one_that_may_be_taken_again():
    budget, cache = ranked_lock(Rank.BUDGET, reentrant=True), ranked_lock(Rank.CACHE)
    with budget, budget:
        with cache, budget:
            pass
        with cache:
            pass
    with cache, pytest.raises(LockOrderError):
        budget.acquire()
    assert locks._held.locks == []


def test_each_thread_has_its_own():
    reached = []

    def take():
        with ranked_lock(Rank.GATHERING):
            reached.append(True)

    with ranked_lock(Rank.CACHE):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(20)
    assert reached == [True]


def test_whoever_waits_for_a_condition_does_not_have_its_lock():
    changed = ranked_condition(Rank.DIRTY_OBJECTS)
    with changed:
        assert not changed.wait(0.001)
        assert [each.rank for each in locks._held.locks] == [Rank.DIRTY_OBJECTS]
    assert locks._held.locks == []
