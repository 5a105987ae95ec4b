"""Storing all changes after the mount has ended."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.daemon.life.end_report import End, EndReport
from zarrfs.daemon.system.logs import stacks
from zarrfs.daemon.system.signals import Signals
from zarrfs.errors import ZarrfsError
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.watchdog import Watchdog

_log = logging.getLogger(__name__)

_PROGRESS_S = 0.5
# That a report names.
_MOST_REASONS = 5


def dump(filesystem: FileSystem) -> str:
    """The state of the daemon, for the log."""
    return f"{stacks()}\n{filesystem.describe_state()}"


class ChangesNotStored(ZarrfsError):
    """The mount has ended with changes that are not in the store."""


class DrainConfig(NamedTuple):
    """How hard it is tried.

    timeout_seconds : for all attempts together; then what is left goes to the journal.
        Default 120.
    attempts : in a row of which none stores anything. Default 3.
    pause_seconds : between two attempts. Default 2.
    stall_seconds : after so long with nothing stored the watchdog ends the daemon; more
        than ``timeout_seconds``. Default 600.
    report_seconds : how often the log tells what is left. Default 10.
    """

    timeout_seconds: float = 120.0
    attempts: int = 3
    pause_seconds: float = 2.0
    stall_seconds: float = 600.0
    report_seconds: float = 10.0


@dataclass(eq=False)
class Drain:
    """Call it once, in the main thread.

    signals : holding.
    progress : reported now and then how many bytes are left.
    """

    filesystem: FileSystem
    watchdog: Watchdog
    report: EndReport
    signals: Signals
    config: DrainConfig
    progress: Callable[[int], None] = lambda left: None
    _hurry: bool = False
    _begun: bool = False
    _aborted: bool = False

    def aborted(self) -> None:
        """The connection was broken, so that the kernel hands over no changed pages any more."""
        self._aborted = True

    def __call__(self) -> None:
        """Raises `ChangesNotStored` with what could not be stored, and why."""
        self._begun = True
        self.watchdog.postpone_end(self.config.stall_seconds)
        self._report_progress(self.filesystem.dirty_bytes)
        errors = [*self._store_all(), *self._lost()]
        self._report_errors(errors)
        if errors:
            raise ChangesNotStored(f"changes could not be stored: {errors[0]}")

    def rescue(self) -> None:
        """Stores what it can of a daemon that hangs; in any thread. Raises nothing."""
        if self._begun:
            return
        try:
            errors = [*self.filesystem.drain(), *self.filesystem.lost_pages()]
        except Exception:  # noqa: BLE001 - the process ends in any case
            _log.exception("storing changes failed unexpectedly")
        else:
            self._report_errors(errors)

    def _lost(self) -> Sequence[ZarrfsError]:
        return self.filesystem.lost_pages() if self._aborted else ()

    def _report_errors(self, errors: Sequence[ZarrfsError]) -> None:
        for error in errors:
            _log.error("not stored: %s", error)
        reasons = [str(error) for error in errors[:_MOST_REASONS]]
        if more := len(errors) - len(reasons):
            reasons.append(f"and {more} more")
        self.report.tell(End(stored=not errors, reasons=tuple(reasons)))

    def _report_progress(self, left: int) -> None:
        self.report.tell(End(storing=True, left=left))
        self.progress(left)

    def _store_all(self) -> Sequence[ZarrfsError]:
        left, idle = self.filesystem.dirty_bytes, 0
        give_up_at = time.monotonic() + self.config.timeout_seconds
        while True:
            errors = self._attempt(give_up_at)
            before, left = left, self.filesystem.dirty_bytes
            idle = 0 if left < before else idle + 1
            if not errors or idle >= self.config.attempts or self._hurry:
                return errors
            if (remaining := give_up_at - time.monotonic()) <= self.config.pause_seconds:
                return errors
            _log.warning("storing changes failed and is tried again: %s", errors[0])
            self._wait(min(self.config.pause_seconds, remaining), lambda: self._hurry)

    def _attempt(self, give_up_at: float) -> Sequence[ZarrfsError]:
        """In a thread of its own; this one looks at what happens.

        give_up_at : when the store is waited for no more, of the clock `time.monotonic`.
        """
        outcome: Future[Sequence[ZarrfsError]] = Future()

        def work() -> None:
            try:
                outcome.set_result(self.filesystem.drain())
            except BaseException as error:  # noqa: BLE001 - raised again below
                outcome.set_exception(error)

        try:
            threading.Thread(target=work, name="drain", daemon=True).start()
        except RuntimeError:
            work()  # the system has no thread
        self._wait(give_up_at - time.monotonic(), outcome.done)
        if not outcome.done():
            _log.error(
                "not all changes could be stored within %g s (-o drain_timeout)",
                self.config.timeout_seconds,
            )
            self.filesystem.give_up()
            self._wait(None, outcome.done)
        return outcome.result()

    def _wait(self, seconds: float | None, over: Callable[[], bool]) -> None:
        """Until ``over``, at most ``seconds``; tells of progress and obeys signals."""
        begun = reported = logged = time.monotonic()
        left = self.filesystem.dirty_bytes
        # Short at first: most drains have nothing to do.
        pause = 0.001
        while not over() and (seconds is None or time.monotonic() - begun < seconds):
            if (number := self.signals.wait(pause)) is not None:
                self._obey(number)
            pause = min(2 * pause, 0.2)
            before, left = left, self.filesystem.dirty_bytes
            if left < before:
                self.watchdog.postpone_end(self.config.stall_seconds)
            now = time.monotonic()
            if now - reported >= _PROGRESS_S:
                reported = now
                self._report_progress(left)
            if now - logged >= self.config.report_seconds:
                logged = now
                _log.info("storing changes: %d bytes left", left)

    def _obey(self, number: int) -> None:
        if number == signal.SIGUSR1:
            _log.info("state on SIGUSR1:\n%s", dump(self.filesystem))
        elif number in (signal.SIGTERM, signal.SIGINT):
            self._hurry = True
            _log.info("asked again to end: what fails now is not tried again")
