"""Telling the kernel what to drop of its cache and what to put there, from threads of their own.

The kernel waits for the pages of an inode that are being read, so the event loop, which
has to answer those reads, must never do this: both would wait for ever, beyond SIGKILL.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Container
from functools import partial
from threading import Lock

import pyfuse3

from zarrfs.fs.coherence.kernel_pages import KernelCache
from zarrfs.fs.loop.answers import Waiter
from zarrfs.threads import ThreadPool
from zarrfs.views.view import Data

# More pages than these are not given: they would be in memory twice for long.
_MOST_QUEUED = 8
# As many inodes can wait for slow reads of their pages, and others are served meanwhile.
_MOST_THREADS = 32

_log = logging.getLogger(__name__)


class NotificationThread(KernelCache):
    """Runs notifications in threads, those of one inode in order.

    The kernel may be long at one inode, so others do not wait for it, while there are threads.

    Shared state, under ``_lock``: ``_turns``, by inode the notifications that are to be sent, at
    most by one thread, in their order; and ``_drops``, the inodes that are to be dropped, which is
    asked for once however often it is wished. A drop that is wished while one is under way is
    another one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._turns: dict[int, deque[Callable[[], object]]] = {}
        self._drops: set[int] = set()
        self._pushes = 0
        self._stopped = False
        self._threads = ThreadPool(_MOST_THREADS, "fuse-notify", keeps=True)
        # One thread is there whenever the system has no more.
        self._threads.submit(lambda: None)

    def drop(self, inode: int) -> None:
        """Asks for ``inode``'s pages and attributes to be dropped soon. Never blocks."""
        with self._lock:
            if not self._stopped and inode not in self._drops:
                self._drops.add(inode)
                self._put(inode, lambda: self._drop(inode))

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        """Gives the kernel pages of a file. Never blocks.

        current : whether the data are what the file holds; asked just before. A drop
            that is asked for after it has become false comes after this.
        """

        def push() -> None:
            with self._lock:
                self._pushes -= 1
            if current():
                # Whatever has the buffer protocol will do.
                pyfuse3.notify_store(inode, offset, data)  # type: ignore[arg-type]

        with self._lock:
            if not self._stopped and self._pushes < _MOST_QUEUED:
                self._pushes += 1
                self._put(inode, push)

    async def settled(self, inodes: Container[int] | None = None) -> None:
        """Returns when the kernel has dropped what it was asked to of ``inodes``; None: of all.

        Event loop only. The kernel may have to wait for pages that are being read, so whatever
        answers those reads must not wait for this.
        """
        waiters = []
        with self._lock:
            for inode in () if self._stopped else self._turns:
                if inodes is None or inode in inodes:
                    waiters.append(Waiter())
                    self._put(inode, waiters[-1].wake)
        for waiter in waiters:
            await waiter.ready.wait()

    def stop(self, timeout: float) -> bool:
        """Forgets what is queued and ends the threads.

        Returns whether they have ended within ``timeout`` seconds. If not, the kernel is
        still busy with a notification; a broken connection makes it return.
        """
        with self._lock:
            self._stopped = True
        return self._threads.close(timeout)

    def _put(self, inode: int, item: Callable[[], object]) -> None:
        """With the lock held."""
        if (turns := self._turns.get(inode)) is not None:
            turns.append(item)
        else:
            turns = self._turns[inode] = deque([item])
            self._threads.submit(partial(self._send, inode, turns))

    def _send(self, inode: int, turns: deque[Callable[[], object]]) -> None:
        """Send what there is now: an inode that gets ever more to do must not keep others out."""
        for _ in range(len(turns)):
            if not self._stopped:
                _notify(turns.popleft())
        with self._lock:
            if turns and not self._stopped:
                self._threads.submit(partial(self._send, inode, turns))
            else:
                del self._turns[inode]

    def _drop(self, inode: int) -> None:
        with self._lock:
            self._drops.remove(inode)
        pyfuse3.invalidate_inode(inode)


def _notify(item: Callable[[], object]) -> None:
    try:
        item()
    except FileNotFoundError:
        pass  # the kernel has nothing of it
    except OSError as error:
        _log.info("the kernel refused a notification: %s", error)
    except Exception:  # noqa: BLE001 - the thread must go on
        _log.exception("notification failed unexpectedly")
