"""Delays the end of the process until threads of packages written in Rust need it no more.

After a thread of ``obstore`` or ``icechunk`` has delivered its reply, it needs the interpreter once
more. If the interpreter is ending meanwhile, the process is aborted
(https://github.com/PyO3/pyo3-async-runtimes/issues/40).
"""

from __future__ import annotations

import atexit
import threading
import time

# The time for which the process delays its end.
_SETTLED_S = 0.1


class _Quiet:
    """A context around each request; knows until when threads may still need the interpreter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0.0
        self._in_flight = 0
        atexit.register(self._settle)

    def __enter__(self) -> None:
        with self._lock:
            self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._in_flight -= 1
            self._last = time.monotonic()

    def _settle(self) -> None:
        give_up = time.monotonic() + 10 * _SETTLED_S
        while (now := time.monotonic()) < give_up:
            if not self._in_flight and now - self._last >= _SETTLED_S:
                return
            time.sleep(_SETTLED_S / 5)


quiet = _Quiet()
