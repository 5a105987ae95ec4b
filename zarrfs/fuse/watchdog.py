"""A thread that frees the mount when the event loop no longer answers.

A program that uses a FUSE mount whose daemon hangs cannot be killed. So if the event loop has not
beaten for too long, or the daemon does not end in time, the watchdog breaks the connection to the
kernel, removes the mount and ends the process.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from zarrfs.errors import MountError
from zarrfs.fuse.connection import Connection
from zarrfs.fuse.unmount import unmount

_log = logging.getLogger(__name__)

EXIT_STATUS = 1


class WatchdogConfig(NamedTuple):
    """When to give up.

    stall_seconds : time without a beat of the event loop that counts as a stall. Default 60.
    rescue_seconds : the longest that the function given to `rescue_with` may take. Default 60.
    ticks : looks in ``stall_seconds``. The watchdog counts looks without a beat, not time: a
        process that was stopped, or a machine that slept, has not stalled. Default 30.
    """

    stall_seconds: float = 60.0
    ticks: int = 30
    rescue_seconds: float = 60.0


class Watchdog:
    """Watches from `start` to `stop`.

    dump : returns the stacks of all threads, for the log.
    flush : writes the rest of the log, within a bounded time.
    """

    def __init__(
        self, config: WatchdogConfig, *, dump: Callable[[], str], flush: Callable[[], None]
    ) -> None:
        self._connection: Connection | None = None
        self._config = config
        self._dump = dump
        self._flush = flush
        self._beats = 0
        self._end_by: float | None = None
        self._rescue: Callable[[], None] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    @property
    def interval(self) -> float:
        """Seconds between two looks; beat more often than that."""
        return self._config.stall_seconds / self._config.ticks

    def rescue_with(self, rescue: Callable[[], None]) -> None:
        """Call ``rescue`` before the process is ended; it must not need the event loop."""
        self._rescue = rescue

    def start(self, connection: Connection) -> None:
        self._connection = connection
        self._thread.start()

    def beat(self) -> None:
        """The event loop runs."""
        self._beats += 1

    def expect_end(self, seconds: float) -> None:
        """From now on beats do not count: the caller has to call `stop` within ``seconds``."""
        if self._end_by is None:
            self._end_by = time.monotonic() + seconds

    def postpone_end(self, seconds: float) -> None:
        """The end makes progress: from now on it has ``seconds`` more."""
        self._end_by = time.monotonic() + seconds

    def stop(self) -> None:
        """End the thread; does nothing if it was never started."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        seen, missed = -1, 0
        while not self._stopped.wait(self._pause()):
            if self._end_by is not None:
                if time.monotonic() >= self._end_by:
                    self._free("did not end in time")
                continue
            beats = self._beats
            missed = missed + 1 if beats == seen else 0
            seen = beats
            if missed >= self._config.ticks:
                self._free(f"has not answered for {self._config.stall_seconds:g} s")

    def _pause(self) -> float:
        if self._end_by is None:
            return self.interval
        return min(self.interval, max(self._end_by - time.monotonic(), 0.01))

    def _free(self, why: str) -> None:
        connection = self._connection
        assert connection is not None
        try:
            _log.critical("the daemon %s; freeing %s\n%s", why, connection.path, self._dump())
            here = connection.mounted
            connection.abort()
            if here and connection.mounted:
                unmount(connection.path, lazy=True)
        except MountError as error:
            _log.error("%s", error)
        except Exception:  # noqa: BLE001 - the process must end
            _log.exception("freeing the mount failed")
        finally:
            if self._rescue is not None:
                thread = threading.Thread(target=self._rescue, name="rescue", daemon=True)
                thread.start()
                thread.join(self._config.rescue_seconds)
            self._flush()
            os._exit(EXIT_STATUS)
