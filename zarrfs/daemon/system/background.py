"""Running the daemon in the background, with its errors in the foreground.

The fork comes before the first thread and before the heavy imports. The daemon tells over
a pipe that it is ready, or why not, and the command returns only then.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable

from zarrfs.errors import MountError, UsageError, ZarrfsError, unexpected

_END_TIMEOUT_S = 5.0


Ready = Callable[[], bool]
"""Tells that the mount answers. Returns whether anyone still wants it."""


class PipeLaunch:
    """The parent waits at the other end of ``pipe``."""

    def __init__(self, pipe: int, log_file: str | None) -> None:
        self._pipe = pipe
        self._log_file = log_file
        self.reported = False

    def ready(self) -> bool:
        # Before the parent returns: a program that waits for the terminal's or a pipe's other
        # end must not wait for the daemon.
        self._detach()
        return self.send({"ready": True})

    def send(self, answer: dict[str, object]) -> bool:
        self.reported = True
        try:
            os.write(self._pipe, json.dumps(answer).encode())
        except OSError:
            return False
        finally:
            os.close(self._pipe)
        return True

    def _detach(self) -> None:
        """Standard output and error become the log file, for what libraries print."""
        sys.stdout.flush()
        sys.stderr.flush()
        null = os.open(os.devnull, os.O_RDWR)
        output = null
        if self._log_file is not None:
            with contextlib.suppress(OSError):
                output = os.open(self._log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for descriptor in {null, output}:
            if descriptor > 2:
                os.close(descriptor)


def run_in_background(
    serve: Callable[[Ready], None], *, mount_point: str, log_file: str | None
) -> None:
    """Runs ``serve`` in a process of its own; returns when the mount answers.

    Raises the `ZarrfsError` that ``serve`` raised before that; ``serve`` raises no others.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores what is raised while it forks, which ^C must not be.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        # Never through the parent's frames and exit handlers.
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            status = _child(serve, PipeLaunch(writing, log_file))
        finally:
            os._exit(status)
    os.close(writing)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        _check(answer, pid)
        _confirm(mount_point)
    except BaseException:
        _end(pid)
        raise


def _child(serve: Callable[[Ready], None], launch: PipeLaunch) -> int:
    os.setsid()
    try:
        serve(launch.ready)
    except Exception as error:  # noqa: BLE001 - a broken installation, before there is a log
        if not isinstance(error, ZarrfsError):
            error = MountError(unexpected(error))
        # Only the log has later errors.
        if not launch.reported:
            launch.send({"usage": isinstance(error, UsageError), "error": str(error)})
        return 1
    return 0


def _check(answer: bytes, pid: int) -> None:
    if not answer:
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        raise MountError(f"the daemon was ended {how} while it started")
    said = json.loads(answer)
    if said.get("ready"):
        return
    raise UsageError(said["error"]) if said["usage"] else MountError(said["error"])


def _confirm(mount_point: str) -> None:
    """Asks the mount, which only another process than the daemon may do."""
    try:
        os.stat(mount_point)
    except OSError as error:
        raise MountError(f"{mount_point} does not answer: {error.strerror}") from error


def _end(pid: int) -> None:
    """Ends the child, if it has not ended; it cleans up after itself."""
    # `waitpid` first: it raises where the child is gone and its number free for others.
    with contextlib.suppress(ChildProcessError):
        give_up = time.monotonic() + _END_TIMEOUT_S
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < give_up:
            os.kill(pid, signal.SIGTERM)
            time.sleep(0.05)
