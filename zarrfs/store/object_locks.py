"""The order of writes to one object, where the store itself does not keep it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from zarrfs.errors import StoreUnavailable

_T = TypeVar("_T")


class OrphanedWrites:
    """Attempts that outlived their operation. No other write of their object begins.

    An attempt that made no progress is abandoned. It may still arrive after the next write, and
    would undo that.

    Shared state, under ``_lock``: ``_orphans`` counts them by key.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orphans = Counter[str]()

    @contextmanager
    def operation(self, key: str, write: Callable[[], _T]) -> Iterator[Callable[[], _T]]:
        """Return ``write`` in a form to be called once for each attempt of one operation.

        Attempts of one operation may overlap, because they write the same bytes. Each one
        raises `StoreUnavailable` while an orphan of an earlier operation is in flight.
        """
        running, ended = 0, False

        def attempt() -> _T:
            nonlocal running
            with self._lock:
                if self._orphans[key]:
                    raise StoreUnavailable(key, "an earlier write of it is still under way")
                running += 1
            try:
                return write()
            finally:
                with self._lock:
                    running -= 1
                    if ended:
                        self._forget(key)

        try:
            yield attempt
        finally:
            with self._lock:
                ended = True
                if running:
                    self._orphans[key] += running

    def _forget(self, key: str) -> None:
        self._orphans[key] -= 1
        if not self._orphans[key]:
            del self._orphans[key]
