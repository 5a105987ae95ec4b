"""Locks of objects, for stores that cannot compare and replace in one step."""

from __future__ import annotations

import threading

_STRIPES = 64


class ObjectLocks:
    """A fixed number of locks, shared by all objects. Each object always has the same lock."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))

    def of(self, path: str) -> threading.Lock:
        """The lock to hold from the check of the object until its replacement."""
        return self._locks[hash(path) % _STRIPES]
