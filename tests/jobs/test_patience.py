"""How long a worker that does not answer is waited for: looks are counted, and no test waits."""

import socket
import subprocess
import sys

import pytest

from zarrfs.jobs import channel
from zarrfs.jobs.channel import Channel, WorkerPatience

# Works a little for each byte, and waits for the next.
WORKS = """
import os, time
while os.read(0, 1):
    end = time.process_time() + 0.001
    while time.process_time() < end:
        pass
    os.write(1, b"x")
"""


@pytest.fixture
def used(monkeypatch):
    """The processor time of the worker in a list, to be set."""
    now = [0]
    monkeypatch.setattr(channel.time, "clock_gettime_ns", lambda clock: now[0])
    return now


def looks(waiting: WorkerPatience, most: int = 100) -> int:
    """How many more looks it lasts."""
    return next((look for look in range(most) if not waiting.lasts()), most)


def test_it_lasts_while_the_worker_runs_and_four_looks_longer(used):
    waiting = WorkerPatience(1, 0.8)
    assert waiting.look_after == 0.2
    waiting.begin()
    for _ in range(100):
        used[0] += 1
        assert waiting.lasts()
    assert looks(waiting) == 2
    assert not waiting.lasts()
    waiting.begin()
    assert looks(waiting) == 3


def test_a_worker_that_is_gone_is_not_waited_for():
    worker = subprocess.Popen(["true"])
    worker.wait()
    waiting = WorkerPatience(worker.pid, 0.8)
    waiting.begin()
    assert not waiting.lasts()


def test_the_clock_is_that_of_the_worker():
    with subprocess.Popen(
        [sys.executable, "-c", WORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as worker:
        waiting = WorkerPatience(worker.pid, 0.8)
        waiting.begin()
        for _ in range(20):
            worker.stdin.write(b"x")
            assert worker.stdout.read(1) == b"x"
            assert waiting.lasts()
        # It may still be on its way to the next byte, but not for ever.
        assert looks(waiting) < 100
        worker.stdin.close()


class Looks:
    """A patience for as many looks, after the last of which it does something."""

    look_after = 0.001

    def __init__(self, most, then=lambda: None):
        self.left = most
        self.then = then

    def begin(self):
        pass

    def lasts(self):
        self.left -= 1
        if self.left == 0:
            self.then()
        return self.left >= 0


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_an_answer_is_waited_for_while_the_patience_lasts(ends):
    ours, theirs = ends
    channel = Channel(ours, Looks(50, lambda: Channel(theirs).send(b"done")))
    assert channel.receive() == b"done"
    with pytest.raises(TimeoutError):
        Channel(ours, Looks(3)).receive()


def test_a_job_that_is_not_taken_is_given_up(ends):
    """It does not fit the socket's buffer, and is not sent for ever either."""
    waiting = Looks(3)
    with pytest.raises(TimeoutError):
        Channel(ends[0], waiting).send(bytes(8 << 20))
    assert waiting.left == -1
