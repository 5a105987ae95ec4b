"""A chunk that was written to and is not stored yet."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk

Slices = tuple[slice, ...]


class DirtyChunk:
    """New elements of one chunk, and which they are.

    chunk : of the full chunk shape. Elements that are not marked hold nothing until
        `complete_with` has been called.
    version : grows with every change.
    since : when the oldest of the changes was made (`time.monotonic`).

    Not safe for threads: its owner has the lock.
    """

    __slots__ = ("_based", "_inside", "_marked", "_missing", "chunk", "since", "version")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], valid: Shape) -> None:
        """valid : shape of the part that lies inside the array."""
        self._inside = tuple(slice(n) for n in valid)
        self.chunk: Chunk = np.empty(shape, dtype)
        self.version = 0
        self.since = time.monotonic()
        # None: every element is new.
        self._marked: NDArray[np.bool_] | None = np.zeros(shape, bool)
        self._missing = math.prod(valid)
        self._based = False

    @staticmethod
    def cost(shape: Shape, dtype: np.dtype[Any]) -> int:
        """Bytes of memory that such a chunk takes."""
        return math.prod(shape) * (dtype.itemsize + 1)

    @property
    def whole(self) -> bool:
        """Whether every element inside the array is new."""
        return self._marked is None

    @property
    def readable(self) -> bool:
        """Whether every element inside the array has its value, new or old."""
        return self._based or self._marked is None

    @property
    def marked(self) -> NDArray[np.bool_]:
        """Which elements are new; beyond the array it means nothing."""
        return np.ones(self.chunk.shape, bool) if self._marked is None else self._marked

    def write(self, where: Slices, values: Chunk, view: np.dtype[Any]) -> None:
        """Set elements; ``values`` are of ``view`` in some byte order."""
        self.chunk.view(view)[where] = values
        self.version += 1
        if self._marked is None:
            return
        marked = self._marked[where]
        self._missing -= marked.size - int(np.count_nonzero(marked))
        self._marked[where] = True
        if self._missing == 0:
            self._marked = None

    def adopt(self, chunk: Chunk, marked: NDArray[np.bool_]) -> None:
        """Take the ``marked`` elements of a chunk whose elements have as many bytes."""
        inside = self._inside
        where = marked[inside]
        np.copyto(self.chunk.view(chunk.dtype)[inside], chunk[inside], where=where)
        self.version += 1
        if self._marked is None:
            return
        self._marked[inside] |= where
        self._missing = where.size - int(np.count_nonzero(self._marked[inside]))
        if self._missing == 0:
            self._marked = None

    def complete_with(self, base: Chunk) -> None:
        """Take the elements that are not new from the stored chunk."""
        if self._marked is not None:
            np.copyto(self.chunk, base, where=~self._marked, casting="no")
            self._based = True

    def copy(self) -> DirtyChunk:
        """The same, untouched by later changes to this one."""
        twin = DirtyChunk.__new__(DirtyChunk)
        twin.chunk = self.chunk.copy()
        twin._marked = None if self._marked is None else self._marked.copy()
        twin._missing = self._missing
        twin._inside = self._inside
        twin._based = False
        twin.version = self.version
        twin.since = self.since
        return twin
