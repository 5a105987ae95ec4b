"""Counters of what the mount did, and its last errors."""

from __future__ import annotations

import logging
import time
from collections import deque
from threading import Lock
from typing import Any

from zarrfs.counted import counted

log = logging.getLogger(__name__)

_SAME_ERROR_SECONDS = 60.0
_REMEMBERED_ERRORS = 64
_LOGGED_ERRORS = 20  # per minute, so that an array of bad chunks does not fill the log
_OF_CHUNKS = ("hits", "misses", "shared", "loads", "parts", "revalidated", "decoded_bytes")


class Stats:
    """Counters for people. Adding to one counter is not atomic with reading the others.

    hits, misses : requested chunks that were, or were not, decoded in memory.
    shared : misses that joined a load in progress.
    loads : chunks decoded.
    parts : parts of chunks read without the rest.
    revalidated : old chunks that the store confirmed, so that they were kept.
    decoded_bytes : bytes of the chunks and parts decoded.
    reads, read_bytes : read requests answered, and their bytes.
    writes, written_bytes : write requests answered, and their bytes.
    errors : chunks or requests that failed.
    """

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.shared = 0
        self.loads = 0
        self.parts = 0
        self.revalidated = 0
        self.decoded_bytes = 0
        self.reads = 0
        self.read_bytes = 0
        self.writes = 0
        self.written_bytes = 0
        self.errors = 0
        self._last_errors: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED_ERRORS)
        # Keys logged since the current minute began, and the number of errors not logged.
        self._logged: set[str] = set()
        self._minute = 0.0
        self._unsaid = 0
        self._lock = Lock()

    def error(self, key: str, reason: str) -> None:
        """Count and remember an error. Log it, unless the log has its key or too many errors."""
        now = time.time()
        with self._lock:
            self.errors += 1
            self._last_errors.append({"time": now, "key": key, "reason": reason})
            unsaid = self._unsaid
            if now - self._minute >= _SAME_ERROR_SECONDS:
                self._minute, self._unsaid = now, 0
                self._logged.clear()
            elif key in self._logged or len(self._logged) >= _LOGGED_ERRORS:
                self._unsaid += 1
                return
            else:
                unsaid = 0
            self._logged.add(key)
        if unsaid:
            more = counted(unsaid, "more error")
            log.error("%s within a minute; .zarrfs/stats.json has the last", more)
        # Names and metadata may hold characters that no encoding has.
        said = (text.encode(errors="backslashreplace").decode() for text in (key, reason))
        log.error("%s: %s", *said)

    def snapshot(self) -> dict[str, Any]:
        """All counters and the last errors, as JSON."""
        with self._lock:
            last_errors = list(self._last_errors)
        return {
            "cache": {name: getattr(self, name) for name in _OF_CHUNKS},
            "reads": {"count": self.reads, "bytes": self.read_bytes},
            "writes": {"count": self.writes, "bytes": self.written_bytes},
            "errors": {"count": self.errors, "last": last_errors},
        }
