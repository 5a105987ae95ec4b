"""Changes to an array, gathered tile by tile and seen at once by whoever reads.

A write goes into `TileChanges`; reads see it at once, through the same interface that
`CachedArray` has. A stored object is written when all of it is new, when somebody asks
(fsync, close), when its changes have waited long, or when memory for changes runs short.

The event loop copies nothing here but what it was given to write, and waits for nobody: where
somebody else has a lock, or there is more to do, a thread does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from zarrfs.array.block import Block
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_cache import Deliver, Delivery
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
from zarrfs.jobs.executor import THREADS, Executor
from zarrfs.jobs.ticket import Done, Ticket

log = logging.getLogger(__name__)

# Bytes that the event loop may copy before it changes a chunk which is being stored.
_COPIED_AT_ONCE = 256 << 10


class WritableArray:
    """A cached array that can be written to.

    cached : the array without changes.
    tiles : what is changed together; `write` and `write_part` count in tiles.
    writes : grows with every write, as soon as what it has written is there to be read.
    gathering : what is written from front to back goes there first.
    flush : store all changes, several objects at once. Blocks. Raises the first ZarrfsError;
        what could not be stored stays, and can be stored later.
    """

    def __init__(
        self,
        write_back: WriteBack,
        cached: CachedArray,
        writer: ChunkWriter,
        executor: Executor = THREADS,
        *,
        shares_memory: bool = False,
    ) -> None:
        """
        executor : of jobs that store chunks.
        shares_memory : whether what is gathered should be shared with worker processes.
        """
        self._write_back = write_back
        self.cached = cached
        self.array = cached.array
        self.freshness = cached.freshness
        self.shares_memory = cached.shares_memory
        self.check = cached.check
        self.run = cached.run
        self.tiles = Tiles(cached.array.layout)
        self._dirty = DirtyObjects(self.tiles)
        self.gathering = Gathering(write_back, self._put, self._written, shared=shares_memory)
        self._flusher = Flusher(write_back, cached, writer, self._dirty, self.gathering, executor)
        self.writes = 0
        self._count_lock = Lock()
        self.flush = self._flusher.flush
        write_back.register(self._flusher)

    def retire(self) -> None:
        """Nobody will write to it again: once all of its changes are stored, forget it."""
        self._write_back.retire(self._flusher)

    # --- what a CachedArray has -------------------------------------------------

    @property
    def state(self) -> tuple[int, ...]:
        return (*self.cached.state, self.writes)

    @property
    def largest_load(self) -> int:
        return self.cached.largest_load

    def get(self, index: Index) -> Chunk | None:
        if self.gathering.pending:
            return None
        if not self._dirty:
            return self.cached.get(index)
        tile, place = self.tiles.locate(index)
        changes = self._dirty.find(tile)
        if changes is None:
            return self.cached.get(index)
        return _now(changes, place)

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        if self.gathering.pending:
            return None
        if not self._dirty:
            return self.cached.get_all(indices)
        found = []
        for index in indices:
            chunk = self.get(index)
            if chunk is None:
                return None
            found.append(chunk)
        return found

    def get_row(self, index: Index, last: Sequence[int]) -> Sequence[memoryview] | None:
        if self._any_dirty((*index, column) for column in last):
            return None
        return self.cached.get_row(index, last)

    def get_bytes(self, index: Index) -> memoryview | None:
        return None if self._any_dirty([index]) else self.cached.get_bytes(index)

    def passed(self, index: Index) -> None:
        self.cached.passed(index)

    def _any_dirty(self, indices: Iterable[Index]) -> bool:
        """Whether one of these chunks may be being changed: it is copied as `get` has it."""
        if self.gathering.pending:
            return True
        return bool(self._dirty) and self._dirty.any({self.tiles.locate(i).tile for i in indices})

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None:
        if self.gathering.pending:
            # To spread takes too long for the event loop.
            def spread() -> None:
                self.gathering.spread()
                self._request(indices, deliver, done, keep=keep)

            self._in_thread(spread, done, ahead=ahead)
            return
        if not self._dirty:
            self.cached.request(indices, deliver, done, keep=keep, ahead=ahead)
            return
        clean: list[Index] = []
        changed: list[Index] = []
        ready: list[tuple[Index, Chunk]] = []
        for index in indices:
            tile, place = self.tiles.locate(index)
            changes = self._dirty.find(tile)
            if changes is None:
                clean.append(index)
            elif (chunk := _now(changes, place)) is not None:
                ready.append((index, chunk))
            else:
                changed.append(index)
        if ready:
            deliver(ready)
        ticket = Ticket(2, done)
        if changed:
            # What is stored of them may be at hand, and to put both together takes long.
            over = ticket.part()
            self._in_thread(
                lambda: self._request(changed, deliver, over, keep=keep),
                over,
                ahead=ahead,
            )
        else:
            ticket.finish()
        self._request(clean, deliver, ticket.part(), keep=keep, ahead=ahead)

    def _in_thread(self, work: Callable[[], None], done: Done, *, ahead: bool) -> None:
        def run() -> None:
            try:
                work()
            except Exception as error:
                log.exception("chunks of %s could not be asked for", self.array.path or "/")
                done(ChunkError(self.array.path, f"cannot be read: {error!r}"))

        self.run(run, ahead=ahead)

    def _request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool,
        ahead: bool = False,
    ) -> None:
        """Deliver chunks as they are stored, with their changes."""
        layout = self.array.layout
        stored_since = self._dirty.enter()
        outdated: list[Index] = []

        def overlay(delivery: Delivery) -> None:
            found: list[tuple[Index, Chunk]] = []
            for index, chunk in delivery:
                stored = layout.stored_index(index)
                tile, place = self.tiles.locate(index)
                changes = self._dirty.find(tile)
                if changes is not None:
                    with changes.lock:
                        # What was stored by now may be in neither of the two.
                        if changes.gone or stored in stored_since:
                            outdated.append(index)
                        else:
                            found.append((index, changes.over(place, chunk)))
                elif stored in stored_since:
                    # The chunk may have been loaded before changes were stored, which are
                    # not dirty any more.
                    outdated.append(index)
                else:
                    found.append((index, chunk))
            if found:
                deliver(found)

        def over(error: ChunkError | None) -> None:
            self._dirty.leave(stored_since)
            if outdated and error is None:
                self.request(outdated, deliver, done, keep=keep, ahead=ahead)
            else:
                done(error)

        self.cached.request(indices, overlay, over, keep=keep, ahead=ahead)

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
        """As `CachedArray.scan`. Blocks: not for the event loop."""
        self.gathering.spread()
        if not self._dirty:
            # What changes meanwhile changes `state` too.
            self.cached.scan(block, done, ahead=ahead)
            return
        by_index = {piece.chunk: piece for piece in block.pieces()}

        def deliver(delivery: Delivery) -> None:
            for index, chunk in delivery:
                piece = by_index[index]
                piece.target[...] = chunk.view(block.carrier)[piece.source]

        self.request(list(by_index), deliver, done, keep=False, ahead=ahead)

    # --- writing ----------------------------------------------------------------

    def write(
        self, tile: Index, where: Slices, values: Chunk, view: np.dtype[Any], wait: bool
    ) -> bool:
        """Set elements of a tile, as `Change` says.

        wait : block until there is memory, storing older changes if need be; then
            raises ZarrfsError where those cannot be stored. Otherwise it is False where there
            is no memory now, or where it would take long.
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
            # There are too many parts of elements; the store has the rest of them.
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

        values : for which there must be room; None: part of an element.
        """
        if self.gathering.pending:
            if not wait:
                return False
            # It is older.
            self.gathering.spread()
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
                self._submit_whole(tile)
                return tried.done
            # Whoever waits for memory holds none.
            budget.release(reserved)
            reserved = 0
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
        reserved: int,
        *,
        wait: bool,
    ) -> _Tried:
        while True:
            found = self._dirty.find(tile)
            changes = TileChanges(self.tiles.form(tile)) if found is None else found
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
                if found is None and not self._dirty.put(tile, changes):
                    continue
                if found is not None:
                    self._dirty.counted(tile, changes, was_whole=was_whole)
                self._written()
                return _Tried(done, taken)
            finally:
                changes.lock.release()

    def _put(self, change: Change, since: float) -> int:
        """See `zarrfs.cache.write.gathering.Changed`."""
        tile = change.tile
        while True:
            found = self._dirty.find(tile)
            changes = TileChanges(self.tiles.form(tile), since) if found is None else found
            with changes.lock:
                if changes.gone:
                    continue
                was_whole = changes.whole
                changes.write(*change[1:])
                taken = grown(changes)
                if found is None and not self._dirty.put(tile, changes):
                    continue
                if found is not None:
                    self._dirty.counted(tile, changes, was_whole=was_whole)
            self._submit_whole(tile)
            return taken

    def _submit_whole(self, tile: Index) -> None:
        stored = self.tiles.stored(tile)
        if self._dirty.schedule_whole(stored):
            self._flusher.submit(stored)

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
        """Make chunks fill value again and store that. Blocks. Raises ZarrfsError."""
        layout = self.array.layout
        plain = self._plain()
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
        self._change(tile, partial(_adopt, elements, marked), None, wait=True)

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError; the changes stay then."""
        self._flusher.flush_object(stored)

    def _plain(self) -> np.dtype[Any]:
        return np.dtype(f"V{self.array.layout.data_type.item_size}")


class _Tried(NamedTuple):
    """
    done : what came of a change; None: it needs more memory.
    taken : bytes of memory that it took, or needs.
    """

    done: bool | None
    taken: int


def _now(changes: TileChanges, place: Index) -> Chunk | None:
    """A chunk that is at hand, if nobody has its lock: whoever asks may not wait."""
    if not changes.lock.acquire(blocking=False):
        return None
    try:
        return None if changes.gone else changes.now(place)
    finally:
        changes.lock.release()


def _adopt(elements: Chunk, marked: Bits, changes: TileChanges) -> bool:
    changes.adopt(elements, marked)
    return True
