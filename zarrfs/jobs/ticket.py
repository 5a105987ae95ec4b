"""Waits for many chunks at once, without a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from zarrfs.errors import ChunkError

log = logging.getLogger(__name__)

Done = Callable[[ChunkError | None], None]


class Ticket:
    """Calls ``done`` once, when ``count`` parts have finished, with the first error or None."""

    __slots__ = ("_count", "_done", "_error", "_lock")

    def __init__(self, count: int, done: Done) -> None:
        self._count = count
        self._done = done
        self._error: ChunkError | None = None
        self._lock = Lock()

    def finish(self, parts: int = 1, error: ChunkError | None = None) -> None:
        """Report that ``parts`` parts have finished. Called in any thread."""
        with self._lock:
            self._error = self._error or error
            self._count -= parts
            over = self._count == 0
        if over:
            try:
                self._done(self._error)
            except Exception:  # the waiters for other parts of a load need their answers, too
                log.exception("an answer could not be given")

    def part(self) -> Done:
        """A callback for one part, which takes the part's error or None."""
        return lambda error: self.finish(error=error)
