"""Who performs a job: a worker process, or a thread where none can."""

import json
import logging
import os
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from tests.jobs.conftest import MIB, Place
from tests.jobs.test_jobs import block_of
from zarrfs.errors import FormatError
from zarrfs.jobs import worker_pool
from zarrfs.jobs.channel import Channel
from zarrfs.jobs.executor import Processes
from zarrfs.jobs.job import NoAnswer, Unable
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget

TIMES = [0, 0, 0, 0, 0.0]
GOOD = json.dumps([None, "done", TIMES]).encode()


class FakePool:
    """Performs jobs by a worker of this process, or fails."""

    def __init__(self, place: Place) -> None:
        self.memory = place.memory
        self.place = place
        self.asked = 0
        self.fails: Exception | None = None

    def ask(self, job, accept):
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return accept(json.loads(json.dumps(self.place.worker.perform(job))))


@pytest.fixture
def pool(place) -> FakePool:
    place.fill()
    return FakePool(place)


@pytest.fixture
def processes(place, pool) -> Processes:
    return Processes(pool, Arena(MemoryBudget(MIB), shared=place.memory))


def read(place: Place, processes: Processes, *, shared: bool = True) -> None:
    where, block = block_of(place, 0, 340, shared=shared)
    result = processes.run(ReadBlock(place.array, block))
    assert result.error is None
    assert np.array_equal(block.target, place.values[where])


def test_a_process_performs_a_job(place, pool, processes):
    read(place, processes)
    assert pool.asked == 1


def test_memory_that_is_not_shared_is_filled_by_a_thread(place, pool, processes):
    read(place, processes, shared=False)
    assert pool.asked == 0


def test_a_process_that_dies_is_not_held_against_the_next(place, pool, processes):
    pool.fails = NoAnswer("has died")
    read(place, processes)
    pool.fails = None
    read(place, processes)
    assert pool.asked == 2


def test_an_array_that_processes_cannot_read_is_left_to_threads(place, pool, processes, caplog):
    pool.fails = Unable("the metadata have changed")
    with caplog.at_level(logging.INFO):
        read(place, processes)
        read(place, processes)
    assert pool.asked == 1
    assert caplog.messages == ["the array is left to threads: the metadata have changed"]


def test_a_worker_that_finds_other_metadata_says_so(place):
    place.store.objects["zarr.json"] = place.store.objects["zarr.json"].replace(b"7", b"8")
    _, block = block_of(place, 0, 340)
    with pytest.raises(FormatError, match="the metadata have changed"):
        place.through(ReadBlock(place.array, block))


def test_a_worker_does_not_read_the_metadata_with_which_it_was_forked(place):
    place.fill()
    where, block = block_of(place, 0, 340)
    for root, reads in ((place.array.metadata, 0), (None, 1), (other_metadata(place), 1)):
        place.worker = place.new_worker(root)
        block.target[...] = -1
        place.store.requests.clear()
        place.through(ReadBlock(place.array, block))
        assert np.array_equal(block.target, place.values[where])
        assert sum(one.key == "zarr.json" for one in place.store.requests) == reads


def other_metadata(place):
    layout = place.array.layout._replace(fill=b"\x08\x00")
    return place.array.metadata._replace(layout=layout)


# --- the pool -------------------------------------------------------------------------


class FakeNursery:
    """Its workers are processes that sleep, for which threads reply what ``replies`` says."""

    def __init__(self, replies: list[bytes | None]) -> None:
        self.replies = replies
        self.processes: list[subprocess.Popen] = []
        self.fails = False

    def spawn(self):
        if self.fails:
            raise OSError("the process that forks workers has ended")
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(["sleep", "60"])
        self.processes.append(process)
        threading.Thread(target=self._reply, args=(Channel(theirs),), daemon=True).start()
        return process.pid, ours

    def _reply(self, channel: Channel) -> None:
        while channel.receive() is not None:
            reply = self.replies.pop(0)
            if reply is None:
                break
            channel.send(reply)
        channel.close()

    @property
    def killed(self) -> int:
        return sum(not os.path.exists(f"/proc/{each.pid}") for each in self.processes)


