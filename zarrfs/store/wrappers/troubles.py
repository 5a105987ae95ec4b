"""Records that a store does not answer as it should, for as long as that lasts."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from zarrfs.errors import StoreError

log = logging.getLogger(__name__)

# Seconds after which an outage counts as over, if no request has noticed its end.
_FORGOTTEN_S = 300.0


class Troubles:
    """Failures that were retried. The first failure is logged, and so is the recovery.

    retries : attempts that failed and were to be repeated, since the store was opened.

    Shared state, under ``_lock``: ``_since``, when the current trouble began, and ``_last``, its
    latest failure with the time.
    """

    def __init__(self) -> None:
        self.retries = 0
        self._lock = threading.Lock()
        self._since: float | None = None
        self._last: tuple[StoreError, float] | None = None

    def failed(self, failure: StoreError) -> None:
        """Record that an attempt failed in a way that may pass."""
        now = time.time()
        with self._lock:
            self.retries += 1
            is_first = self._since is None
            if is_first:
                self._since = now
            self._last = failure.without_frames(), now
        if is_first:
            log.warning("the store is in trouble, and asked again: %s", failure)

    def over(self) -> None:
        """Record that the store answered a request."""
        # Checked without the lock first, because every request calls this.
        if self._since is None:
            return
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            log.info("the store answers again, after %.1f s", time.time() - since)

    def snapshot(self) -> dict[str, Any] | None:
        """The current trouble as JSON: since when, and its latest failure."""
        with self._lock:
            since, last = self._since, self._last
        if since is None or last is None or time.time() - last[1] > _FORGOTTEN_S:
            return None
        error, when = last
        return {"since": since, "time": when, "key": error.key, "reason": error.reason}
