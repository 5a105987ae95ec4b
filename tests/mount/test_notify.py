"""The one thread that talks to the kernel on its own account."""

from __future__ import annotations

import threading
import time

import pyfuse3
import pytest
import trio

from zarrfs.fuse.notify import NotificationThread


class Kernel:
    """Stands in for the kernel: takes notifications one by one, when it is let."""

    def __init__(self) -> None:
        self.dropped: list[int] = []
        self.stored: list[tuple[int, int, bytes]] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.busy = threading.Event()

    def invalidate_inode(self, inode: int) -> None:
        self.busy.set()
        assert self.go_on.wait(10)
        self.dropped.append(inode)
        if inode == 404:
            raise FileNotFoundError
        if inode == 5:
            raise OSError(5, "no")
        if inode == 0:
            raise ZeroDivisionError

    def notify_store(self, inode: int, offset: int, data: bytes) -> None:
        self.stored.append((inode, offset, bytes(data)))

    def wait_for(self, count: int) -> None:
        give_up = time.monotonic() + 5
        while len(self.dropped) < count and time.monotonic() < give_up:
            time.sleep(0.005)
        assert len(self.dropped) == count


@pytest.fixture
def kernel(monkeypatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setattr(pyfuse3, "invalidate_inode", kernel.invalidate_inode)
    monkeypatch.setattr(pyfuse3, "notify_store", kernel.notify_store)
    return kernel


def test_order_and_errors(kernel):
    thread = NotificationThread()
    for inode in (3, 404, 5, 0, 7):
        thread.drop(inode)
    kernel.wait_for(5)
    assert kernel.dropped == [3, 404, 5, 0, 7]
    assert thread.stop(5)


def test_an_inode_waits_once(kernel):
    thread = NotificationThread()
    kernel.go_on.clear()
    thread.drop(1)
    assert kernel.busy.wait(5)
    for _ in range(100):
        thread.drop(1)  # once more, because the first has begun
        thread.drop(2)
    kernel.go_on.set()
    kernel.wait_for(3)
    assert kernel.dropped == [1, 1, 2]
    assert thread.stop(5)


def test_stop_does_not_wait_for_a_kernel_that_does_not_return(kernel):
    thread = NotificationThread()
    kernel.go_on.clear()
    thread.drop(1)
    thread.drop(2)
    assert kernel.busy.wait(5)
    assert not thread.stop(0.1)
    thread.drop(3)
    kernel.go_on.set()
    assert thread.stop(5)
    assert kernel.dropped == [1]


async def test_settled_waits_for_what_was_dropped(kernel):
    thread = NotificationThread()
    await thread.settled()  # nothing to wait for
    kernel.go_on.clear()
    thread.drop(1)
    thread.drop(2)
    with trio.move_on_after(0.1) as scope:
        await thread.settled()
    assert scope.cancelled_caught
    kernel.go_on.set()
    await thread.settled()
    assert kernel.dropped == [1, 2]
    assert thread.stop(5)
    await thread.settled()


async def test_settled_waits_for_what_is_under_way(kernel):
    thread = NotificationThread()
    kernel.go_on.clear()
    thread.drop(404)
    await trio.to_thread.run_sync(kernel.busy.wait)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(thread.settled)
        await trio.sleep(0.05)
        assert kernel.dropped == []
        kernel.go_on.set()
    assert kernel.dropped == [404]
    assert thread.stop(5)


def test_pages_are_given_while_they_are_current(kernel):
    thread = NotificationThread()
    current = True
    kernel.go_on.clear()
    thread.drop(3)
    thread.store(4, 8, b"new", lambda: True)
    thread.store(4, 8, b"old", lambda: current)
    for number in range(20):
        # There is room for few: pages that wait are in memory twice.
        thread.store(5, number, b"", lambda: True)
    current = False
    thread.drop(6)
    kernel.go_on.set()
    kernel.wait_for(2)
    assert kernel.stored[0] == (4, 8, b"new")
    assert len(kernel.stored) < 10
    assert {inode for inode, _, _ in kernel.stored} == {4, 5}
    assert thread.stop(5)
