"""Waiting for threads with and without the loop."""

import gc
import os
import threading
import time

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.waiting import wait_until
from zarrfs.fs.loop import answers
from zarrfs.fs.loop.answers import Answers

LONG = 60.0


class Asked:
    """Work that answers when it is told to, and whether the loop ran meanwhile."""

    def __init__(self) -> None:
        self.answer = None
        self.begun = threading.Event()

    def __call__(self, answer):
        self.answer = answer
        self.begun.set()

    def answer_soon(self, value, turned):
        """Once the loop has had time to turn, or has turned if that is a test of it."""

        def run():
            assert self.begun.wait(30)
            if turned is None:
                time.sleep(0.05)
            else:
                wait_until(turned)
            self.answer(value)

        thread = threading.Thread(target=run)
        thread.start()
        return thread


@pytest.fixture
def requests():
    """A pipe stands in for the kernel."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def waits(requests, monkeypatch):
    monkeypatch.setattr(answers, "_PATIENCE", LONG)
    waits = Answers()
    waits.watch(requests[0])
    return waits


async def loop_turns(turns, until):
    while not until.is_set():
        turns.append(None)
        await trio.sleep(0.001)


async def wait_beside(waits, asked, value, *, turns_first=False):
    """The answer, and how often the loop did something else until it came.

    turns_first : whether the answer comes only after the loop has done something else.
    """
    turns, over = [], trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop_turns, turns, over)
        await trio.sleep(0.005)
        before = len(turns)
        thread = asked.answer_soon(value, (lambda: len(turns) > before) if turns_first else None)
        got = await waits.wait(asked)
        after = len(turns)
        over.set()
    thread.join()
    return got, after - before


async def test_the_only_one_that_waits_does_so_without_the_loop(waits):
    assert await wait_beside(waits, Asked(), "answer") == ("answer", 0)
    assert waits.idle()


async def test_gives_way_to_a_request(waits, requests):
    os.write(requests[1], b"r")
    got, turns = await wait_beside(waits, Asked(), "answer", turns_first=True)
    assert got == "answer"
    assert turns > 0


async def test_without_anybody_to_give_way_to_the_loop_goes_on():
    got, turns = await wait_beside(Answers(), Asked(), "answer", turns_first=True)
    assert got == "answer"
    assert turns > 0


async def test_an_answer_that_takes_long_comes_through_the_loop(waits, monkeypatch):
    monkeypatch.setattr(answers, "_PATIENCE", 0.01)
    got, turns = await wait_beside(waits, Asked(), "answer", turns_first=True)
    assert got == "answer"
    assert turns > 0
    # And so does the next one, from the beginning; then they are quick again.
    monkeypatch.setattr(answers, "_PATIENCE", LONG)
    assert (await wait_beside(waits, Asked(), 2, turns_first=True))[1] > 0
    assert await wait_beside(waits, Asked(), 3) == (3, 0)


async def test_two_wait_through_the_loop(waits, requests):
    first, second = Asked(), Asked()
    got = []

    async def wait(asked):
        got.append(await waits.wait(asked))

    async with trio.open_nursery() as nursery:
        os.write(requests[1], b"r")  # lets the first one give way
        nursery.start_soon(wait, first)
        await wait_all_tasks_blocked()
        os.read(requests[0], 1)
        nursery.start_soon(wait, second)
        await wait_all_tasks_blocked()
        assert not waits.idle()
        first.answer(1)
        await wait_all_tasks_blocked()
        assert got == [1]
        second.answer(2)
    assert got == [1, 2]
    assert waits.idle()


async def test_an_answer_at_once(waits):
    assert await waits.wait(lambda answer: answer("now")) == "now"
    # The bell that it rang disturbs nobody.
    assert await wait_beside(waits, Asked(), "later") == ("later", 0)


async def test_work_that_cannot_begin(waits):
    def ask(answer):
        raise RuntimeError("no thread")

    with pytest.raises(RuntimeError, match="no thread"):
        await waits.wait(ask)
    assert waits.idle()


async def test_who_is_cancelled_does_not_wait(waits, requests):
    os.write(requests[1], b"r")
    asked = Asked()
    with trio.move_on_after(0.02) as scope:
        await waits.wait(asked)
    assert scope.cancelled_caught
    assert waits.idle()
    asked.answer("too late")
    os.read(requests[0], 1)
    waits._quick = True
    assert await wait_beside(waits, Asked(), "in time") == ("in time", 0)


def test_the_bell_lasts_as_long_as_somebody_may_ring_it(requests):
    """Its number would be that of another file."""
    asked = Asked()
    os.write(requests[1], b"r")

    async def main():
        waits = Answers()
        waits.watch(requests[0])
        with trio.move_on_after(0.01):
            await waits.wait(asked)
        return waits._bell

    bell = trio.run(main)
    gc.collect()
    assert os.fstat(bell)
    asked.answer = None
    gc.collect()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(bell)


def test_an_answer_after_the_loop_has_ended(waits, requests):
    asked = Asked()
    os.write(requests[1], b"r")

    async def main():
        with trio.move_on_after(0.01):
            await waits.wait(asked)

    trio.run(main)
    asked.answer("nobody hears")
