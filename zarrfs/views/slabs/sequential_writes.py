"""Sequential writes to a flat file, gathered up to the end of a slab."""

from __future__ import annotations

import math
from operator import floordiv

from zarrfs.cache.write.tile_changes import OVERHEAD
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.views.elements.contiguous import ContiguousChunks
from zarrfs.views.elements.element_changes import ElementChanges
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs.expectation import Expectation
from zarrfs.views.slabs.slab_chunks import SlabChunks
from zarrfs.views.slabs.slab_grid import LARGEST_REQUEST, SlabGrid

# A reader or a flush waits until a slab is scattered.
_LARGEST_SLAB = 1 << 30
# A slab of fewer writes is not worth the additional copy.
_LEAST_WRITES = 4
# Bytes of sequential writes that are scattered one by one before more writes are expected.
_BELIEVED = 256 << 10


class SequentialWrites:
    """Sequential writes to one flat file whose chunks are scattered over it."""

    def __init__(
        self, elements: Elements, changes: ElementChanges, grid: SlabGrid, *, staged: bool
    ) -> None:
        """
        staged : whether slabs may be gathered in staging files; see `GatherMemory.stage`.
        """
        self._elements = elements
        self._changes = changes
        self._grid = grid
        self._item = elements.dtype.itemsize
        self._gathering = changes.array.gathering
        first, last = grid.slab_at(0)
        self._slab_bytes = (last - first) * self._item
        self._staged = staged
        self._fits = _most_memory(changes, grid, staged=staged) <= self._gathering.largest
        # The slab that is gathered, or was gathered last.
        self._gathered: SlabChunks | None = None
        # The end of the last write, the bytes of sequential writes so far, and the end of the
        # planned slab.
        self._end = self._run = self._planned = 0
        self._expected = Expectation()

    @classmethod
    def plan(cls, elements: Elements, changes: ElementChanges) -> SequentialWrites | None:
        """None if chunks can as well be filled one by one, or there is no room.

        Chunks that are contiguous in the file are gathered, too, if a write fills several. That
        takes 4 to 11 % less time for chunks of 58 to 512 KiB, because gathered memory is in huge
        pages; nothing for chunks of 0.8 MiB, and 5 % more for chunks of 2 MiB.
        """
        array, item = elements.array, elements.dtype.itemsize
        if not isinstance(array, WritableArray) or not elements.count:
            return None
        window = changes.window
        if changes.checks:
            return None
        # One slab is gathered while another one is stored.
        room = array.gathering.largest
        largest = min(_LARGEST_SLAB, room)
        # Shards that take more memory than there is would be stored again and again, each time with
        # a few more chunks that are new. So they are gathered in a staging file.
        shards = _row_of_shards(elements, changes)
        if (
            shards is not None
            and _most_memory(changes, shards, staged=False) > 2 * room
            and _can_be_staged(changes, shards, item)
        ):
            return cls(elements, changes, shards, staged=True)
        chunk = math.prod(window.grid.largest_chunk) * item
        if chunk >= LARGEST_REQUEST and ContiguousChunks.plan(window, item) is not None:
            return None
        grid = SlabGrid.plan(window, item, largest)
        if grid is not None:
            # Marks and many small tiles take more memory than the data gathered for them.
            each = _most_memory(changes, grid._replace(rows=1), staged=False)
            if fits := room // max(1, each):
                rows = min(grid.rows, window.grid.counts[grid.axis], fits)
                return cls(elements, changes, grid._replace(rows=rows), staged=False)
        row = SlabGrid.plan_row(window)
        if row is not None and _can_be_staged(changes, row, item):
            return cls(elements, changes, row, staged=True)
        return None

    def follows(self, offset: int, size: int) -> bool:
        """Whether a write continues many others; called once for each write to the file."""
        if offset == self._end:
            self._run += size
        else:
            self._run = 0
            self._expected.times = 1
        self._end = offset + size
        if offset < self._planned and not self._gathering.pending:
            # A program reads between the writes.
            self._run = self._planned = 0
            self._expected.disappointed()
        return (
            self._run >= _BELIEVED * self._expected.times
            and self._fits
            and size * _LEAST_WRITES <= self._slab_bytes
            and not offset % self._item
            and not size % self._item
        )

    def write(self, offset: int, data: memoryview, *, wait: bool) -> int:
        """Gather ``data``; returns how many bytes, and the caller must write the others.

        wait : as in `WritableArray.write`; if False, a second call with True may gather the others.
        """
        done = 0
        while done < len(data):
            taken = self._append(offset + done, data[done:], wait=wait)
            if not taken and self._begin(offset + done, wait=wait):
                taken = self._append(offset + done, data[done:], wait=wait)
            if not taken:
                break
            done += taken
        return done

    def _append(self, offset: int, data: memoryview, *, wait: bool) -> int:
        gathered = self._gathered
        return 0 if gathered is None else self._gathering.append(gathered, offset, data, wait=wait)

    def _begin(self, offset: int, *, wait: bool) -> bool:
        if not wait and (self._staged or self._gathering.pending):
            # A thread that touches a staging file, or scatters, takes long.
            return False
        first, last = self._grid.slab_at(offset // self._item)
        if offset == self._planned:
            # The last slab came to its end.
            self._expected.times = 1
        self._planned = last * self._item
        slab = SlabChunks(self._elements, self._changes, first, last, staged=self._staged)
        if not slab.nbytes or not self._gathering.begin(
            slab, offset, self._planned - offset, wait=wait
        ):
            return False
        self._gathered = slab
        return True


def _row_of_shards(elements: Elements, changes: ElementChanges) -> SlabGrid | None:
    """Slabs of whole shards; None if chunks are objects of their own, or shards differ."""
    layout, window = elements.array.array.layout, changes.window
    shard, tile = layout.stored.regular_shape, window.grid.regular_shape
    if not layout.sharded or shard is None or tile is None:
        return None
    if elements.reversed:
        shard = shard[::-1]
    return SlabGrid.plan_row(window, tuple(map(floordiv, shard, tile)))


def _can_be_staged(changes: ElementChanges, grid: SlabGrid, item: int) -> bool:
    """Whether a staging file has room for a slab and its marks, and memory for all the rest."""
    gathering = changes.array.gathering
    shape = changes.window.grid.regular_shape
    if shape is None or _most_memory(changes, grid, staged=True) > gathering.largest:
        return False
    return grid.chunks * math.prod(shape) * (item + 1) <= gathering.largest_staged


def _most_memory(changes: ElementChanges, grid: SlabGrid, *, staged: bool) -> int:
    """The most bytes that gathering a slab takes."""
    if staged:
        return grid.chunks * OVERHEAD
    each = changes.array.largest_change
    if changes.window.grid.regular_shape is None:
        return 2 * grid.chunks * each
    return grid.chunks * each
