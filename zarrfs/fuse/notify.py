"""Telling the kernel to drop what it has cached, from one thread.

The kernel waits for the pages of an inode that are being read, so the event loop, which
has to answer those reads, must never do this: both would wait for ever, beyond SIGKILL.
"""

from __future__ import annotations

import logging
import queue
import threading

import pyfuse3

_log = logging.getLogger(__name__)


class NotificationThread:
    """Runs one notification after the other; the file system's `KernelCache`.

    ``_waiting`` holds what is in the queue, so that an inode is queued once however often
    it is dropped. An inode leaves it before the kernel is told: a drop that comes
    meanwhile is queued again.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._waiting: set[int] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fuse-notify", daemon=True)
        self._thread.start()

    def drop(self, inode: int) -> None:
        """Asks for ``inode``'s pages and attributes to be dropped soon. Never blocks."""
        if self._stopped.is_set() or inode in self._waiting:
            return
        self._waiting.add(inode)
        self._queue.put(inode)

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
        while (inode := self._queue.get()) is not None and not self._stopped.is_set():
            self._waiting.discard(inode)
            try:
                pyfuse3.invalidate_inode(inode)
            except FileNotFoundError:
                pass  # the kernel has nothing of it
            except OSError as error:
                _log.info("the kernel did not drop inode %d: %s", inode, error)
            except Exception:  # noqa: BLE001 - the thread must go on
                _log.exception("notification failed unexpectedly")
