"""The names in groups, listed once for a pass over them."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from threading import Lock

from zarrfs.array.hierarchy import Hierarchy

# Seconds for which the listing of a distant store serves those who begin a pass over a group.
_PASS = 2.0
# Listings that are kept, and names in all of them.
_MOST_LISTINGS = 256
_MOST_NAMES = 1 << 17


class Listings:
    """The last listings of groups, which the rest of a pass over a directory is answered from.

    Thread-safe: ``_lock`` guards ``_listed``, and ``_names``, the number of names in it.

    distant : whether a listing is a request that those who begin such a pass share, too.
    """

    def __init__(self, hierarchy: Hierarchy, *, distant: bool) -> None:
        self._hierarchy = hierarchy
        self._fresh_seconds = _PASS if distant else 0.0
        # When groups were last listed, of the clock `time.monotonic`, and the names found.
        self._listed: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()
        self._names = 0
        self._lock = Lock()

    def names(self, path: str, *, go_on: bool = False) -> list[str]:
        """Names of the groups and arrays in the group at ``path``, sorted. Blocks.

        go_on : they are for the rest of a pass. It lists the group again if its listing is gone.
        """
        if (names := self.known(path, math.inf if go_on else self._fresh_seconds)) is not None:
            return names
        names = self._hierarchy.children(path)
        with self._lock:
            self._names += len(names) - len(self._listed.pop(path, (0.0, []))[1])
            self._listed[path] = time.monotonic(), names
            while len(self._listed) > 1 and (
                len(self._listed) > _MOST_LISTINGS or self._names > _MOST_NAMES
            ):
                self._names -= len(self._listed.popitem(last=False)[1][1])
        return names

    def recent(self, path: str) -> list[str] | None:
        """The names that a pass over a group of a distant store has just found; None: none has."""
        return self.known(path, self._fresh_seconds)

    def known(self, path: str, seconds: float = math.inf) -> list[str] | None:
        """The names of a listing that is younger than ``seconds``; None if there is none."""
        with self._lock:
            if (found := self._listed.get(path)) is None:
                return None
            self._listed.move_to_end(path)
        return found[1] if time.monotonic() - found[0] < seconds else None

    def forget(self) -> None:
        """List anew."""
        with self._lock:
            self._listed.clear()
            self._names = 0
