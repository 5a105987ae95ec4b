"""Stores the changes of one array, object by object.

How a flush keeps every change: it works on copies, and what has changed since a copy was
made stays dirty. Chunks that are new in part are completed from the store at that moment,
and stored under the condition that the object has not changed in between; if it has, all
of it is done again. So of two writers of different elements of one chunk, both survive.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import NamedTuple

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject, Merge, Replaced, Stored
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.dirty_objects import Candidate, DirtyObjects, Taken
from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.journal.pending import Change, PendingChunk
from zarrfs.cache.write.restoring import layout_name, state_name, stored_hash
from zarrfs.cache.write.tile_copy import TileCopy
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import (
    ChunkError,
    MissingChunkError,
    StoreConflict,
    StoreTimeout,
    ZarrfsError,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Executor
from zarrfs.jobs.store_chunks import NewChunk, StoreChunks
from zarrfs.jobs.ticket import Ticket
from zarrfs.locks import Rank, ranked_lock
from zarrfs.store.base import ANY, Expected

log = logging.getLogger(__name__)

# What storing a chunk takes at most, in chunks.
_COPIES = 3
_TRIES = 32
# The longest pause before an object that others change all the time is tried again.
_LONGEST_PAUSE = 0.1
# How long the journal waits in vain for what is stored, for all chunks of an array together.
_PATIENCE_S = 10.0


class Flusher:
    """See `zarrfs.cache.write.write_back.Changes`.

    Small objects are stored several at once: a store may make them durable together.

    Shared state, under ``_lock``: ``_due``, objects that are scheduled, and ``_jobs``, how many
    jobs wait to store some of these. There is one for each object, but no more than threads.
    ``_states`` names the states into which this mount has brought objects that still have
    changes.
    """

    def __init__(
        self,
        write_back: WriteBack,
        cached: CachedArray,
        writer: ChunkWriter,
        dirty: DirtyObjects,
        gathering: Gathering,
        executor: Executor,
    ) -> None:
        self._write_back = write_back
        self._cached = cached
        self._writer = writer
        self._dirty = dirty
        self._gathering = gathering
        self._executor = executor
        self._due: deque[Index] = deque()
        self._jobs = 0
        self._states: dict[Index, str] = {}
        self._lock = ranked_lock(Rank.FLUSHER)
        self._room = write_back.room_for_parts
        layout = self.array.layout
        self._chunk_cost = _COPIES * layout.spec(layout.stored.largest_chunk).nbytes
        self._most = write_back.together(self._chunk_cost)

    @property
    def array(self) -> Array:
        return self._cached.array

    @property
    def dirty_bytes(self) -> int:
        return self._dirty.dirty_bytes + self._gathering.nbytes

    @property
    def clean(self) -> bool:
        return not self._gathering.pending and not self._dirty

    @property
    def stores(self) -> tuple[int, int]:
        return self._dirty.begun, self._dirty.ended

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        return self._dirty.candidate(skip, partly=partly)

    def scatter(self) -> bool:
        return self._gathering.scatter()

    def flush_older(self, limit: float) -> None:
        self._gathering.scatter(older_than=limit)
        for stored in self._dirty.schedule(limit):
            self.submit(stored)

    def submit(self, stored: Index) -> None:
        """Have one object stored that has been scheduled."""
        with self._lock:
            self._due.append(stored)
            self._submit_jobs()

    def _submit_jobs(self) -> None:
        while self._jobs < min(len(self._due), self._write_back.flushers):
            self._jobs += 1
            self._write_back.submit(self._flush_due, ahead=True)

    def flush(self) -> None:
        self._gathering.scatter()
        objects = self._dirty.all()
        if not objects:
            return
        size = self._share(len(objects))
        groups = [objects[i : i + size] for i in range(0, len(objects), size)]
        over = Event()
        errors: list[ZarrfsError] = []
        ticket = Ticket(len(groups), lambda _error: over.set())

        def flush_some(group: Sequence[Index]) -> None:
            try:
                # A store that does not answer would be waited for once for each object.
                if not any(isinstance(error, StoreTimeout) for error in errors):
                    errors.extend(self._flush_objects(group).values())
            finally:
                ticket.finish()

        for group in groups:
            self._write_back.submit(partial(flush_some, group))
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
            error = self._store_at_last(stored)
        finally:
            self._end([stored])
        if error is not None:
            raise error

    def _flush_objects(self, group: Sequence[Index]) -> dict[Index, ZarrfsError]:
        """The same for each of several objects; returns why some could not be stored."""
        alone: Sequence[Index] = group
        errors: dict[Index, ZarrfsError] = {}
        if len(group) > 1:
            # Whoever waits for an object while others wait for his might wait for ever.
            begun = [stored for stored in group if self._dirty.begin(stored, wait=False)]
            try:
                tried = self._store(begun)
                errors = tried.errors
            finally:
                self._end(begun)
            again = {key for key, error in errors.items() if isinstance(error, StoreConflict)}
            again |= tried.more
            alone = [stored for stored in group if stored in again or stored not in begun]
        for stored in alone:
            errors.pop(stored, None)
            with self._failing([stored], errors):
                self.flush_object(stored)
        return errors

    def pending(self) -> Iterator[PendingChunk]:
        self._gathering.scatter()
        tiles = self._dirty.tiles
        path, layout = self.array.path, layout_name(self.array, tiles)
        patience = _PATIENCE_S
        for tile, copy in self._dirty.snapshot():
            elements, marked = copy.dense()
            # What lies beyond the array now may lie inside it when this is read.
            mask = np.zeros(elements.shape, bool)
            inside = tuple(map(slice, copy.form.valid))
            mask[inside] = marked[inside]
            change = Change(tile, elements, mask, copy.parts)
            base = self._states.get(tiles.stored(tile))
            old = None
            # A store that does not answer would be waited for once for each tile.
            if patience > 0:
                begun = time.monotonic()
                old = stored_hash(self.array, tiles, change)
                patience -= 0 if old is not None else time.monotonic() - begun
            yield PendingChunk(path, layout, change, copy.since, base, old)

    def _flush_due(self) -> None:
        """What fails is tried again, and told at fsync."""
        with self._lock:
            # Jobs may be more than what is left.
            count = min(len(self._due), self._share(len(self._due)))
            group = [self._due.popleft() for _ in range(count)]
            self._jobs -= 1
            self._submit_jobs()
        for stored, error in self._flush_objects(group).items():
            self._write_back.failed(self.array.key(stored), error)

    def _share(self, count: int) -> int:
        """How many of so many objects one thread should store at once."""
        return max(1, min(self._most, -(-count // self._write_back.flushers)))

    def _cost(self, stored: Index) -> int:
        """Bytes of memory that storing takes: copies, encoded bytes, the old shard."""
        layout = self.array.layout
        if not layout.sharded:
            return self._chunk_cost
        dirty, whole = self._dirty.bytes_in(stored)
        shard = layout.spec(layout.stored.chunk_shape(stored)).nbytes
        shard = min(shard, self._writer.largest_whole)
        # The old one is not read, and chunks are copied only if they change meanwhile.
        return dirty + shard if whole else 2 * dirty + 2 * shard

    def _store_at_last(self, stored: Index) -> ZarrfsError | None:
        """Store an object that others may change all the time; why that failed."""
        pause = 0.001
        tries = 0
        while tries < _TRIES:
            tried = self._store([stored])
            error = tried.errors.get(stored)
            if error is None and tried.more:
                # What is left has had no room in memory beside what was stored.
                continue
            if not isinstance(error, StoreConflict):
                return error
            tries += 1
            # Two that try again at the same time would disturb each other again.
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return StoreConflict(self.array.key(stored), "is changed by somebody else again and again")

    def _store(self, objects: Sequence[Index]) -> _Tried:
        """Try once to store objects that were begun."""
        tried = _Tried({}, set())
        with (
            self._failing(objects, tried.errors),
            self._write_back.room_to_store(sum(map(self._cost, objects))),
        ):
            self._store_in_room(objects, tried)
        self.array.forget(s for s, e in tried.errors.items() if isinstance(e, StoreConflict))
        return tried

    def _store_in_room(self, objects: Sequence[Index], tried: _Tried) -> None:
        errors = tried.errors
        copies: dict[Index, Taken] = {}
        for stored in objects:
            with self._failing([stored], errors):
                copies[stored] = self._dirty.copies(stored, self._room)
        with self._failing(copies, errors):
            store = self._store_shards if self.array.layout.sharded else self._store_chunks
            freed = 0
            for stored, (now, expected) in store(copies, errors).items():
                if isinstance(now, ZarrfsError):
                    errors[stored] = now
                    continue
                if expected is not ANY:
                    # What others have changed came in on the way.
                    self._cached.freshness.saw(stored, expected)
                self._cached.stored_anew(stored, now)
                freed += self._dirty.forget_stored(stored, copies[stored].tiles)
                self._states[stored] = state_name(now)
                if copies[stored].more:
                    tried.more.add(stored)
            # Memory that tiles share goes with the last of them, before anybody looks for it.
            copies.clear()
            self._write_back.budget.charge(max(0, -freed))
            self._write_back.budget.release(max(0, freed))

    def _store_chunks(
        self, copies: dict[Index, Taken], errors: dict[Index, ZarrfsError]
    ) -> dict[Index, _Now]:
        """Store chunks that are objects of their own."""
        chunks: dict[Index, NewChunk] = {}
        for stored, taken in copies.items():
            with self._failing([stored], errors):
                chunks[stored] = self._new_chunk(taken)
        results = self._executor.run(StoreChunks(self._writer, chunks))
        return {stored: (now, chunks[stored].expected) for stored, now in results.items()}

    def _store_shards(
        self, copies: dict[Index, Taken], errors: dict[Index, ZarrfsError]
    ) -> dict[Index, _Now]:
        encoded: dict[Index, EncodedObject] = {}
        for stored, taken in copies.items():
            with self._failing([stored], errors):
                encoded[stored] = self._encode_shard(stored, taken)
        results = self._writer.store(list(encoded.values()))
        return {
            stored: (now, one.expected)
            for (stored, one), now in zip(encoded.items(), results, strict=True)
        }

    def _end(self, objects: Sequence[Index]) -> None:
        self._write_back.budget.charge(sum(map(self._dirty.end, objects)))
        # Changes that come later are younger than what is stored.
        for stored in objects:
            if not self._dirty.has(stored):
                self._states.pop(stored, None)

    @contextmanager
    def _failing(
        self, objects: Collection[Index], errors: dict[Index, ZarrfsError]
    ) -> Iterator[None]:
        """What fails inside is told of these objects, lest anybody waits in vain."""
        try:
            yield
        except ZarrfsError as error:
            # Lest it keeps frames, which keep all that is to be stored.
            errors.update(dict.fromkeys(objects, error.without_frames()))
        except Exception as error:
            for stored in objects:
                key = self.array.key(stored)
                log.exception("storing %s failed", key)
                failed = ChunkError(key, f"storing failed: {error!r}")
                failed.__cause__ = error
                errors[stored] = failed.without_frames()

    def _new_chunk(self, taken: Taken) -> NewChunk:
        """A chunk, completed from the store if it is new in part."""
        ((index, copy),) = taken.tiles.items()
        ((place, whole),) = copy.places()
        if whole:
            return NewChunk(copy.part(place), ANY)
        (result,) = self.array.read_chunks([index])
        base = result.chunk
        if isinstance(result.error, MissingChunkError):
            base = self.array.fill_chunk(index)
        if base is None:
            assert result.error is not None
            raise result.error
        return NewChunk(copy.merged(place, base), result.generation)

    def _encode_shard(self, stored: Index, taken: Taken) -> EncodedObject:
        """A shard is read once, for what is kept of it and for what is completed."""
        tiles = list(taken.tiles.items())
        each = math.prod(tiles[0][1].form.counts)
        share = max(1, self._writer.share(len(tiles) * each) // each)
        batches = [
            partial(self._replaced, tiles[first : first + share])
            for first in range(0, len(tiles), share)
        ]
        return self._writer.encode_shard(stored, batches, ANY, whole=taken.whole)

    def _replaced(self, tiles: Sequence[tuple[Index, TileCopy]]) -> Replaced:
        chunks: dict[Index, Chunk | None] = {}
        merges: dict[Index, Merge] = {}
        for tile, copy in tiles:
            for place, whole in copy.places():
                index = self._dirty.tiles.chunk(tile, place)
                if whole:
                    chunks[index] = copy.part(place)
                else:
                    merges[index] = partial(copy.merged, place)
        return Replaced(chunks, merges)


_Now = tuple[Stored | ChunkError, Expected]
"""What became of an object, and the state that it was to be in."""


class _Tried(NamedTuple):
    """
    errors : why objects could not be stored.
    more : objects of which a part is stored, with changes that were there before.
    """

    errors: dict[Index, ZarrfsError]
    more: set[Index]