@pytest.fixture
def make_pool(place):
    pools = []

    def make(*replies: bytes | None, count: int = 1) -> tuple[WorkerPool, FakeNursery]:
        nursery = FakeNursery(list(replies))
        config = SimpleNamespace(memory=place.memory, shard_indexes=0)
        pools.append((WorkerPool(count, nursery, config), nursery))
        return pools[-1]

    yield make
    for pool, nursery in pools:
        for process in nursery.processes:
            process.kill()
            process.wait()
        pool.close()


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"",
        b"\xff",
        b"no json",
        b"[" * 100_000,
        b"[]",
        b"{}",
        json.dumps([None, "done", TIMES[1:]]).encode(),
        json.dumps([None, "done", [0, 0, 0, 0, "1"]]).encode(),
        json.dumps([None, "done", [0, 0, 0, 0, float("inf")]]).encode(),
        json.dumps([None, "done", [0, 0, -1, 0, 0.0]]).encode(),
        json.dumps([7, "done", TIMES]).encode(),
        json.dumps([None, "something else", TIMES]).encode(),
    ],
)
def test_a_worker_that_says_nonsense_is_killed_and_replaced(make_pool, reply):
    pool, nursery = make_pool(reply, GOOD)

    def accept(answer):
        if answer != "done":
            raise worker_pool.BadAnswer("is not done")
        return answer

    with pytest.raises(NoAnswer):
        pool.ask(b"job", accept)
    assert (len(nursery.processes), nursery.killed) == (2, 1)
    assert pool.ask(b"job", accept) == "done"
    assert len(nursery.processes) == 2
    assert pool.store_times.requests == 0


def test_what_a_worker_was_asked_of_the_store_is_counted(make_pool):
    pool, _ = make_pool(json.dumps([None, "done", [1, 2, 3, 4, 0.5]]).encode())
    assert pool.ask(b"job", str) == "done"
    times = pool.store_times
    assert (times.requests, times.failures) == (1, 2)
    assert (times.read_bytes, times.written_bytes, times.seconds) == (3, 4, 0.5)


def test_a_worker_that_is_unable_lives_on(make_pool):
    pool, nursery = make_pool(json.dumps(["why", None, TIMES]).encode(), GOOD)
    with pytest.raises(Unable, match="why"):
        pool.ask(b"job", str)
    assert pool.ask(b"job", str) == "done"
    assert nursery.killed == 0


def test_a_failure_to_use_an_answer_does_not_lose_the_worker(make_pool):
    pool, nursery = make_pool(GOOD, GOOD)
    with pytest.raises(ZeroDivisionError):
        pool.ask(b"job", lambda _: 1 / 0)
    assert pool.ask(b"job", str) == "done"
    assert nursery.killed == 0


def test_dead_workers_are_replaced_at_a_bounded_rate(make_pool, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(worker_pool.time, "monotonic", lambda: now[0])
    pool, nursery = make_pool(*[None] * 50)

    def lose() -> int:
        """How many workers there ever were, once nobody replaces the dead."""
        for _ in range(8):
            with pytest.raises(NoAnswer):
                pool.ask(b"job", str)
        return len(nursery.processes)

    assert lose() == 1 + 4
    now[0] += 9.0
    assert lose() == 1 + 4
    now[0] += 2.0
    assert lose() == 1 + 4 + 1
    # However long there was peace, not more than at first.
    now[0] += 1000.0
    assert lose() == 1 + 4 + 1 + 4


def test_without_the_nursery_there_are_the_workers_that_are_left(make_pool):
    pool, nursery = make_pool(None, GOOD, count=2)
    nursery.fails = True
    with pytest.raises(NoAnswer):
        pool.ask(b"job", str)
    assert pool.ask(b"job", str) == "done"
    assert (len(nursery.processes), nursery.killed) == (2, 1)


def test_a_thread_left_in_a_job_at_the_end_gets_no_answer(make_pool, caplog):
    """And nobody is told that a worker has died, which was to end."""
    begun, ends = threading.Event(), threading.Event()

    class Replies(list):
        def pop(self, _number):
            begun.set()
            ends.wait(30)

    pool, nursery = make_pool()
    nursery.replies = Replies()
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(pool.ask, b"job", str)
        assert begun.wait(30)
        for process in nursery.processes:
            process.kill()
        pool.close()
        with pytest.raises(NoAnswer):
            answer.result(10)
        ends.set()
    with pytest.raises(NoAnswer):
        pool.ask(b"job", str)
    assert not caplog.records
    assert len(nursery.processes) == 1
