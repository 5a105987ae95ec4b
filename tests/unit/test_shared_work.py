"""Work that several threads do together."""

import threading

import pytest

from zarrfs.jobs.loaders import LoaderPool
from zarrfs.jobs.shared_work import SharedWork, share


def test_everything_is_done_once_whoever_helps():
    pool = LoaderPool(3)
    done: list[int] = []
    share(pool, 3, done.append, 1000)
    assert sorted(done) == list(range(1000))
    share(pool, 3, done.append, 0)
    assert len(done) == 1000
    pool.close()


def test_threads_that_are_busy_are_not_waited_for_and_idle_ones_help():
    pool = LoaderPool(2)
    free = threading.Event()
    pool.submit(lambda: free.wait(30))
    both = threading.Barrier(2, timeout=30)
    # Neither goes on before another thread has come.
    share(pool, 2, lambda _number: both.wait() and None, 2)
    free.set()
    pool.close()


def test_a_failure_is_raised_and_ends_the_work():
    pool = LoaderPool(2)
    seen: list[int] = []

    def work(number: int) -> None:
        seen.append(number)
        if number == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        share(pool, 2, work, 100_000)
    assert len(seen) < 100_000
    pool.close()


def test_who_comes_late_has_nothing_to_do():
    done: list[int] = []
    work = SharedWork(done.append, 3)
    work.run()
    work.help()
    assert done == [0, 1, 2]
