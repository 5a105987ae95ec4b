"""How long the daemon waits for a worker process that does not answer."""

from __future__ import annotations

import time

DEFAULT_PATIENCE_S = 20.0
# A daemon that was frozen together with its worker must not give it up at the first look.
_LOOKS = 4


class WorkerPatience:
    """Lasts as long as the worker process uses any processor time.

    A job may take long: a slow disk, a large block, a busy machine. A worker that works on
    it runs now and then, if only to ask the kernel for more. One that was stopped, or that
    hangs in a single system call, does not run at all.

    seconds : without any processor time, after which patience ends.

    Used by one thread at a time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.look_after = seconds / _LOOKS
        # What clock_getcpuclockid(3) gives for the process.
        self._clock = (~pid << 3) | 2
        self._left = _LOOKS
        self._used = -1

    def begin(self) -> None:
        """A job begins: the worker has all the time there is."""
        self._left = _LOOKS
        self._used = -1

    def lasts(self) -> bool:
        """Whether to wait for another ``look_after`` seconds."""
        try:
            used = time.clock_gettime_ns(self._clock)
        except OSError:
            return False  # it is gone
        if used != self._used:
            self._used = used
            # Whether it has run since the job began is not known at the first look.
            self._left = _LOOKS
        self._left -= 1
        return self._left > 0
