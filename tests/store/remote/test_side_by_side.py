"""Requests that are sent side by side, where few threads or none are free to send them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.waiting import wait_until
from zarrfs import threads as zarrfs_threads
from zarrfs.store.remote.ranges.side_by_side import SideBySide
from zarrfs.store.workers import Workers
from zarrfs.threads import ThreadPool

PATHS = ["a", "b", "c"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("read", [SideBySide.all, SideBySide.in_order])
def test_the_thread_of_an_operation_repeats_its_requests_itself(read):
    sent = []

    def send(number: int) -> int:
        sent.append(number)
        if sent.count(number) == 1:
            raise ConnectionError("the server is away")
        return number

    def operation() -> list[object]:
        return list(read(SideBySide(ThreadPool(0), PATHS, send, str)))

    workers = Workers(max_abandoned=1)
    assert workers.run(operation, 5, lambda failure, made: 0.001) == [0, 1, 2]
    assert sorted(sent) == [0, 0, 1, 1, 2, 2]
    workers.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("read", [SideBySide.all, SideBySide.in_order])
@pytest.mark.parametrize("most", [0, 2])
def test_requests_are_sent_by_the_threads_that_the_system_has(read, most, monkeypatch):
    start = threading.Thread.start
    started = []

    def start_some(thread: threading.Thread) -> None:
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    pool = ThreadPool(8)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    for _ in range(3):
        assert list(read(SideBySide(pool, PATHS, PATHS.__getitem__, str))) == PATHS
    assert len(started) == most


@pytest.mark.timeout(60)
def test_threads_without_work_end_and_lose_no_call(monkeypatch):
    monkeypatch.setattr(zarrfs_threads, "IDLE_S", 0.0001)
    before = set(threading.enumerate())
    workers, pool = Workers(max_abandoned=1), ThreadPool(4)

    def operation(number: int) -> list[int]:
        time.sleep(number % 7 / 10_000)
        return SideBySide(pool, PATHS, lambda which: number + which, str).all()

    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda n: workers.run(lambda: operation(n), 5), range(500)))
    assert found == [[n, n + 1, n + 2] for n in range(500)]
    wait_until(lambda: not set(threading.enumerate()) - before)
    assert workers.run(lambda: 1, 5) == 1
    workers.close()


@pytest.mark.timeout(60)
def test_closing_ends_threads_without_work_now_and_others_after_it(monkeypatch):
    monkeypatch.setattr(zarrfs_threads, "IDLE_S", 3600)
    before = set(threading.enumerate())
    workers, over = Workers(max_abandoned=1), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(workers.run, over.wait, 50)
        assert workers.run(lambda: 1, 5) == 1
        workers.close()
        over.set()
        assert waiting.result()
    wait_until(lambda: not set(threading.enumerate()) - before)
