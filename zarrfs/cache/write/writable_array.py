"""Changes to an array, collected tile by tile and visible to readers at once.

A write goes into `TileChanges`. A stored object is written when all of it is new, at fsync and
close, when its changes have waited long, or when memory for changes is short. A read looks for
changes of a tile first, and then for chunks as `CachedArray` has them.

The event loop copies only the data that it was given to write, and never waits: if a lock is taken,
or there is more to do, as to combine changes and stored elements, a thread does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.block import Block
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.array.encoding_check import EncodingCheck
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_loads import Deliver, Delivery
from zarrfs.cache.read.flights import Done, Keep
from zarrfs.cache.write.dirty_objects import DirtyObjects, grown
from zarrfs.cache.write.flusher import Flusher
from zarrfs.cache.write.gathering import Change, Gathering
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tile_copy import Bits, Bytes
from zarrfs.cache.write.tiles import Slices, Tiles
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Processes, suited
from zarrfs.jobs.store_chunks import StoreChunks

# Bytes that the event loop may copy before it changes a chunk that is being stored.
_COPIED_AT_ONCE = 256 << 10
# Changes of gathered data that are made together, and whose objects are then stored in batches.
_PUT_AT_ONCE = 1024


class WritableArray(CachedArray):
    """A cached array that can be written to; the units of `write` and `write_part` are tiles.

    tiles : the units of change.
    writes : grows with every write, before the writer gets its answer.
    gathering : the first stop of sequential writes.
    encoding : whether its codecs can encode.
    flush : store all changes, several objects at once. Blocks. Raises the first ZarrfsError;
        changes that could not be stored stay, and can be stored later.
    flush_object : as `flush`, of one object.
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
        self.tiles = Tiles(array.layout)
        self.encoding = EncodingCheck(array.layout)
        self.writes = 0
        self._dirty = DirtyObjects(self.tiles)
        self.gathering = Gathering(write_back, self._put, self._written)
        storing = suited(StoreChunks, array, processes)
        self._flusher = Flusher(write_back, self, writer, self._dirty, self.gathering, storing)
        self._count_lock = Lock()
        self.flush, self.flush_object = self._flusher.flush, self._flusher.flush_object
        write_back.register(self._flusher)

    @property
    def clean(self) -> bool:
        return self._flusher.clean

    def retire(self) -> None:
        self._write_back.retire(self._flusher)

    @property
    def state(self) -> tuple[int, ...]:
        return (*super().state, self.writes)

    # --- reading ----------------------------------------------------------------

    def get(self, index: Index) -> Chunk | None:
        if self.gathering.pending:
            return None
        tile, place = self.tiles.locate(index)
        changes = self._dirty.find(tile)
        if changes is None:
            return super().get(index)
        return changes.now(place, self.freshness.foreign)

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        if self.clean:
            return super().get_all(indices)
        found = []
        for index in indices:
            if (chunk := self.get(index)) is None:
                return None
            found.append(chunk)
        return found

    def get_data(self, indices: Sequence[Index]) -> Sequence[memoryview] | None:
        # Readers copy a chunk that may be changing as `get` returns it.
        if not self.clean:
            tiles = {self.tiles.locate(index)[0] for index in indices}
            if self.gathering.pending or any(map(self._dirty.find, tiles)):
                return None
        return super().get_data(indices)

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep = Keep.IN_ORDER,
        ahead: bool = False,
    ) -> None:
        if self.clean:
            super().request(indices, deliver, done, keep=keep, ahead=ahead)
            return
        slow, foreign = self.gathering.pending, self.freshness.foreign
        left = list(indices) if slow else []
        ready: list[tuple[Index, Chunk]] = []
        for index in () if slow else indices:
            tile, place = self.tiles.locate(index)
            changes = self._dirty.find(tile)
            if changes is not None and (chunk := changes.now(place, foreign)) is not None:
                ready.append((index, chunk))
            else:
                left.append(index)
                slow |= changes is not None
        if ready:
            deliver(ready)
        if not slow:
            self._request(left, deliver, done, keep=keep, ahead=ahead)
            return

        def combine() -> None:
            self.gathering.scatter()
            self._request(left, deliver, done, keep=keep)

        # Scattering, and combining changes with stored elements, takes too long for the event loop.
        self.in_thread(combine, done, ahead=ahead)

    def _request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep,
        ahead: bool = False,
    ) -> None:
        """Deliver chunks as they are stored, with their changes."""
        layout, freshness = self.array.layout, self.freshness
        foreign, checks = freshness.foreign, freshness.checks
        stored_since = self._dirty.enter()
        outdated: list[Index] = []

        def overlay(delivery: Delivery) -> None:
            found: list[tuple[Index, Chunk]] = []
            for index, chunk in delivery:
                stored = layout.stored_index(index)
                tile, place = self.tiles.locate(index)
                changes = self._dirty.find(tile)
                with nullcontext() if changes is None else changes.lock:
                    # Elements stored meanwhile may be missing both in the loaded chunk and in the
                    # changes, or there may be no changes any more.
                    if stored in stored_since or (changes is not None and changes.gone):
                        outdated.append(index)
                    elif changes is None:
                        found.append((index, chunk))
                    else:
                        current = foreign if checks == freshness.checks else -1
                        found.append((index, changes.over(place, chunk, current)))
            if found:
                deliver(found)

        def over(error: ChunkError | None) -> None:
            self._dirty.leave(stored_since)
            if outdated and error is None:
                self.request(outdated, deliver, done, keep=keep, ahead=ahead)
            else:
                done(error)

        super().request(indices, overlay, over, keep=keep, ahead=ahead)

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
        """As `CachedArray.scan`. Blocks: not for the event loop."""
        self.gathering.scatter()
        if not self._dirty:
            # Changes during the scan also change `state`.
            super().scan(block, done, ahead=ahead)
            return
        by_index = {piece.chunk: piece for piece in block.pieces()}

        def deliver(delivery: Delivery) -> None:
            for index, chunk in delivery:
                piece = by_index[index]
                piece.target[...] = chunk.view(block.carrier)[piece.source]

        self.request(list(by_index), deliver, done, keep=Keep.NO, ahead=ahead)

    # --- writing ----------------------------------------------------------------

    def write(
        self, tile: Index, where: Slices, values: Chunk, view: np.dtype[Any], wait: bool
    ) -> bool:
        """Set elements of a tile, as `Change` says.

        wait : block until there is memory, storing older changes if needed; raises ZarrfsError if
            these cannot be stored. False: return False if there is no memory now, or if the write
            would take long.
        """
        return self._change(tile, lambda c: c.write(where, values, view), values, wait=wait)

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
            self.flush_object(self.tiles.stored(tile))
        return True

    def _change(
        self,
        tile: Index,
        apply: Callable[[TileChanges], bool | None],
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
                budget.charge(tried.taken - reserved)
                if tried.done:
                    self._written()
                self._submit_whole([tile])
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
        apply: Callable[[TileChanges], bool | None],
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
                done = apply(changes) is not False
                taken = grown(changes)
                if self._dirty.put([(tile, changes, was_whole)]):
                    continue
                return _Tried(done, taken)
            finally:
                changes.lock.release()

    def _put(self, changes: Iterator[Change], since: float) -> Iterator[int]:
        """See `zarrfs.cache.write.gathering.Changed`."""
        while some := list(islice(changes, _PUT_AT_ONCE)):
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
        others = self._dirty.put([(tile, made, False) for tile, (_, made) in whole.items()])
        left += [whole.pop(tile)[0] for tile in others]
        yield sum([made.charged for _, made in whole.values()])
        self._submit_whole(list(whole))
        for change in left:
            # The gathering has reserved the memory, and has counted the write.
            apply = partial(_write_boxes, change)
            tried = self._try_change(change.tile, apply, None, math.inf, wait=True, since=since)
            self._submit_whole([change.tile])
            yield tried.taken

    def _submit_whole(self, tiles: Sequence[Index]) -> None:
        if whole := self._dirty.schedule_whole(tiles):
            self._flusher.due.add(whole)

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
            self.flush_object(stored)

    # --- restoring, see `zarrfs.cache.write.restoring` ---------------------------

    def adopt(self, tile: Index, elements: Chunk, marked: Bits) -> None:
        """Change the ``marked`` elements of a tile. Blocks. Raises ZarrfsError."""
        self._change(tile, lambda changes: changes.adopt(elements, marked), None, wait=True)


class _Tried(NamedTuple):
    """
    done : the result of a change; None: it needs more memory.
    taken : bytes of memory that it took, or needs.
    """

    done: bool | None
    taken: int


def _write_boxes(change: Change, changes: TileChanges) -> None:
    changes.write_boxes(*change[1:])
