"""Threads that run jobs: which of them, in which order, until when, and together."""

import threading
from collections.abc import Callable

import pytest

from tests.waiting import wait_until
from zarrfs.threads import SharedWork, ThreadPool, share

pytestmark = pytest.mark.timeout(60)

_SECONDS = 20


def asleep(pool: ThreadPool, count: int) -> None:
    """Wait until so many threads of the pool have nothing to do."""
    wait_until(lambda: len(pool._asleep) == count)


@pytest.fixture
def pool():
    pool = ThreadPool(3)
    yield pool
    pool.close()


def test_one_job_after_the_other_runs_in_one_thread(pool):
    """Its memory is hot, and the others are left asleep."""
    threads = []
    for _ in range(20):
        asleep(pool, len(pool._threads))
        done = threading.Event()

        def job(done: threading.Event = done) -> None:
            threads.append(threading.get_ident())
            done.set()

        pool.submit(job)
        assert done.wait(_SECONDS)
    assert len(set(threads)) == 1


def test_threads_start_when_they_have_something_to_do(pool):
    assert not pool._threads
    for started in (1, 1, 2, 3, 3):
        begun, go_on = threading.Semaphore(0), threading.Event()
        for _ in range(started):
            pool.submit(lambda begun=begun, go_on=go_on: begun.release() or go_on.wait(_SECONDS))
        for _ in range(started):
            assert begun.acquire(timeout=_SECONDS)
        assert len(pool._threads) == started
        go_on.set()
        asleep(pool, started)


def test_without_another_thread_the_others_do_the_job(pool, monkeypatch):
    def start(_thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    ran = []
    with pytest.raises(RuntimeError, match="start"):
        pool.submit(lambda: ran.append(0))
    monkeypatch.undo()
    go_on, done = threading.Event(), threading.Event()
    pool.submit(lambda: go_on.wait(_SECONDS))
    monkeypatch.setattr(threading.Thread, "start", start)
    pool.submit(done.set)
    go_on.set()
    assert done.wait(_SECONDS)
    assert not ran


def test_in_order_and_urgent_ones_first():
    pool = ThreadPool(1)
    held = threading.Event()
    ran: list[str] = []

    def noted(name: str) -> Callable[[], None]:
        return lambda: ran.append(name)

    pool.submit(lambda: held.wait(_SECONDS) and None)
    for name in ("a1", "u1", "a2", "u2"):
        pool.submit(noted(name), ahead=name.startswith("a"))
    held.set()
    pool.close()
    assert ran == ["u1", "u2", "a1", "a2"]


def test_what_is_queued_is_done_before_the_end(pool):
    ran: list[int] = []
    for number in range(100):
        pool.submit(lambda number=number: ran.append(number))
    pool.close()
    assert sorted(ran) == list(range(100))
    assert not any(thread.is_alive() for thread in pool._threads)


def test_a_job_that_fails_is_told_of_and_leaves_the_thread(caplog):
    pool = ThreadPool(1)
    done = threading.Event()
    pool.submit(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    pool.submit(done.set)
    assert done.wait(_SECONDS)
    pool.close()
    assert "a job of a thread failed" in caplog.text


def test_a_job_that_comes_after_the_end_is_done_nevertheless():
    """Somebody waits for what it has to say."""
    pool = ThreadPool(2)
    pool.close()
    ran: list[str] = []
    pool.submit(lambda: ran.append("urgent"))
    pool.submit(lambda: ran.append("ahead"), ahead=True)
    assert ran == ["urgent", "ahead"]


def test_a_job_may_end_its_own_pool():
    """The last reference to what owns the pool may go in any thread."""
    pool = ThreadPool(2)
    ended: list[bool] = []
    pool.submit(lambda: None)
    pool.submit(lambda: ended.append(pool.close()))
    wait_until(lambda: pool._threads and not any(each.is_alive() for each in pool._threads))
    assert ended == [True]


def test_jobs_that_come_while_the_pool_ends_are_all_done():
    for _ in range(50):
        pool = ThreadPool(2)
        ran: list[int] = []
        begin = threading.Barrier(2)

        def submit(pool: ThreadPool = pool, ran: list[int] = ran, begin=begin) -> None:
            begin.wait(_SECONDS)
            for number in range(20):
                pool.submit(lambda number=number: ran.append(number))

        thread = threading.Thread(target=submit)
        thread.start()
        begin.wait(_SECONDS)
        pool.close()
        thread.join()
        pool.close()
        assert sorted(ran) == list(range(20))


def test_everything_is_done_once_whoever_helps():
    pool = ThreadPool(3)
    done: list[int] = []
    share(pool, 3, done.append, 1000)
    assert sorted(done) == list(range(1000))
    share(pool, 3, done.append, 0)
    assert len(done) == 1000
    pool.close()


def test_threads_that_are_busy_are_not_waited_for_and_idle_ones_help():
    pool = ThreadPool(2)
    free = threading.Event()
    pool.submit(lambda: free.wait(30))
    both = threading.Barrier(2, timeout=30)
    # Neither goes on before another thread has come.
    share(pool, 2, lambda _number: both.wait() and None, 2)
    free.set()
    pool.close()


def test_a_failure_is_raised_and_ends_the_work():
    pool = ThreadPool(2)
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
