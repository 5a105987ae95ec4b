"""Changes to an array, gathered chunk by chunk and stored object by object.

A write goes into a `DirtyChunk`; reads see it at once, through the same interface that
`CachedArray` has. A stored object is written when all of it is new, when somebody asks
(fsync, close), when its changes have waited long, or when memory for changes runs short.

How a flush keeps every change: it works on copies, and a chunk stops being dirty only if
it has not changed since the copy was made. Chunks that are new in part are completed from
the store at that moment, and stored under the condition that the object has not changed
in between; if it has, all of it is done again. So of two writers of different elements
of one chunk, both survive.

Shared state, under ``_changed``: ``_dirty`` with the chunks in it,
``_flushing``, ``writes``. The lock is held while elements are copied in or out, never
while anything waits.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Condition, Event
from typing import Any

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.chunk_cache import CachedArray, Deliver
from zarrfs.cache.dirty_chunk import DirtyChunk, Slices
from zarrfs.cache.freshness import Freshness
from zarrfs.cache.journal import Journal, JournalEntry
from zarrfs.cache.ticket import Done, Ticket
from zarrfs.cache.write_back import WriteBack
from zarrfs.errors import ChunkError, MissingChunkError, StoreConflict, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.store.base import ANY, Expected, Generation

log = logging.getLogger(__name__)

_TRIES = 16


class WritableArray:
    """A cached array that can be written to.

    writes : grows with every write.
    """

    def __init__(self, write_back: WriteBack, cached: CachedArray, writer: ChunkWriter) -> None:
        self._write_back = write_back
        self._cached = cached
        self._writer = writer
        self._dirty: dict[Index, dict[Index, DirtyChunk]] = {}
        self._flushing: set[Index] = set()
        self._changed = Condition()
        self.writes = 0
        write_back.register(self)

    # --- what a CachedArray has -------------------------------------------------

    @property
    def array(self) -> Array:
        return self._cached.array

    @property
    def freshness(self) -> Freshness:
        return self._cached.freshness

    @property
    def state(self) -> tuple[int, ...]:
        return (*self._cached.state, self.writes)

    @property
    def largest_load(self) -> int:
        return self._cached.largest_load

    def check(self) -> bool:
        return self._cached.check()

    def run(self, job: Callable[[], None], *, ahead: bool) -> None:
        self._cached.run(job, ahead=ahead)

    def work(self, job: Callable[[], None]) -> None:
        """Run ``job`` in a thread that may wait for chunks and for the store."""
        self._write_back.submit(job)

    def get(self, index: Index) -> Chunk | None:
        if self._dirty:
            with self._changed:
                dirty = self._find(index)
                if dirty is not None:
                    return dirty.chunk if dirty.readable else None
        return self._cached.get(index)

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None:
        if not self._dirty:
            self._cached.request(indices, deliver, done, keep=keep, ahead=ahead)
            return

        def overlay(index: Index, chunk: Chunk) -> None:
            # A flush may have ended since the chunk was asked for; its cache entry was
            # then dropped and loaded anew, so what is delivered has the change in it.
            with self._changed:
                dirty = self._find(index)
                if dirty is not None:
                    dirty.complete_with(chunk)
                    deliver(index, dirty.chunk)
                    return
            deliver(index, chunk)

        ready: list[Index] = []
        others: list[Index] = []
        with self._changed:
            for index in indices:
                dirty = self._find(index)
                (ready if dirty is not None and dirty.readable else others).append(index)
        ticket = Ticket(len(ready) + 1, done)
        for index in ready:
            with self._changed:
                dirty = self._find(index)
                if dirty is not None:
                    deliver(index, dirty.chunk)
            if dirty is None:
                self._cached.request([index], overlay, ticket.part(), keep=keep, ahead=ahead)
            else:
                ticket.finish()
        self._cached.request(others, overlay, ticket.part(), keep=keep, ahead=ahead)

    # --- writing ----------------------------------------------------------------

    def write(
        self, index: Index, where: Slices, values: Chunk, view: np.dtype[Any], *, wait: bool
    ) -> bool:
        """Set elements of a chunk; False if there is no memory for that now.

        where : slices of the chunk, inside the array.
        values : the new elements, of the type ``view`` in some byte order.
        wait : block until there is memory, storing older changes if need be; then
            raises ZarrfsError where those cannot be stored.
        """
        return self._change(index, lambda dirty: dirty.write(where, values, view), wait=wait)

    def _change(self, index: Index, apply: Callable[[DirtyChunk], None], *, wait: bool) -> bool:
        """Make a chunk dirty if it is not yet, and change it; see `write`."""
        layout = self.array.layout
        shape = layout.read.chunk_shape(index)
        stored = layout.stored_index(index)
        cost = DirtyChunk.cost(shape, layout.data_type.dtype)
        reserved = 0
        while True:
            with self._changed:
                dirty = self._find(index)
                if dirty is None and reserved:
                    dirty = DirtyChunk(
                        shape, layout.data_type.dtype, layout.read.valid_shape(index)
                    )
                    self._dirty.setdefault(stored, {})[index] = dirty
                    reserved = 0
                if dirty is not None:
                    apply(dirty)
                    self.writes += 1
                    self.freshness.touched()
                    whole = dirty.whole and self._all_new(stored)
                    break
            if wait:
                self._write_back.relieve(cost)
            elif not self._write_back.budget.try_reserve(cost):
                return False
            reserved = cost
        if reserved:
            self._write_back.budget.release(reserved)
        if whole:
            self._write_back.submit(partial(self.flush_quietly, stored))
        return True

    def remove(self, indices: Sequence[Index]) -> None:
        """Make chunks fill value again and store that. Blocks. Raises ZarrfsError."""
        layout = self.array.layout
        plain = self._plain()
        for index in indices:
            where = tuple(slice(n) for n in layout.read.valid_shape(index))
            fill = layout.data_type.element(layout.fill).view(plain)
            self.write(index, where, np.broadcast_to(fill, _lengths(where)), plain, wait=True)
        for stored in {layout.stored_index(index) for index in indices}:
            self.flush_object(stored)

    def keep(self, journal: Journal) -> list[Path]:
        """Save all changes for the next mount. Blocks. Raises JournalError."""
        with self._changed:
            changes = [
                (index, dirty.copy())
                for chunks in self._dirty.values()
                for index, dirty in chunks.items()
            ]
        path, layout = self.array.path, self._layout_name()
        return [journal.save(path, index, layout, dirty) for index, dirty in changes]

    def restore(self, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Store what an earlier mount of the array could not store. Blocks.

        Returns those that may not be stored: the array is another one by now, or
        somebody has changed the stored object since. Raises ZarrfsError where storing
        fails.
        """
        read = self.array.layout.read
        refused: list[JournalEntry] = []
        by_object: dict[Index, list[JournalEntry]] = defaultdict(list)
        for entry in entries:
            if entry.layout == self._layout_name() and read.contains(entry.index):
                by_object[self.array.layout.stored_index(entry.index)].append(entry)
            else:
                refused.append(entry)
        for stored, members in by_object.items():
            info = self.array.stored_info(stored)
            newer = 0 if info is None else info.mtime_ns or 0
            late = [entry for entry in members if entry.written_ns < newer]
            refused += [entry for entry in late if not self._holds(entry)]
            for entry in members:
                if entry not in late:
                    self._change(entry.index, partial(_adopt, entry), wait=True)
            self.flush_object(stored)
        return refused

    def _holds(self, entry: JournalEntry) -> bool:
        """Whether the changes are stored already: the last replay was cut short behind that."""
        (result,) = self.array.read_chunks([entry.index])
        if result.chunk is None:
            return False
        inside = tuple(slice(n) for n in self.array.layout.read.valid_shape(entry.index))
        marked = entry.marked[inside]
        stored = np.ascontiguousarray(result.chunk[inside]).view(entry.chunk.dtype)
        return bool(np.array_equal(stored[marked], entry.chunk[inside][marked]))

    def _layout_name(self) -> str:
        """Tells arrays apart whose chunks are not interchangeable."""
        layout = self.array.layout
        return (
            f"{list(self.array.metadata.shape)} in {list(layout.read.largest_chunk)} of "
            f"{layout.data_type.name}"
        )

    def _plain(self) -> np.dtype[Any]:
        return np.dtype(f"V{self.array.layout.data_type.item_size}")

    def _find(self, index: Index) -> DirtyChunk | None:
        of_object = self._dirty.get(self.array.layout.stored_index(index))
        return None if of_object is None else of_object.get(index)

    def _all_new(self, stored: Index) -> bool:
        """Whether every chunk of a stored object that holds part of the array is new."""
        chunks = self._dirty[stored]
        return len(chunks) == self.array.chunks_in(stored) and all(
            dirty.whole for dirty in chunks.values()
        )

    # --- storing ----------------------------------------------------------------

    @property
    def dirty_bytes(self) -> int:
        with self._changed:
            return sum(d.chunk.nbytes for chunks in self._dirty.values() for d in chunks.values())

    def oldest(self) -> tuple[float, Index] | None:
        """Since when the oldest change that nobody is storing waits, and in which object."""
        with self._changed:
            ages = [
                (min(dirty.since for dirty in chunks.values()), stored)
                for stored, chunks in self._dirty.items()
                if stored not in self._flushing
            ]
        return min(ages, default=None)

    def older_than(self, limit: float) -> list[Index]:
        """Objects with changes from before ``limit`` that nobody is storing."""
        with self._changed:
            return [
                stored
                for stored, chunks in self._dirty.items()
                if stored not in self._flushing
                and any(dirty.since < limit for dirty in chunks.values())
            ]

    def flush(self) -> None:
        """Store all changes, several objects at once. Blocks. Raises the first ZarrfsError."""
        with self._changed:
            objects = list(self._dirty)
        if not objects:
            return
        over = Event()
        errors: list[ZarrfsError] = []
        ticket = Ticket(len(objects), lambda _error: over.set())

        def flush_one(stored: Index) -> None:
            try:
                self.flush_object(stored)
            except ZarrfsError as error:
                errors.append(error)
            except Exception as error:  # the waiting caller must hear of it
                log.exception("storing %s failed", self.array.key(stored))
                errors.append(ChunkError(self.array.key(stored), f"storing failed: {error!r}"))
            finally:
                ticket.finish()

        for stored in objects:
            self._write_back.submit(partial(flush_one, stored))
        over.wait()
        if errors:
            raise errors[0]

    def flush_quietly(self, stored: Index) -> None:
        """Store the changes of one object; what fails is tried again, and told at fsync."""
        try:
            self.flush_object(stored)
        except ZarrfsError as error:
            log.warning("storing %s failed, will be tried again: %s", self.array.key(stored), error)

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks.

        Raises ZarrfsError; the changes then stay and can be stored later.
        """
        with self._changed:
            while stored in self._flushing:
                self._changed.wait()
            if stored not in self._dirty:
                return
            self._flushing.add(stored)
        try:
            copies, generation = self._store(stored)
            self._cached.stored_anew(stored, generation)
            self._settle(stored, copies)
        finally:
            with self._changed:
                self._flushing.discard(stored)
                self._changed.notify_all()

    def _store(self, stored: Index) -> tuple[dict[Index, DirtyChunk], Generation | None]:
        for _ in range(_TRIES):
            copies = {}
            for index in list(self._dirty[stored]):
                # The lock is let go in between, so that nobody waits for a whole shard.
                with self._changed:
                    copies[index] = self._dirty[stored][index].copy()
            try:
                expected = self._complete(copies)
                chunks = {index: dirty.chunk for index, dirty in copies.items()}
                return copies, self._writer.write(stored, chunks, expected)
            except StoreConflict:
                self.array.forget([stored])
        raise StoreConflict(self.array.key(stored), "is changed by somebody else again and again")

    def _complete(self, copies: dict[Index, DirtyChunk]) -> Expected:
        """Bring in the old elements of chunks that are new in part.

        Returns the state of the object that they came from. Raises ChunkError where
        the old chunk is damaged, StoreConflict where the object changes meanwhile.
        """
        partly = [index for index, dirty in copies.items() if not dirty.whole]
        expected: Expected = ANY
        for result in self.array.read_chunks(partly):
            base = result.chunk
            if isinstance(result.error, MissingChunkError):
                base = self.array.fill_chunk(result.index)
            if base is None:
                assert result.error is not None
                raise result.error
            if expected not in (ANY, result.generation):
                stored = self.array.layout.stored_index(result.index)
                raise StoreConflict(self.array.key(stored), "changed while it was read")
            expected = result.generation
            copies[result.index].complete_with(base)
        return expected

    def _settle(self, stored: Index, copies: dict[Index, DirtyChunk]) -> None:
        """Forget the changes that are stored now."""
        freed = 0
        with self._changed:
            chunks = self._dirty[stored]
            for index, copy in copies.items():
                if chunks[index].version == copy.version:
                    dirty = chunks.pop(index)
                    freed += DirtyChunk.cost(dirty.chunk.shape, dirty.chunk.dtype)
                else:
                    chunks[index].since = time.monotonic()
            if not chunks:
                del self._dirty[stored]
        if freed:
            self._write_back.budget.release(freed)


def _lengths(where: Slices) -> tuple[int, ...]:
    return tuple(s.stop - (s.start or 0) for s in where)


def _adopt(entry: JournalEntry, dirty: DirtyChunk) -> None:
    dirty.adopt(entry.chunk, entry.marked)
