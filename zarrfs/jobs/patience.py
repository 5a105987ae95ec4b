"""How long the daemon waits for a worker process that does not answer."""

from __future__ import annotations

import time

DEFAULT_PATIENCE_S = 20.0
# Several looks: a daemon that was frozen with its worker must not give it up at the first one.
_LOOKS = 4


class WorkerPatience:
    """Lasts as long as the worker process uses any processor time.

    A job may take long: a slow disk, a large block, a busy machine. A worker that performs a job
    runs now and then, if only to make another system call. A worker that was stopped, or that hangs
    in a single system call, does not run at all.

    seconds : without any processor time, after which the patience ends.

    Used by one thread at a time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.look_after = seconds / _LOOKS
        # The clock that clock_getcpuclockid(3) returns for the process.
        self._clock = (~pid << 3) | 2
        self._left = _LOOKS
        self._used = -1

    def begin(self) -> None:
        """A job begins: the worker has its full time again."""
        self._left = _LOOKS
        self._used = -1

    def lasts(self) -> bool:
        """Whether to wait for another ``look_after`` seconds."""
        try:
            used = time.clock_gettime_ns(self._clock)
        except OSError:
            return False  # the process is gone
        if used != self._used:
            self._used = used
            # The first look cannot show whether the worker has run since the job began.
            self._left = _LOOKS
        self._left -= 1
        return self._left > 0
