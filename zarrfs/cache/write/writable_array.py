"""Changes to an array, gathered chunk by chunk and seen at once by whoever reads.

A write goes into a `DirtyChunk`; reads see it at once, through the same interface that
`CachedArray` has. A stored object is written when all of it is new, when somebody asks
(fsync, close), when its changes have waited long, or when memory for changes runs short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from zarrfs.array.block import Block
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_cache import Deliver, Delivery
from zarrfs.cache.write.dirty_chunk import Bits, Bytes, DirtyChunk, Slices
from zarrfs.cache.write.dirty_objects import DirtyObjects
from zarrfs.cache.write.flusher import Flusher
from zarrfs.cache.write.gathering import Change, Gathering
from zarrfs.cache.write.scattered_changes import ScatteredChanges
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.store_workers import StoreWorkers
from zarrfs.jobs.ticket import Done


class WritableArray:
    """A cached array that can be written to.

    cached : the array without changes.
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
        apart: StoreWorkers | None = None,
    ) -> None:
        self._write_back = write_back
        self.cached = cached
        self.array = cached.array
        self.freshness = cached.freshness
        self.decodes_apart = cached.decodes_apart
        self.check = cached.check
        self.run = cached.run
        self._dirty = DirtyObjects(cached.array)
        self.gathering = Gathering(
            write_back, self._put, self._written, shared=writer.encodes_apart
        )
        self._flusher = Flusher(write_back, cached, writer, self._dirty, self.gathering, apart)
        self.writes = 0
        self.flush = self._flusher.flush
        write_back.register(self._flusher)

    # --- what a CachedArray has -------------------------------------------------

    @property
    def state(self) -> tuple[int, ...]:
        return (*self.cached.state, self.writes)

    @property
    def largest_load(self) -> int:
        return self.cached.largest_load

    def get(self, index: Index) -> Chunk | None:
        self.gathering.spread()
        if self._dirty:
            with self._dirty.changed:
                dirty = self._dirty.find(index)
                if dirty is not None:
                    return dirty.chunk if dirty.readable else None
                if self._dirty.find_scattered(index) is not None:
                    return None
        return self.cached.get(index)

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        self.gathering.spread()
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
        """Whether one of these chunks is being changed: it is copied as `get` has it."""
        self.gathering.spread()
        if not self._dirty:
            return False
        with self._dirty.changed:
            return any(map(self._dirty.is_dirty, indices))

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
        once: bool = False,
    ) -> None:
        self.gathering.spread()
        if not self._dirty:
            self.cached.request(indices, deliver, done, keep=keep, ahead=ahead, once=once)
            return
        layout = self.array.layout
        stored_since = self._dirty.enter()
        outdated: list[Index] = []

        def overlay(delivery: Delivery) -> None:
            clean: list[tuple[Index, Chunk]] = []
            with self._dirty.changed:
                for index, chunk in delivery:
                    if layout.stored_index(index) in stored_since:
                        # The chunk may have been loaded before changes were stored, which are
                        # not dirty any more.
                        outdated.append(index)
                    elif (dirty := self._dirty.find(index)) is not None:
                        dirty.complete_with(chunk)
                        deliver([(index, dirty.chunk)])
                    elif (few := self._dirty.find_scattered(index)) is not None:
                        deliver([(index, few.over(chunk))])
                    else:
                        clean.append((index, chunk))
            if clean:
                deliver(clean)

        def over(error: ChunkError | None) -> None:
            self._dirty.leave(stored_since)
            if outdated and error is None:
                self.request(outdated, deliver, done, keep=keep, ahead=ahead, once=once)
            else:
                done(error)

        others: list[Index] = []
        for index in indices:
            with self._dirty.changed:
                dirty = self._dirty.find(index)
                if dirty is not None and dirty.readable:
                    deliver([(index, dirty.chunk)])
                else:
                    others.append(index)
        self.cached.request(others, overlay, over, keep=keep, ahead=ahead, once=once)

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
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
        self, index: Index, where: Slices, values: Chunk, view: np.dtype[Any], wait: bool
    ) -> bool:
        """Set elements of a chunk, as `Change` says; False if there is no memory for that now.

        wait : block until there is memory, storing older changes if need be; then
            raises ZarrfsError where those cannot be stored.
        """

        if ScatteredChanges.fits(self.array.layout.read.valid_shape(index), values):
            done = self._scatter(index, where, values, view, wait=wait)
            if done is not None:
                return done
        change = Change(index, where, values, view)
        return self._change(index, partial(_set, change), wait=wait)

    def write_part(self, index: Index, place: Index, value: Bytes, known: Bits, wait: bool) -> bool:
        """Set some bytes of one element; otherwise as `write`.

        place : of the element in the chunk.
        value, known : its bytes in memory, and which of them to set.
        """
        while not self._change(
            index, lambda dirty: dirty.write_part(place, value, known), wait=wait
        ):
            if not wait:
                return False
            # There are too many parts of elements; the store has the rest of them.
            self._flusher.flush_object(self.array.layout.stored_index(index))
        return True

    def _scatter(
        self, index: Index, where: Slices, values: Chunk, view: np.dtype[Any], *, wait: bool
    ) -> bool | None:
        """Keep a small change of a chunk; None where the chunk should be changed, else `write`."""
        stored = self.array.layout.stored_index(index)
        cost = ScatteredChanges.cost(values)
        # It is older.
        self.gathering.spread()
        with self._dirty.changed:
            if self._dirty.find(index, stored) is not None:
                return None
        if wait:
            self._write_back.relieve(cost)
        elif not self._write_back.budget.try_reserve(cost):
            return False
        with self._dirty.changed:
            kept = self._dirty.scatter(stored, index, where, values, view)
            if kept:
                self._written()
        if not kept:
            self._write_back.budget.release(cost)
        return kept or None

    def _change(self, index: Index, apply: Callable[[DirtyChunk], bool], *, wait: bool) -> bool:
        """Make a chunk dirty if it is not yet, and change it; see `write`."""
        layout = self.array.layout
        stored = layout.stored_index(index)
        cost = reserved = freed = 0
        # It is older.
        self.gathering.spread()
        while True:
            with self._dirty.changed:
                found = self._dirty.find(index, stored) is not None
                if not found and reserved:
                    freed = self._dirty.add(stored, index)
                    found, reserved = True, 0
                if found:
                    changed = self._dirty.change(stored, index, apply)
                    self._written()
                    whole = self._dirty.schedule_whole(stored)
                    break
            cost = self._cost(index)
            if wait:
                self._write_back.relieve(cost)
            elif not self._write_back.budget.try_reserve(cost):
                return False
            reserved = cost
        if reserved or freed:
            self._write_back.budget.release(reserved + freed)
        if whole:
            self._flusher.submit(stored)
        return changed

    def _put(self, change: Change, since: float) -> int:
        """See `zarrfs.cache.write.gathering.Changed`."""
        index = change.chunk
        stored = self.array.layout.stored_index(index)
        taken = 0
        with self._dirty.changed:
            found = self._dirty.find(index, stored) is not None
            if not found:
                few = self._dirty.find_scattered(index, stored)
                # What was changed before must not come over what is in the memory.
                memory = change.memory if few is None else None
                taken = -self._dirty.add(stored, index, since, memory)
            self._dirty.change(stored, index, partial(_set, change))
            if not found:
                taken += self._dirty.charge(stored, index)
            whole = self._dirty.schedule_whole(stored)
        if whole:
            self._flusher.submit(stored)
        return taken

    def _written(self) -> None:
        self.writes += 1
        self.freshness.touched()

    def _cost(self, index: Index) -> int:
        layout = self.array.layout
        return DirtyChunk.cost(layout.read.chunk_shape(index), layout.data_type.dtype)

    @property
    def largest_change(self) -> int:
        """The most bytes of memory that changing one chunk takes."""
        layout = self.array.layout
        return DirtyChunk.cost(layout.read.largest_chunk, layout.data_type.dtype)

    def remove(self, indices: Sequence[Index]) -> None:
        """Make chunks fill value again and store that. Blocks. Raises ZarrfsError."""
        layout = self.array.layout
        plain = self._plain()
        for index in indices:
            where = tuple(slice(n) for n in layout.read.valid_shape(index))
            fill = layout.data_type.element(layout.fill).view(plain)
            self.write(index, where, np.broadcast_to(fill, _lengths(where)), plain, True)
        for stored in {layout.stored_index(index) for index in indices}:
            self._flusher.flush_object(stored)

    # --- restoring, see `zarrfs.cache.write.restoring` ---------------------------

    def adopt(self, index: Index, elements: Chunk, marked: Bits) -> None:
        """Change the ``marked`` elements of a chunk. Blocks. Raises ZarrfsError."""
        self._change(index, partial(_adopt, elements, marked), wait=True)

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError; the changes stay then."""
        self._flusher.flush_object(stored)

    def _plain(self) -> np.dtype[Any]:
        return np.dtype(f"V{self.array.layout.data_type.item_size}")


def _lengths(where: Slices) -> tuple[int, ...]:
    return tuple(s.stop - (s.start or 0) for s in where)


def _set(change: Change, dirty: DirtyChunk) -> bool:
    dirty.write(change.where, change.values, change.view)
    return True


def _adopt(elements: Chunk, marked: Bits, dirty: DirtyChunk) -> bool:
    dirty.adopt(elements, marked)
    return True
