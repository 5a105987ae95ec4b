"""Forks of a process that do a piece of work, several at the same time."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

BROKEN = 255
"""The exit status of a fork whose work raised an exception."""


class Fork:
    """A process that does ``work``, which returns its exit status.

    It gets a directory of its own for temporary files, and a session of its own, so that all
    that it starts ends with it.

    timeout : seconds after which it is killed, without those in which it waits for a processor.
    """

    def __init__(self, work: Callable[[], int], timeout: float) -> None:
        self.begun = time.monotonic()
        self._timeout = timeout
        self._place = Path(tempfile.mkdtemp(prefix="zarrfs-mutant-"))
        # Some tests have other users look in.
        self._place.chmod(0o755)
        self._child = os.fork()
        if not self._child:
            self._work(work)

    def _work(self, work: Callable[[], int]) -> None:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            place = str(self._place)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = place
            os._exit(work())
        except BaseException:  # noqa: BLE001 - the parent tells
            self._failure.write_text(traceback.format_exc())
            os._exit(BROKEN)

    @property
    def _failure(self) -> Path:
        return self._place / "failed"

    @property
    def over(self) -> bool:
        """Whether it has ended, or has taken too long; then `end` has to be called."""
        info = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        late = time.monotonic() - self.begun - self._timeout
        return info is not None or (late > 0 and late > self._waited())

    def _waited(self) -> float:
        """Seconds in which its threads could have run, while other programs did."""
        waited = 0
        for thread in Path(f"/proc/{self._child}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                waited += int(thread.read_text().split()[1])
        return waited / 1e9

    def end(self) -> int | None:
        """Its exit status; None if it has not ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        _, status = os.waitpid(self._child, 0)
        try:
            if not os.WIFEXITED(status):
                return None
            if os.WEXITSTATUS(status) == BROKEN:
                raise RuntimeError(self._failure.read_text())
            return os.WEXITSTATUS(status)
        finally:
            shutil.rmtree(self._place, ignore_errors=True)

    def wait(self) -> int | None:
        while not self.over:
            time.sleep(0.02)
        return self.end()
