"""Locks of objects, for stores that cannot compare and replace in one step."""

from __future__ import annotations

import threading

_STRIPES = 64


class ObjectLocks:
    """A fixed number of locks, shared by all objects; an object's is always the same."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))

    def of(self, path: str) -> threading.Lock:
        """The lock to hold from looking at the object until it is replaced."""
        return self._locks[hash(path) % _STRIPES]
