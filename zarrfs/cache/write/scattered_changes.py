"""A few small changes of a chunk that is not stored yet, kept one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs.cache.write.dirty_chunk import DirtyChunk, Slices
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk

# More of them are worth the memory of a chunk: so many, or so large a part of one.
_MOST = 64
_LARGEST_PART = 8
# Bytes that a change takes beside its elements.
_OVERHEAD = 768

_Change = tuple[Slices, Chunk, np.dtype[Any]]


class ScatteredChanges:
    """Changes of one chunk in the order they were made.

    Who writes here and there would else take the memory of a whole chunk for a few bytes
    of each, and soon have to store all of them for want of memory.

    charged : bytes of memory that somebody has reserved for them.
    since : when the oldest of them was made (`time.monotonic`).

    Not safe for threads: its owner has the lock.
    """

    __slots__ = ("_changes", "_elements", "_storing", "charged", "since")

    def __init__(self, since: float | None = None) -> None:
        self._changes: list[_Change] = []
        self._elements = 0
        # How many of them are being stored; None: nobody stores them.
        self._storing: int | None = None
        self.charged = 0
        self.since = time.monotonic() if since is None else since

    @staticmethod
    def cost(values: Chunk) -> int:
        """Bytes of memory that such a change takes."""
        return values.nbytes + _OVERHEAD

    @staticmethod
    def fits(valid: Shape, values: Chunk) -> bool:
        """Whether a change is better kept here, as the first one of its chunk.

        valid : shape of the part of the chunk that lies inside the array. All changes
            together are less than that, so that no chunk becomes whole by them.
        """
        inside = math.prod(valid)
        return (
            ScatteredChanges._few(inside, values.size)
            and 2 * ScatteredChanges.cost(values) <= inside * values.itemsize
        )

    def takes(self, valid: Shape, values: Chunk) -> bool:
        """Whether one more is better kept here."""
        return len(self._changes) < _MOST and self._few(
            math.prod(valid), self._elements + values.size
        )

    @staticmethod
    def _few(elements: int, changed: int) -> bool:
        return changed * _LARGEST_PART <= elements

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for _, values, _ in self._changes)

    def add(self, where: Slices, values: Chunk, view: np.dtype[Any]) -> None:
        """Set elements, as `DirtyChunk.write` does. The memory is `cost`."""
        self._changes.append((where, values.astype(view), view))
        self._elements += values.size
        self.charged += self.cost(values)

    def over(self, base: Chunk) -> Chunk:
        """The stored chunk with these changes, in memory of its own."""
        return _over(base, self._changes)

    def begin_store(self) -> DirtyChunk:
        """A copy to be stored, of which nothing is there until it is complete."""
        self._storing = len(self._changes)
        return _StoredChanges(list(self._changes), self.since)

    def copy(self, shape: Shape, dtype: np.dtype[Any], valid: Shape) -> DirtyChunk:
        """A chunk with these changes."""
        return self._written(shape, dtype, valid, len(self._changes))

    def stored(self) -> int:
        """What was begun has been stored; the bytes of memory that are free by that."""
        done = self._changes[: self._storing or 0]
        del self._changes[: self._storing or 0]
        self._elements -= sum(values.size for _, values, _ in done)
        self._storing = None
        self.since = time.monotonic()
        freed = sum(self.cost(values) for _, values, _ in done)
        self.charged -= freed
        return freed

    def end_store(self) -> None:
        self._storing = None

    @property
    def empty(self) -> bool:
        return not self._changes

    def turned(self, shape: Shape, dtype: np.dtype[Any], valid: Shape) -> DirtyChunk:
        """A chunk in place of these changes, of which some may be being stored."""
        stored = self._storing
        chunk = self._written(shape, dtype, valid, len(self._changes) if stored is None else stored)
        if stored is not None:
            chunk.store_begun()
            for change in self._changes[stored:]:
                chunk.write(*change)
        return chunk

    def _written(self, shape: Shape, dtype: np.dtype[Any], valid: Shape, count: int) -> DirtyChunk:
        chunk = DirtyChunk(shape, dtype, valid, self.since)
        for change in self._changes[:count]:
            chunk.write(*change)
        return chunk


class _StoredChanges(DirtyChunk):
    """What a chunk with these changes is for those who store it: `complete_with` makes it."""

    __slots__ = ("_changes",)

    def __init__(self, changes: list[_Change], since: float) -> None:
        self._changes = changes
        self.version = len(changes)
        self.since = since
        self.parts = {}
        self.whole = self._based = self._lent = self._storing = False
        self._owns = True
        self.charged = 0

    def complete_with(self, base: Chunk) -> None:
        if not self._based:
            self.chunk = _over(base, self._changes)
            self._based = True


def _over(base: Chunk, changes: Sequence[_Change]) -> Chunk:
    chunk = np.array(base, order="C")
    for where, values, view in changes:
        chunk.view(view)[where] = values
    return chunk
