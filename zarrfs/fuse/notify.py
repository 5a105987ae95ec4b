"""Telling the kernel what to drop of its cache and what to put there, from one thread.

The kernel waits for the pages of an inode that are being read, so the event loop, which
has to answer those reads, must never do this: both would wait for ever, beyond SIGKILL.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

import pyfuse3
import trio

from zarrfs.views.view import Data

# More pages than these are not given: they would be in memory twice for long.
_MOST_QUEUED = 8

_log = logging.getLogger(__name__)


class NotificationThread:
    """Runs one notification after the other; the file system's `KernelCache`.

    ``_waiting`` holds what is in the queue, so that an inode is queued once however often
    it is dropped. An inode leaves it before the notification: a drop that comes
    meanwhile is queued again. ``_busy`` is set before that and unset after the notification.
    So no notification is under way if first ``_waiting`` is empty and then ``_busy`` is false.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[int | Callable[[], object] | None] = queue.SimpleQueue()
        self._waiting: set[int] = set()
        self._busy = False
        self._dropping = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fuse-notify", daemon=True)
        self._thread.start()

    def drop(self, inode: int) -> None:
        """Asks for ``inode``'s pages and attributes to be dropped soon. Never blocks."""
        if self._stopped.is_set() or inode in self._waiting:
            return
        self._waiting.add(inode)
        self._queue.put(inode)

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        """Gives the kernel pages of a file. Never blocks.

        current : whether the data are what the file holds; asked just before. A drop
            that is asked for after it has become false comes after this.
        """

        def push() -> None:
            if current():
                # Whatever has the buffer protocol will do.
                pyfuse3.notify_store(inode, offset, data)  # type: ignore[arg-type]

        if not self._stopped.is_set() and self._queue.qsize() < _MOST_QUEUED:
            self._queue.put(push)

    def dropping(self, inode: int) -> bool:
        """Whether ``inode`` is in the queue or being dropped now."""
        # In this order: the thread takes it out of the one when the other says so.
        return inode in self._waiting or self._dropping == inode

    async def settled(self) -> None:
        """Returns when the kernel has dropped all that it was asked to. Event loop only.

        The kernel may have to wait for pages that are being read, so whatever answers
        those reads must not wait for this.
        """
        if self._stopped.is_set() or (not self._waiting and not self._busy):
            return
        over = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def tell() -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(over.set)

        self._queue.put(tell)
        await over.wait()

    def stop(self, timeout: float) -> bool:
        """Forgets what is queued and ends the thread.

        Returns whether it has ended within ``timeout`` seconds. If not, the kernel is
        still busy with the last notification; a broken connection makes it return.
        """
        self._stopped.set()
        self._queue.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None and not self._stopped.is_set():
            self._busy = True
            try:
                if isinstance(item, int):
                    self._dropping = item
                    self._waiting.discard(item)
                    pyfuse3.invalidate_inode(item)
                else:
                    item()
            except FileNotFoundError:
                pass  # the kernel has nothing of it
            except OSError as error:
                _log.info("the kernel refused a notification: %s", error)
            except Exception:  # noqa: BLE001 - the thread must go on
                _log.exception("notification failed unexpectedly")
            finally:
                self._dropping = -1
                self._busy = False
