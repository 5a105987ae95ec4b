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
            self._answer(self._error)

    def _answer(self, error: ChunkError | None) -> None:
        """Raises nothing: the waiters for other parts of a load need their answers, too."""
        try:
            self._done(error)
        except Exception as failure:
            log.exception("an answer could not be given")
            if error is None:
                # To tell of an error takes less than to make a reply.
                self._answer(ChunkError("a reply", f"failed: {failure!r}"))

    def part(self) -> Done:
        """A callback for one part, which takes its error or None; later calls change nothing."""
        once = [1]

        def done(error: ChunkError | None) -> None:
            with self._lock:
                parts, once[0] = once[0], 0
            if parts:
                self.finish(parts, error)

        return done
