"""The names in groups, listed once for a pass over them."""

from __future__ import annotations

import math
import time

from zarrfs.array.hierarchy import Hierarchy

# Seconds for which a listing serves the pass over a group that it was made for.
_PASS = 2.0


class Listings:
    """Lists groups. A pass over a directory asks for its names several times, a remote store once.

    keep : whether listings are kept for such a pass.
    """

    def __init__(self, hierarchy: Hierarchy, *, keep: bool) -> None:
        self._hierarchy = hierarchy
        self._keep = keep
        # When groups were last listed, of the clock `time.monotonic`, and the names found.
        self._listed: dict[str, tuple[float, list[str]]] = {}

    def names(self, path: str) -> list[str]:
        """Names of the groups and arrays in the group at ``path``, sorted. Blocks."""
        if (names := self.recent(path)) is not None:
            return names
        names = self._hierarchy.children(path)
        if self._keep:
            now = time.monotonic()
            for other in [p for p, (at, _) in list(self._listed.items()) if now - at >= _PASS]:
                self._listed.pop(other, None)
            self._listed[path] = now, names
        return names

    def recent(self, path: str) -> list[str] | None:
        """The same as a listing found it a moment ago; None if there was none."""
        listed, names = self._listed.get(path, (-math.inf, []))
        return names if time.monotonic() - listed < _PASS else None

    def forget(self) -> None:
        """List anew."""
        self._listed.clear()
