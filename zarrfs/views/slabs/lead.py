"""How far to load ahead of a reader of a distant store."""

from __future__ import annotations

import math

# Slabs ahead, as a multiple of those that are read while one loads.
_SPARE = 2
# Weight of the last slab in the mean time from slab to slab.
_LAST = 0.25
# Bounds of the times in seconds; the second one holds until something was measured.
_LEAST_S, _MOST_S = 1e-6, 3600.0


class Lead:
    """Measures how many slabs are read while one loads.

    The shortest load counts: it waited for the link alone, others also for a processor. A slab is
    loaded ahead of the slowest reader, too.
    """

    def __init__(self) -> None:
        self._load_s, self._read_s = _MOST_S, _SPARE * _MOST_S
        self._last_read = -math.inf

    @property
    def slabs(self) -> float:
        """How many slabs to load ahead, so that the reader does not wait for the link."""
        return _SPARE * self._load_s / self._read_s

    def loaded(self, seconds: float) -> None:
        """A slab took so long to load."""
        self._load_s = max(_LEAST_S, min(self._load_s, seconds))
        self._read_s = min(self._read_s, _SPARE * self._load_s)

    def read(self, now: float) -> None:
        """A slab was read to its end, at ``now`` seconds."""
        took = max(_LEAST_S, min(now - self._last_read, _SPARE * self._load_s))
        self._read_s += _LAST * (took - self._read_s)
        self._last_read = now
