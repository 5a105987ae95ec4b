"""Stores the changes of one array, object by object.

How a flush keeps every change: it works on copies, and what has changed since a copy was
made stays dirty. Chunks that are new in part are completed from the store at that moment,
and stored under the condition that the object has not changed in between; if it has, all
of it is done again. So of two writers of different elements of one chunk, both survive.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.cached_array import CachedArray
from zarrfs.cache.dirty_chunk import DirtyChunk
from zarrfs.cache.dirty_objects import Candidate, DirtyObjects
from zarrfs.cache.gathering import Gathering
from zarrfs.cache.journal import Journal
from zarrfs.cache.ticket import Ticket
from zarrfs.cache.write_back import WriteBack
from zarrfs.errors import ChunkError, MissingChunkError, StoreConflict, StoreTimeout, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.store.base import ANY, Expected, Generation

log = logging.getLogger(__name__)

_TRIES = 32
# The longest pause before an object that others change all the time is tried again.
_LONGEST_PAUSE = 0.1


class Flusher:
    """See `zarrfs.cache.write_back.Changes`."""

    def __init__(
        self,
        write_back: WriteBack,
        cached: CachedArray,
        writer: ChunkWriter,
        dirty: DirtyObjects,
        gathering: Gathering,
    ) -> None:
        self._write_back = write_back
        self._cached = cached
        self._writer = writer
        self._dirty = dirty
        self._gathering = gathering

    @property
    def array(self) -> Array:
        return self._cached.array

    @property
    def dirty_bytes(self) -> int:
        return self._dirty.dirty_bytes + self._gathering.nbytes

    @property
    def stores(self) -> tuple[int, int]:
        return self._dirty.begun, self._dirty.ended

    def candidate(self, skip: Callable[[Index], bool]) -> Candidate | None:
        return self._dirty.candidate(skip)

    def spread(self) -> bool:
        return self._gathering.spread()

    def flush_older(self, limit: float) -> None:
        self._gathering.spread(older_than=limit)
        for stored in self._dirty.schedule(limit):
            self.submit(stored)

    def submit(self, stored: Index) -> None:
        """Have one object stored that has been scheduled."""
        self._write_back.submit(partial(self._flush_quietly, stored), ahead=True)

    def flush(self) -> None:
        self._gathering.spread()
        objects = self._dirty.all()
        if not objects:
            return
        over = Event()
        errors: list[ZarrfsError] = []
        ticket = Ticket(len(objects), lambda _error: over.set())

        def flush_one(stored: Index) -> None:
            try:
                # A store that does not answer would be waited for once for each object.
                if not any(isinstance(error, StoreTimeout) for error in errors):
                    self.flush_object(stored)
            except ZarrfsError as error:
                errors.append(error)
            finally:
                ticket.finish()

        for stored in objects:
            self._write_back.submit(partial(flush_one, stored))
        over.wait()
        if errors:
            raise errors[0]

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks.

        Raises ZarrfsError; the changes then stay and can be stored later.
        """
        if not self._dirty.begin(stored):
            return
        try:
            with self._write_back.room_to_store(self._cost(stored)):
                self._store(stored)
        except ZarrfsError:
            raise
        except Exception as error:  # the waiting caller must hear of it
            key = self.array.key(stored)
            log.exception("storing %s failed", key)
            raise ChunkError(key, f"storing failed: {error!r}") from error
        finally:
            self._write_back.budget.charge(self._dirty.end(stored))

    def keep(self, journal: Journal) -> list[Path]:
        self._gathering.spread()
        path, layout = self.array.path, layout_name(self.array)
        changes = self._dirty.snapshot()
        return [journal.save(path, index, layout, dirty) for index, dirty in changes]

    def _flush_quietly(self, stored: Index) -> None:
        """What fails is tried again, and told at fsync."""
        try:
            self.flush_object(stored)
        except ZarrfsError as error:
            self._write_back.failed(self.array.key(stored), error)

    def _cost(self, stored: Index) -> int:
        """Bytes of memory that storing takes: copies, encoded bytes, the old shard."""
        layout = self.array.layout
        dirty = self._dirty.bytes_in(stored)
        if not layout.sharded:
            return 3 * dirty
        return 2 * dirty + 2 * layout.spec(layout.stored.chunk_shape(stored)).nbytes

    def _store(self, stored: Index) -> None:
        pause = 0.001
        for _ in range(_TRIES):
            copies = self._dirty.copies(stored)
            try:
                before, now = self._write(stored, copies)
            except StoreConflict:
                self.array.forget([stored])
                # Two that try again at the same time would disturb each other again.
                time.sleep(random.uniform(0, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if before is not ANY:
                # What others have changed came in on the way.
                self._cached.freshness.saw(stored, before)
            self._cached.stored_anew(stored, now)
            freed = self._dirty.settle(stored, copies)
            self._write_back.budget.charge(max(0, -freed))
            # Memory that chunks share goes with the last of them, before anybody looks for it.
            copies.clear()
            self._write_back.budget.release(max(0, freed))
            return
        raise StoreConflict(self.array.key(stored), "is changed by somebody else again and again")

    def _write(
        self, stored: Index, copies: dict[Index, DirtyChunk]
    ) -> tuple[Expected, Generation | None]:
        partly = {index: dirty for index, dirty in copies.items() if not dirty.whole}
        if partly and self._writer.reads_old(stored, copies):
            # A shard is read once, for what is kept of it and for what is completed.
            merges = {index: dirty.completed_with for index, dirty in partly.items()}
            chunks = {index: dirty.chunk for index, dirty in copies.items() if dirty.whole}
            return self._writer.write(stored, chunks, ANY, merges)
        expected = self._complete(stored, partly)
        chunks = {index: dirty.chunk for index, dirty in copies.items()}
        return self._writer.write(stored, chunks, expected)

    def _complete(self, stored: Index, partly: dict[Index, DirtyChunk]) -> Expected:
        """Bring in the old elements of chunks that are new in part.

        Returns the state of the object that they came from. Raises ChunkError where
        the old chunk is damaged, StoreConflict where the object changes meanwhile.
        """
        expected: Expected = ANY
        for result in self.array.read_chunks(list(partly)):
            base = result.chunk
            if isinstance(result.error, MissingChunkError):
                base = self.array.fill_chunk(result.index)
            if base is None:
                assert result.error is not None
                raise result.error
            if expected not in (ANY, result.generation):
                raise StoreConflict(self.array.key(stored), "changed while it was read")
            expected = result.generation
            partly[result.index].complete_with(base)
        return expected


def layout_name(array: Array) -> str:
    """Tells arrays apart whose chunks are not interchangeable."""
    layout = array.layout
    return (
        f"{list(array.metadata.shape)} in {list(layout.read.largest_chunk)} of "
        f"{layout.data_type.name}"
    )
