"""Telling the kernel what to drop of its cache and what to put there, from threads of their own.

The kernel waits for the pages of an inode that are being read, so the event loop, which
has to answer those reads, must never do this: both would wait for ever, beyond SIGKILL.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress

import pyfuse3

from zarrfs.fs.coherence.kernel_pages import KernelCache
from zarrfs.fs.loop.answers import Waiter
from zarrfs.views.view import Data

# More pages than these are not given: they would be in memory twice for long.
_MOST_QUEUED = 8
# As many inodes can wait for slow reads of their pages, and others are served meanwhile.
_MOST_THREADS = 32

_log = logging.getLogger(__name__)


class NotificationThread(KernelCache):
    """Runs notifications in threads, those of one inode in order.

    The kernel may be long at one inode, so others do not wait for it, while there are threads.

    Shared state, under ``_changed``: ``_turns``, by inode the notifications that are to be sent, at
    most by one thread, in their order; in ``_ready`` the inodes with any that no thread is at; and
    ``_drops``, the inodes that are to be dropped, which is asked for once however often it is
    wished. A drop that is wished while one is under way is another one.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turns: dict[int, deque[Callable[[], object]]] = {}
        self._drops: set[int] = set()
        self._ready: deque[int] = deque()
        self._pushes = 0
        self._idle = 0
        self._stopped = False
        self._threads: list[threading.Thread] = []
        self._add_thread()

    def drop(self, inode: int) -> None:
        """Asks for ``inode``'s pages and attributes to be dropped soon. Never blocks."""
        with self._changed:
            if not self._stopped and inode not in self._drops:
                self._drops.add(inode)
                self._put(inode, lambda: self._drop(inode))

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        """Gives the kernel pages of a file. Never blocks.

        current : whether the data are what the file holds; asked just before. A drop
            that is asked for after it has become false comes after this.
        """

        def push() -> None:
            with self._changed:
                self._pushes -= 1
            if current():
                # Whatever has the buffer protocol will do.
                pyfuse3.notify_store(inode, offset, data)  # type: ignore[arg-type]

        with self._changed:
            if not self._stopped and self._pushes < _MOST_QUEUED:
                self._pushes += 1
                self._put(inode, push)

    async def settled(self, inodes: Container[int] | None = None) -> None:
        """Returns when the kernel has dropped what it was asked to of ``inodes``; None: of all.

        Event loop only. The kernel may have to wait for pages that are being read, so whatever
        answers those reads must not wait for this.
        """
        waiters = []
        with self._changed:
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
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        give_up = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, give_up - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _put(self, inode: int, item: Callable[[], object]) -> None:
        turns = self._turns.get(inode)
        if turns is None:
            turns = self._turns[inode] = deque()
            self._ready.append(inode)
            if self._idle >= len(self._ready):
                self._changed.notify()
            elif len(self._threads) < _MOST_THREADS:
                with suppress(RuntimeError):  # no more threads: those that there are do it
                    self._add_thread()
        turns.append(item)

    def _add_thread(self) -> None:
        name = f"fuse-notify-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while (inode := self._next()) is not None:
            turns = self._turns[inode]
            # All that is there now: an inode that gets ever more to do must not keep others out.
            for _ in range(len(turns)):
                if not self._stopped:
                    _notify(turns.popleft())
            with self._changed:
                if turns:
                    self._ready.append(inode)
                else:
                    del self._turns[inode]

    def _next(self) -> int | None:
        """The inode that this thread is to be at; None at the end."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._ready or self._stopped)
            self._idle -= 1
            return None if self._stopped else self._ready.popleft()

    def _drop(self, inode: int) -> None:
        with self._changed:
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
