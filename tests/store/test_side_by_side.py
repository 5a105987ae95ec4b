"""Requests that are sent side by side, where few threads or none are free to send them."""

import threading

import pytest

from zarrfs.store.remote.ranges.side_by_side import Crew, SideBySide
from zarrfs.store.workers import Workers

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
        return list(read(SideBySide(Crew(0), PATHS, send, str)))

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

    crew = Crew(8)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    for _ in range(3):
        assert list(read(SideBySide(crew, PATHS, PATHS.__getitem__, str))) == PATHS
    assert len(started) == most
