"""Which objects are stored together, and by how many jobs at once."""

from collections.abc import Callable, Sequence

import pytest

from zarrfs.cache.write.due_objects import DueObjects
from zarrfs.format.chunk_grid import Index

FLUSHERS, MOST = 2, 8


class Jobs:
    """Stands in for `WriteBack`: keeps the jobs, which the test runs one by one."""

    flushers = FLUSHERS

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], *, ahead: bool) -> None:
        self.waiting.append(job)

    def run(self) -> None:
        self.waiting.pop(0)()


class ClosedPool(Jobs):
    """Runs a job at once."""

    def submit(self, job: Callable[[], None], *, ahead: bool) -> None:
        job()


def indices(count: int, start: int = 0) -> list[Index]:
    return [(number,) for number in range(start, start + count)]


def test_threads_share_what_is_due():
    jobs, groups = Jobs(), []
    due = DueObjects(jobs, MOST, groups.append)
    due.add(indices(7))
    assert len(jobs.waiting) == FLUSHERS
    while jobs.waiting:
        jobs.run()
    assert [index for group in groups for index in group] == indices(7)
    assert len(groups[0]) == 4


def test_the_last_idle_thread_takes_all_that_is_due():
    jobs, groups = Jobs(), []

    def store(group: Sequence[Index]) -> None:
        groups.append(list(group))
        if jobs.waiting:
            jobs.run()

    DueObjects(jobs, MOST, store).add(indices(7))
    jobs.run()
    assert groups == [indices(4), indices(3, start=4)]


def test_what_comes_during_a_store_is_stored_in_batches():
    jobs, groups = Jobs(), []

    def store(group: Sequence[Index]) -> None:
        groups.append(list(group))
        if len(groups) == 1:
            due.add(indices(40, start=2))

    due = DueObjects(jobs, MOST, store)
    due.add(indices(2))
    while jobs.waiting:
        jobs.run()
    assert groups[:3] == [[(0,)], indices(MOST, start=1), indices(MOST, start=1 + MOST)]
    assert [index for group in groups for index in group] == indices(42)


def test_a_job_for_one_object_is_one_job():
    jobs, groups = Jobs(), []
    due = DueObjects(jobs, MOST, groups.append)
    due.add([])
    assert not jobs.waiting
    due.add(indices(1))
    assert len(jobs.waiting) == 1
    jobs.run()
    assert groups == [indices(1)]
    assert not jobs.waiting


def test_a_closed_pool_stores_them_in_the_thread_that_adds_them():
    groups = []
    DueObjects(ClosedPool(), MOST, groups.append).add(indices(20))
    assert [index for group in groups for index in group] == indices(20)


def test_what_fails_leaves_the_others_due():
    jobs, groups = Jobs(), []

    def store(group: Sequence[Index]) -> None:
        groups.append(list(group))
        if len(groups) == 1:
            raise RuntimeError("no such thing")

    due = DueObjects(jobs, MOST, store)
    due.add(indices(4))
    with pytest.raises(RuntimeError):
        jobs.run()
    while jobs.waiting:
        jobs.run()
    assert [index for group in groups for index in group] == indices(4)
