"""Signals from the moment at which one could leave a mount behind, to the end.

Blocking them is not enough: threads that were started earlier do not block them, and what
one of those gets would end the process. So they are blocked and have a handler.
"""

from __future__ import annotations

import signal
from collections import deque
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


class Signals:
    """Keeps what comes while nobody waits. Main thread only."""

    def __init__(self) -> None:
        self._kept: deque[int] = deque()

    def hold(self) -> None:
        """From now on signals are kept. `trio.open_signal_receiver` takes over for a while."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for number in SIGNALS:
            signal.signal(number, self._keep)

    def kept(self) -> list[int]:
        """The signals so far; each is returned once."""
        found = list(self._kept)
        self._kept.clear()
        return found

    def wait(self, seconds: float) -> int | None:
        """The next signal, waiting for it; None if none comes. They must be blocked."""
        if not self._kept:
            got = signal.sigtimedwait(SIGNALS, seconds)
            if got is not None:
                return got.si_signo
        return self._kept.popleft() if self._kept else None

    def _keep(self, number: int, _frame: FrameType | None) -> None:
        self._kept.append(number)
