"""Looking for the next request before the event loop is asked."""

import os
import threading
from collections import deque

import pyfuse3
import pytest

from zarrfs.fs.loop.answers import AfterReply
from zarrfs.fs.loop.loop_times import LoopTimes
from zarrfs.fuse import request_wait
from zarrfs.fuse.request_wait import RequestWait, WaitConfig

NAME = "_wait_fuse_readable"

# Long enough that what happens in a test is always "at once".
PATIENT = WaitConfig(patience=10.0, turn=100.0)
# The same for whoever sleeps without the loop.
RESTING = WaitConfig(patience=0.0, turn=0.0, rest=10.0, lone_turn=100.0)


class Connection:
    """A pipe stands in for the kernel, and ``loop`` for pyfuse3's own wait."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self.script: deque[tuple[int, bool]] = deque()
        self.waits = 0

    def send(self, requests: int = 1) -> None:
        os.write(self._writing, b"r" * requests)

    def take(self) -> None:
        assert os.read(self.reading, 1) == b"r"

    async def loop(self) -> bool:
        self.waits += 1
        requests, more = self.script.popleft()
        if requests:
            self.send(requests)
        return more

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


@pytest.fixture
def connection():
    connection = Connection()
    yield connection
    connection.close()


async def test_what_somebody_else_took_is_waited_for_again(connection):
    wait = RequestWait(connection.reading, connection.loop, PATIENT)
    connection.script += [(0, True), (0, True), (1, True)]
    assert await wait()
    connection.take()
    assert connection.waits == 3


async def test_end(connection):
    wait = RequestWait(connection.reading, connection.loop, PATIENT)
    connection.script += [(0, True), (0, False)]
    assert not await wait()


async def test_who_is_alone_sleeps_without_the_loop(connection):
    wait = RequestWait(connection.reading, connection.loop, RESTING, alone=lambda: True)
    connection.script.append((1, True))
    assert await wait()
    connection.take()
    for _ in range(3):
        threading.Timer(0.02, connection.send).start()
        assert await wait()
        connection.take()
    assert connection.waits == 1


@pytest.mark.parametrize(
    ("config", "alone", "script", "requests", "waits"),
    [
        (PATIENT, False, [(3, True)], 3, 1),
        (PATIENT._replace(turn=0.0), False, [(4, True), (0, True), (0, True)], 3, 3),
        (PATIENT._replace(patience=0.0), False, [(2, True), (0, True)], 2, 2),
        (RESTING, False, [(2, True), (0, True)], 2, 2),
        (RESTING._replace(lone_turn=0.0), True, [(2, True), (0, True)], 2, 2),
        (RESTING._replace(rest=0.001), True, [(1, True), (1, True)], 2, 2),
    ],
    ids=[
        *("they come at once", "a turn is over", "they come late"),
        *("who rests is not alone", "the lone turn is over", "nothing comes while it rests"),
    ],
)
async def test_the_loop_waits_where(connection, config, alone, script, requests, waits):
    wait = RequestWait(connection.reading, connection.loop, config, alone=lambda: alone)
    connection.script += script
    for _ in range(requests):
        assert await wait()
        connection.take()
    assert connection.waits == waits


async def test_the_loop_is_held_while_a_request_is_answered_and_not_while_one_is_waited_for(
    connection,
):
    now, looks = [100.0], threading.Event()

    class Times(LoopTimes):
        """Tells when the loop begins to look for a request."""

        def end(self) -> None:
            super().end()
            looks.set()

    times = Times(lambda: now[0])
    wait = RequestWait(
        connection.reading, connection.loop, RESTING, alone=lambda: True, times=times
    )

    def send_later() -> None:
        assert looks.wait(20)
        now[0] += 50.0
        connection.send()

    connection.script.append((1, True))
    assert await wait()
    for seconds in (2.0, 3.0, 1.0):
        connection.take()
        now[0] += seconds
        looks.clear()
        thread = threading.Thread(target=send_later)
        thread.start()
        assert await wait()
        thread.join()
    assert (connection.waits, times.longest, times.long) == (1, 3.0, 3)


def test_pyfuse3_has_what_is_replaced(connection, monkeypatch):
    monkeypatch.setattr(pyfuse3, NAME, None)
    assert request_wait.install(connection.reading, bool)
    assert isinstance(getattr(pyfuse3, NAME), RequestWait)


def test_without_it_nothing_is_replaced(connection, monkeypatch):
    monkeypatch.setattr(pyfuse3, NAME, before := object())
    monkeypatch.setattr(request_wait, "_WAIT", None)
    assert not request_wait.install(connection.reading, bool)
    assert getattr(pyfuse3, NAME) is before


async def test_what_was_put_off_until_the_reply_is_done_before_the_next_request(connection):
    after = AfterReply()
    done: list[str] = []
    assert not after.add(lambda: done.append("too early"))
    after.begin()
    wait = RequestWait(connection.reading, connection.loop, PATIENT, replied=after.run)
    connection.send()
    assert after.add(lambda: done.append("first"))
    assert after.add(lambda: done.append("second"))
    assert done == []
    connection.script.append((1, True))
    assert await wait()
    assert done == ["first", "second"]


def test_what_fails_after_a_reply_ends_nothing(caplog):
    after = AfterReply()
    after.begin()
    done: list[str] = []

    def fail() -> None:
        raise MemoryError("by this test")

    assert after.add(fail)
    assert after.add(lambda: done.append("second"))
    after.run()
    assert done == ["second"]
    assert "by this test" in caplog.text
