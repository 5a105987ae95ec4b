"""Changes to an array, collected tile by tile and visible to readers at once.

A write goes into `TileChanges`, and `OverlaidArray` shows it to readers. A stored object is written
when all of it is new, at fsync and close, when its changes have waited long, or when memory for
changes is short.

The event loop copies only the data that it was given to write, and never waits: if a lock is taken,
or there is more to do, a thread does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.write.dirty_objects import grown
from zarrfs.cache.write.flusher import Flusher
from zarrfs.cache.write.gathering import Change, Gathering
from zarrfs.cache.write.overlaid_array import OverlaidArray
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tile_copy import Bits, Bytes
from zarrfs.cache.write.tiles import Slices
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Processes, suited
from zarrfs.jobs.store_chunks import StoreChunks

# Bytes that the event loop may copy before it changes a chunk that is being stored.
_COPIED_AT_ONCE = 256 << 10
# Changes of gathered data that are made together, and whose objects are then stored in batches.
_PUT_TOGETHER = 1024


class WritableArray(OverlaidArray):
    """A cached array that can be written to; the units of `write` and `write_part` are tiles.

    flush : store all changes, several objects at once. Blocks. Raises the first ZarrfsError;
        changes that could not be stored stay, and can be stored later.
    """

    def __init__(
        self,
        cache: BlockCache,
        array: Array,
        recheck: float,
        write_back: WriteBack,
        writer: ChunkWriter,
        processes: Processes | None = None,
    ) -> None:
        """``cache``, ``array``, ``recheck``, ``processes`` : as in `CachedArray`."""
        super().__init__(cache, array, recheck, processes)
        self._write_back = write_back
        self.gathering = Gathering(write_back, self._put, self._written)
        storing = suited(StoreChunks, array, processes)
        self._flusher = Flusher(write_back, self, writer, self._dirty, self.gathering, storing)
        self._count_lock = Lock()
        self.flush = self._flusher.flush
        write_back.register(self._flusher)

    @property
    def clean(self) -> bool:
        return self._flusher.clean

    def retire(self) -> None:
        self._write_back.retire(self._flusher)

    # --- writing ----------------------------------------------------------------

    def write(
        self, tile: Index, where: Slices, values: Chunk, view: np.dtype[Any], wait: bool
    ) -> bool:
        """Set elements of a tile, as `Change` says.

        wait : block until there is memory, storing older changes if needed; raises ZarrfsError if
            these cannot be stored. False: return False if there is no memory now, or if the write
            would take long.
        """

        def apply(changes: TileChanges) -> bool:
            changes.write(where, values, view)
            return True

        return self._change(tile, apply, values, wait=wait)

    def write_part(self, tile: Index, place: Index, value: Bytes, known: Bits, wait: bool) -> bool:
        """Set some bytes of one element; otherwise as `write`.

        place : of the element in the tile.
        value, known : its bytes in memory, and which of them to set.
        """
        while not self._change(
            tile, lambda changes: changes.write_part(place, value, known), None, wait=wait
        ):
            if not wait:
                return False
            # Too many elements are new in part. Storing them completes them from the store.
            self._flusher.flush_object(self.tiles.stored(tile))
        return True

    def _change(
        self,
        tile: Index,
        apply: Callable[[TileChanges], bool],
        values: Chunk | None,
        *,
        wait: bool,
    ) -> bool:
        """Change a tile; see `write`.

        values : the elements that need room; None: part of an element.
        """
        if self.gathering.pending:
            if not wait:
                return False
            # The gathered data are older.
            self.gathering.scatter()
        budget = self._write_back.budget
        reserved = 0
        while True:
            try:
                tried = self._try_change(tile, apply, values, reserved, wait=wait)
            except BaseException:
                budget.release(reserved)
                raise
            if tried.done is not None:
                budget.charge(max(0, tried.taken - reserved))
                budget.release(max(0, reserved - tried.taken))
                if tried.done:
                    self._written()
                self._submit_whole(tile)
                return tried.done
            # A thread that waits for memory must hold none.
            budget.release(reserved)
            if wait:
                self._write_back.relieve(tried.taken)
            elif not budget.try_reserve(tried.taken):
                return False
            reserved = tried.taken

    def _try_change(
        self,
        tile: Index,
        apply: Callable[[TileChanges], bool],
        values: Chunk | None,
        reserved: float,
        *,
        wait: bool,
        since: float | None = None,
    ) -> _Tried:
        """Change a tile once, if ``reserved`` bytes of memory are enough; see `_change`.

        since : when the elements were written; None: now.
        """
        while True:
            found = self._dirty.find(tile)
            changes = TileChanges(self.tiles.form(tile), since) if found is None else found
            if not changes.lock.acquire(blocking=wait):
                return _Tried(False, 0)
            try:
                if changes.gone:
                    continue
                if not wait and changes.copies_to_change() > _COPIED_AT_ONCE:
                    return _Tried(False, 0)
                need = changes.room_for(values)
                if need > reserved:
                    return _Tried(None, need)
                was_whole = changes.whole
                done = apply(changes)
                taken = grown(changes)
                if not self._dirty.put(tile, changes, was_whole=was_whole):
                    continue
                return _Tried(done, taken)
            finally:
                changes.lock.release()

    def _put(self, changes: Iterator[Change], since: float) -> Iterator[int]:
        """See `zarrfs.cache.write.gathering.Changed`."""
        while some := list(islice(changes, _PUT_TOGETHER)):
            yield from self._put_some(some, since)

    def _put_some(self, some: Sequence[Change], since: float) -> Iterator[int]:
        """Most tiles are new as a whole: they are added in one step."""
        left: list[Change] = []
        whole: dict[Index, tuple[Change, TileChanges]] = {}
        inside = self.tiles.inside
        forms = self.tiles.forms([change.tile for change in some])
        for change, form in zip(some, forms, strict=True):
            where = change.boxes[0][0]
            if change.memory is not None and (where == inside or form.is_whole(where)):
                whole[change.tile] = change, TileChanges(form, since, change.memory)
            else:
                left.append(change)
        added = self._dirty.put_whole([(tile, made) for tile, (_, made) in whole.items()])
        left += [whole.pop(tile)[0] for tile in added.others]
        yield sum([made.charged for _, made in whole.values()])
        self._flusher.due.add(added.due)
        for change in left:
            # The gathering has reserved the memory, and has counted the write.
            apply = partial(_apply, change)
            tried = self._try_change(change.tile, apply, None, math.inf, wait=True, since=since)
            self._submit_whole(change.tile)
            yield tried.taken

    def _submit_whole(self, tile: Index) -> None:
        stored = self.tiles.stored(tile)
        if self._dirty.schedule_whole(stored):
            self._flusher.due.add([stored])

    def _written(self) -> None:
        with self._count_lock:
            self.writes += 1
            self.freshness.touched()

    @property
    def largest_change(self) -> int:
        """The most bytes of memory that changing one tile takes."""
        layout = self.array.layout
        elements = int(np.prod(self.tiles.grid.largest_chunk, dtype=np.int64))
        return TileChanges.cost(elements, layout.data_type.dtype)

    def remove(self, indices: Sequence[Index]) -> None:
        """Set chunks to the fill value and store that. Blocks. Raises ZarrfsError."""
        layout = self.array.layout
        plain = np.dtype(f"V{layout.data_type.item_size}")
        fill = layout.data_type.element(layout.fill).view(plain)
        for index in indices:
            tile, place = self.tiles.locate(index)
            part = self.tiles.form(tile).part(place)
            valid = layout.read.valid_shape(index)
            where = tuple([slice(s.start, s.start + n) for s, n in zip(part, valid, strict=True)])
            self.write(tile, where, np.broadcast_to(fill, valid), plain, True)
        for stored in {layout.stored_index(index) for index in indices}:
            self._flusher.flush_object(stored)

    # --- restoring, see `zarrfs.cache.write.restoring` ---------------------------

    def adopt(self, tile: Index, elements: Chunk, marked: Bits) -> None:
        """Change the ``marked`` elements of a tile. Blocks. Raises ZarrfsError."""

        def apply(changes: TileChanges) -> bool:
            changes.adopt(elements, marked)
            return True

        self._change(tile, apply, None, wait=True)

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError; the changes stay then."""
        self._flusher.flush_object(stored)


def _apply(change: Change, changes: TileChanges) -> bool:
    changes.write_boxes(*change[1:])
    return True


class _Tried(NamedTuple):
    """
    done : the result of a change; None: it needs more memory.
    taken : bytes of memory that it took, or needs.
    """

    done: bool | None
    taken: int
