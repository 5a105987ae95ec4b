"""Files in which each chunk is contiguous."""

from __future__ import annotations

import math

from zarrfs.views.elements.window import Window


class ContiguousChunks:
    """The chunks of a window, each of which is one range of the file.

    item : bytes of an element.
    """

    def __init__(self, window: Window, item: int, axis: int) -> None:
        self._axis = window.grid.axes[axis]
        self._rows = window.shape[axis]
        self._row = math.prod(window.shape[axis + 1 :]) * item

    @classmethod
    def plan(cls, window: Window, item: int) -> ContiguousChunks | None:
        """None if chunks are scattered over the file, or if a chunk is not in the window."""
        if not window.elements or window.shape != window.grid.shape or any(window.origin):
            return None
        for axis, length in enumerate(window.grid.largest_chunk):
            if length > 1 or axis == len(window.shape) - 1:
                alone = all(count == 1 for count in window.grid.counts[axis + 1 :])
                return cls(window, item, axis) if alone else None
        return None

    def span(self, offset: int) -> tuple[int, int]:
        """First and last (exclusive) byte of the chunk that contains a byte of the file."""
        outer, within = divmod(offset, self._rows * self._row)
        chunk = self._axis.chunk_of(within // self._row)
        start = self._axis.origin(chunk)
        stop = min(start + self._axis.length(chunk), self._rows)
        base = outer * self._rows
        return (base + start) * self._row, (base + stop) * self._row
