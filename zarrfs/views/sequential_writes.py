"""Writes that follow each other in a flat file, gathered up to the end of a slab."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.gathering import Change
from zarrfs.cache.writable_array import WritableArray
from zarrfs.views.contiguous import ContiguousChunks
from zarrfs.views.elements import Elements
from zarrfs.views.slabs import SlabGrid

_LARGEST_SLAB = 32 << 20
# Fewer writes in a slab are not worth a copy.
_LEAST_WRITES = 4
# Bytes in a row that are spread at once before more are expected to follow.
_BELIEVED = 256 << 10


class SequentialWrites:
    """One flat file whose chunks are scattered over it, as one that is written in order.

    See `zarrfs.cache.gathering`: a `GatheredFile`.
    """

    def __init__(self, elements: Elements, grid: SlabGrid) -> None:
        self._elements = elements
        self._grid = grid
        self._item = elements.dtype.itemsize
        self._gathering = elements.writable.gathering
        first, last = grid.slab_at(0)
        self._slab_bytes = (last - first) * self._item
        self._chunk_bytes = grid.chunks * elements.writable.largest_change
        # Where the last write ended, how many bytes have come in a row, and how far they
        # were to be gathered.
        self._end = self._run = self._planned = 0

    @classmethod
    def plan(cls, elements: Elements) -> SequentialWrites | None:
        """None where chunks can be filled as well one by one, or memory is short."""
        array, window, item = elements.array, elements.window, elements.dtype.itemsize
        if not isinstance(array, WritableArray) or not elements.count or elements.checks:
            return None
        most = array.gathering.largest
        largest = min(_LARGEST_SLAB, most // 4)
        if ContiguousChunks.plan(window, item) is not None:
            return None
        grid = SlabGrid.plan(window, item, largest) or SlabGrid.plan_thin(window, item, largest)
        return None if grid is None else cls(elements, grid)

    def follows(self, offset: int, size: int) -> bool:
        """Whether a write is one of many in a row; asked once for each write of the file."""
        self._run = self._run + size if offset == self._end else 0
        self._end = offset + size
        if offset < self._planned and not self._gathering.pending:
            # Somebody reads between the writes.
            self._run = self._planned = 0
        return (
            self._run >= _BELIEVED
            and self._slab_bytes + self._chunk_bytes <= self._gathering.largest
            and size * _LEAST_WRITES <= self._slab_bytes
            and not offset % self._item
            and not size % self._item
        )

    def write(self, offset: int, data: memoryview, *, wait: bool) -> int:
        """How many bytes of ``data`` are gathered; the others must be written otherwise.

        wait : as of `WritableArray.write`; if not, the others may be gathered with it.
        """
        done = 0
        while done < len(data):
            taken = self._gathering.append(self, offset + done, data[done:])
            if not taken and self._begin(offset + done, wait=wait):
                taken = self._gathering.append(self, offset + done, data[done:])
            if not taken:
                break
            done += taken
        return done

    def changes(self, offset: int, data: NDArray[np.uint8]) -> Iterator[Change]:
        return self._elements.changes(offset // self._item, data.view(self._elements.dtype))

    def _begin(self, offset: int, *, wait: bool) -> bool:
        self._planned = self._grid.slab_at(offset // self._item)[1] * self._item
        size = self._planned - offset
        return self._gathering.begin(self, offset, size, self._chunk_bytes, wait=wait)
