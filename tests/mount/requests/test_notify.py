"""The threads that talk to the kernel on their own account."""

import threading

import pyfuse3
import pytest
import trio

from tests.waiting import wait_until
from zarrfs.fuse.notify import NotificationThread

SECONDS = 30.0


class Kernel:
    """Stands in for the kernel: takes notifications, of an inode that is held when it is let."""

    def __init__(self) -> None:
        self.dropped: list[int] = []
        self.stored: list[tuple[int, int, bytes]] = []
        self.busy = threading.Semaphore(0)
        self._held: dict[int, threading.Event] = {}

    def hold(self, *inodes: int) -> None:
        """Have notifications of these wait, as for pages that are being read."""
        self._held |= {inode: threading.Event() for inode in inodes}

    def let(self, inode: int) -> None:
        self._held[inode].set()

    def wait_until_busy(self) -> None:
        """Returns when one more drop has begun."""
        assert self.busy.acquire(timeout=SECONDS)

    def invalidate_inode(self, inode: int) -> None:
        self.busy.release()
        self._wait_for(inode)
        self.dropped.append(inode)
        if inode == 404:
            raise FileNotFoundError
        if inode == 5:
            raise OSError(5, "no")
        if inode == 0:
            raise ZeroDivisionError

    def notify_store(self, inode: int, offset: int, data: bytes) -> None:
        self._wait_for(inode)
        self.stored.append((inode, offset, bytes(data)))

    def _wait_for(self, inode: int) -> None:
        assert inode not in self._held or self._held[inode].wait(SECONDS)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.dropped) >= count, SECONDS)
        assert len(self.dropped) == count


@pytest.fixture
def kernel(monkeypatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setattr(pyfuse3, "invalidate_inode", kernel.invalidate_inode)
    monkeypatch.setattr(pyfuse3, "notify_store", kernel.notify_store)
    return kernel


@pytest.fixture
def threads(kernel):
    """They end with each test, before the kernel does."""
    threads = NotificationThread()
    yield threads
    assert threads.stop(SECONDS)


def test_errors_end_nothing(threads, kernel):
    for inode in (3, 404, 5, 0, 7):
        threads.drop(inode)
        kernel.wait_until_busy()
    kernel.wait_for(5)
    threads.drop(5)
    kernel.wait_for(6)
    assert sorted(kernel.dropped) == [0, 3, 5, 5, 7, 404]


def test_an_inode_waits_once(threads, kernel):
    kernel.hold(1)
    threads.drop(1)
    kernel.wait_until_busy()
    for _ in range(100):
        threads.drop(1)  # once more, because the first has begun
    kernel.let(1)
    kernel.wait_for(2)
    assert kernel.dropped == [1, 1]


def test_inodes_do_not_wait_for_each_other(threads, kernel):
    held = range(1, 32)
    kernel.hold(*held)
    for inode in held:
        threads.drop(inode)
        kernel.wait_until_busy()
    for inode in range(100, 200):
        threads.drop(inode)
    kernel.wait_for(100)
    assert set(kernel.dropped) == set(range(100, 200))
    for inode in held:
        kernel.let(inode)
    kernel.wait_for(131)


def test_there_are_so_many_threads_and_no_more(threads, kernel):
    kernel.hold(*range(100))
    for inode in range(100):
        threads.drop(inode)
    for _ in range(32):
        kernel.wait_until_busy()
    assert len(notifying()) == 32
    assert not kernel.dropped
    for inode in range(100):
        kernel.let(inode)
    kernel.wait_for(100)
    assert threads.stop(SECONDS)
    assert not notifying()


def notifying() -> list[threading.Thread]:
    """Not those of trio, which may end at any time."""
    return [each for each in threading.enumerate() if each.name.startswith("fuse-notify")]


def test_stop_does_not_wait_for_a_kernel_that_does_not_return(threads, kernel):
    kernel.hold(1, 2)
    threads.drop(1)
    threads.drop(2)
    for _ in range(2):
        kernel.wait_until_busy()
    threads.drop(1)
    assert not threads.stop(0.1)
    threads.drop(3)
    kernel.let(1)
    kernel.let(2)
    assert threads.stop(SECONDS)
    assert sorted(kernel.dropped) == [1, 2]


async def test_settled_waits_for_what_was_dropped(threads, kernel):
    await threads.settled()  # nothing to wait for
    kernel.hold(1)
    threads.drop(1)
    threads.drop(2)
    for inodes in (None, (1,), {1, 2}, range(9)):
        with trio.move_on_after(0.1) as scope:
            await threads.settled(inodes)
        assert scope.cancelled_caught
    kernel.let(1)
    await threads.settled()
    assert sorted(kernel.dropped) == [1, 2]
    assert threads.stop(SECONDS)
    await threads.settled()


async def test_settled_waits_for_no_other_inode(threads, kernel):
    kernel.hold(1, 2)
    threads.drop(1)
    threads.drop(2)
    kernel.let(2)
    with trio.fail_after(SECONDS):
        await threads.settled(range(2, 5))
    assert kernel.dropped == [2]
    kernel.let(1)
    await threads.settled()


async def test_settled_waits_for_what_is_under_way(threads, kernel):
    kernel.hold(404)
    threads.drop(404)
    await trio.to_thread.run_sync(kernel.wait_until_busy)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.settled, (404,))
        await trio.sleep(0.05)
        assert kernel.dropped == []
        kernel.let(404)
    assert kernel.dropped == [404]


async def test_what_concerns_one_inode_happens_in_its_order(threads, kernel):
    happened = []

    def now(name: str) -> bool:
        happened.append((name, len(kernel.dropped)))
        return True

    kernel.hold(1)
    threads.drop(1)
    kernel.wait_until_busy()
    threads.store(1, 0, b"a", lambda: now("a"))
    threads.drop(1)
    threads.store(1, 0, b"b", lambda: now("b"))
    kernel.let(1)
    await threads.settled((1,))
    assert happened == [("a", 1), ("b", 2)]


async def test_pages_are_given_while_they_are_current(threads, kernel):
    current = True
    kernel.hold(3)
    threads.drop(3)
    threads.store(3, 8, b"new", lambda: True)
    threads.store(3, 8, b"old", lambda: current)
    for number in range(20):
        # There is room for few: pages that wait are in memory twice.
        threads.store(3, number, b"", lambda: True)
    current = False
    kernel.let(3)
    await threads.settled()
    assert kernel.stored == [(3, 8, b"new"), *((3, number, b"") for number in range(6))]
    assert threads.stop(SECONDS)
