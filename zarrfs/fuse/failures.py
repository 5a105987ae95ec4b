"""From any exception of the file system to the one kind that pyfuse3 survives."""

from __future__ import annotations

import logging
import time

import pyfuse3

from zarrfs.fuse.errnos import UNKNOWN, errno_of

_log = logging.getLogger(__name__)

# A bug met by every request must not fill the log.
_REPEAT_S = 60.0
_MAX_KINDS = 1000


class Failures:
    """Translates exceptions; used by the event loop alone.

    An exception that the table of errnos does not know is a bug. It is logged with its
    traceback when its kind is first met, and then once a minute as a count.
    """

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], tuple[float, int]] = {}

    def translate(self, request: str, error: Exception) -> pyfuse3.FUSEError:
        """The exception to raise in place of ``error``, which ``request`` ended with."""
        # A nursery wraps what its only failing task raised.
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if isinstance(error, pyfuse3.FUSEError):
            return error
        found = errno_of(error)
        if found is not None:
            return pyfuse3.FUSEError(found)
        self._log_bug(request, error)
        return pyfuse3.FUSEError(UNKNOWN)

    def _log_bug(self, request: str, error: Exception) -> None:
        kind = (request, _place(error))
        now = time.monotonic()
        if kind not in self._met:
            if len(self._met) < _MAX_KINDS:
                self._met[kind] = (now, 0)
                _log.error("%s failed unexpectedly", request, exc_info=error)
            return
        since, times = self._met[kind]
        if now - since < _REPEAT_S:
            self._met[kind] = (since, times + 1)
        else:
            self._met[kind] = (now, 0)
            _log.error("%s failed unexpectedly %d more times: %r", request, times + 1, error)


def _place(error: Exception) -> str:
    """Where ``error`` was raised: bugs of one type in two places are two."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__} {where}"
