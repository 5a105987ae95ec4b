"""Stores the changes of one array, object by object.

How a flush keeps every change: it stores copies, and a change made after the copy stays dirty.
Chunks that are new in part are completed from the store. They are stored on the condition that the
stored object has not changed in between; if it has, the flush starts again. So if two writers
change different elements of one chunk, both changes survive.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject, Merge, Replaced, Stored
from zarrfs.array.making.array_documents import StoredEncoding
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.dirty_objects import Candidate, DirtyObjects, Taken
from zarrfs.cache.write.due_objects import DueObjects
from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.journal.pending import (
    Change,
    PendingChunk,
    layout_name,
    state_name,
    stored_hash,
)
from zarrfs.cache.write.tile_copy import TileCopy
from zarrfs.cache.write.write_back import Changes, WriteBack
from zarrfs.errors import (
    ChunkError,
    StoreConflict,
    StoreError,
    StoreTimeout,
    ZarrfsError,
    reason_of,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Processes, perform
from zarrfs.jobs.store_chunks import NewObject, StoreChunks
from zarrfs.store.base import ANY, Expected, Generation

log = logging.getLogger(__name__)

# Memory that storing one chunk takes at most, in chunks.
_COPIES = 3
_TRIES = 32
# The longest pause before the flusher retries an object that other writers change all the time.
_LONGEST_PAUSE = 0.1
# How long the journal waits without success for stored chunks, for all chunks of an array together.
_PATIENCE_S = 10.0


@dataclass(eq=False)
class Flusher(Changes):
    """Small objects are stored in batches: a store may make a batch durable in one step.

    due : objects that `DirtyObjects` has scheduled; the caller adds them.

    ``_states`` names the states into which this mount has brought objects that still have changes.
    """

    write_back: WriteBack
    cached: CachedArray
    writer: ChunkWriter
    dirty: DirtyObjects
    gathering: Gathering
    processes: Processes | None
    _states: dict[Index, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.array = array = self.cached.array
        self._encoding = StoredEncoding(array)
        self._room = self.write_back.room_for_parts
        layout = array.layout
        self._chunk_cost = _COPIES * layout.spec(layout.stored.largest_chunk).nbytes
        self._most = self.write_back.batch_size(self._chunk_cost)
        self.due = DueObjects(self.write_back, self._most, self._flush_due)

    @property
    def dirty_bytes(self) -> int:
        return self.dirty.dirty_bytes + self.gathering.nbytes

    @property
    def clean(self) -> bool:
        return not self.gathering.pending and not self.dirty

    @property
    def stores(self) -> tuple[int, int]:
        return self.dirty.begun, self.dirty.ended

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        return self.dirty.candidate(skip, partly=partly)

    def scatter(self) -> bool:
        return self.gathering.scatter()

    def flush_older(self, limit: float) -> None:
        self.gathering.scatter(older_than=limit)
        self.due.add(self.dirty.schedule(limit))

    def flush(self) -> None:
        self.gathering.scatter()
        objects = self.dirty.all()
        if not objects:
            return
        size = self._share(len(objects))
        groups = [objects[i : i + size] for i in range(0, len(objects), size)]
        errors: list[ZarrfsError] = []

        def flush_some(number: int) -> None:
            try:
                # Otherwise the flush would wait for an unresponsive store once per object.
                if not any(isinstance(error, StoreTimeout) for error in errors):
                    errors.extend(self._flush_objects(groups[number]).values())
            except Exception as error:
                log.exception("changes cannot be stored")
                errors.append(ChunkError.of(self.array.path, error))

        self.write_back.share(flush_some, len(groups))
        if errors:
            raise errors[0]

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks.

        Raises ZarrfsError; the changes then stay and can be stored later.
        """
        if not self.dirty.begin(stored):
            return
        try:
            error = self._store_at_last(stored)
        finally:
            self._end([stored])
        if error is not None:
            raise error

    def _flush_objects(self, group: Sequence[Index]) -> dict[Index, ZarrfsError]:
        """As `flush_object` for each of several objects; returns the errors by object."""
        alone: Sequence[Index] = group
        errors: dict[Index, ZarrfsError] = {}
        if len(group) > 1:
            # A thread that waits for one object while it holds another could deadlock.
            begun = [stored for stored in group if self.dirty.begin(stored, wait=False)]
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
        self.gathering.scatter()
        tiles = self.dirty.tiles
        path, layout = self.array.path, layout_name(self.array, tiles)
        changed, ends_before = self._encoding.changed, self._encoding.ends_before
        # The elements cannot be read as they are encoded now.
        patience = 0.0 if changed else _PATIENCE_S
        for tile, copy in self.dirty.snapshot():
            change = Change(tile, *copy.units())
            base = self._states.get(tiles.stored(tile))
            old = None
            # Otherwise the journal would wait for an unresponsive store once per tile.
            if patience > 0:
                begun = time.monotonic()
                old = stored_hash(self.array, tiles, change)
                patience -= 0 if old is not None else time.monotonic() - begun
            replaced = changed or ends_before(tiles.stored(tile))
            yield PendingChunk(path, layout, change, copy.since, base, old, replaced)

    def _flush_due(self, group: Sequence[Index]) -> None:
        """Store due objects. Failed objects are retried later; fsync returns their errors."""
        for stored, error in self._flush_objects(group).items():
            self.write_back.failed(self.array.key(stored), error)

    def _share(self, count: int) -> int:
        """How many of ``count`` objects one thread should store in a batch."""
        return max(1, min(self._most, -(-count // self.write_back.flushers)))

    def _cost(self, stored: Index) -> int:
        """Bytes of memory that storing takes: a batch, encoded bytes, the old shard.

        Copies that writers make to change it meanwhile are charged with the other changes.
        """
        layout = self.array.layout
        if not layout.sharded:
            return self._chunk_cost
        dirty, whole = self.dirty.bytes_in(stored)
        shard = layout.spec(layout.stored.chunk_shape(stored)).nbytes
        shard = min(shard, self.writer.largest_whole)
        batch = _COPIES * self.writer.batch_size * layout.spec(layout.read.largest_chunk).nbytes
        # A whole shard replaces the old one unread.
        return min(dirty, batch) + shard if whole else 2 * (dirty + shard)

    def _store_at_last(self, stored: Index) -> ZarrfsError | None:
        """Store an object, with retries if other writers change it; returns the error, if any."""
        pause = 0.001
        tries = 0
        while tries < _TRIES:
            tried = self._store([stored])
            error = tried.errors.get(stored)
            if error is None and tried.more:
                # Memory had no room for the remaining tiles beside those just stored.
                continue
            if not isinstance(error, StoreConflict):
                return error
            tries += 1
            # A random pause: two writers that retry at the same time would conflict again.
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return StoreConflict(self.array.key(stored), "other writers keep changing it")

    def _store(self, objects: Sequence[Index]) -> _Tried:
        """Try once to store objects for which `DirtyObjects.begin` returned True."""
        tried = _Tried({}, set())
        with (
            self._failing(objects, tried.errors),
            self.write_back.room_to_store(sum(map(self._cost, objects))),
        ):
            # Before the look at the shape: who makes the array larger stores elements after it.
            at_end = list(filter(self._encoding.reaches_beyond, objects))
            edges = self._edges(at_end)
            self._encoding.check(again=bool(at_end))
            self._store_in_room(objects, tried, edges)
        self.array.forget(s for s, e in tried.errors.items() if isinstance(e, StoreConflict))
        return tried

    def _edges(self, at_end: Sequence[Index]) -> dict[Index, Generation | None]:
        """The states of objects that reach beyond the array, and so may get elements of others.

        A distant store is not asked, for in some arrays all objects are such.
        """
        if not self.array.store.traits.near:
            return {}
        states: dict[Index, Generation | None] = {}
        for stored in at_end:
            with suppress(StoreError):  # which storing this object meets, too
                info = self.array.stored_info(stored)
                states[stored] = None if info is None else info.generation
        return states

    def _store_in_room(
        self,
        objects: Sequence[Index],
        tried: _Tried,
        edges: Mapping[Index, Generation | None],
    ) -> None:
        errors = tried.errors
        copies: dict[Index, Taken] = {}
        for stored in objects:
            with self._failing([stored], errors):
                self._encoding.check_inside(stored)
                copies[stored] = self.dirty.copies(stored, self._room)
        anew: dict[Index, Generation | None] = {}
        replaced: dict[Index, Generation | None] = {}
        foreign = self.cached.freshness.foreign
        for stored, (now, expected) in self._store_copies(copies, edges, errors).items():
            if isinstance(now, ZarrfsError):
                errors[stored] = now
                continue
            if expected is not ANY:
                # Storing has read the chunks as other writers have changed them.
                replaced[stored] = expected
            anew[stored] = now
        self.cached.stored_anew(anew, replaced)
        freed = 0
        for stored, state in anew.items():
            freed += self.dirty.forget_stored(stored, copies[stored].tiles, foreign)
            self._states[stored] = state_name(state)
            if copies[stored].more:
                tried.more.add(stored)
        # Free the memory that tiles share, before other threads ask for memory.
        copies.clear()
        self.write_back.budget.charge(-freed)

    def _store_copies(
        self,
        copies: dict[Index, Taken],
        edges: Mapping[Index, Generation | None],
        errors: dict[Index, ZarrfsError],
    ) -> dict[Index, _Now]:
        new: dict[Index, NewObject] = {}
        encoded: dict[Index, EncodedObject] = {}
        sharded = self.array.layout.sharded
        for stored, taken in copies.items():
            with self._failing([stored], errors):
                expected = edges.get(stored, ANY)
                if sharded and not (self.processes is not None and taken.whole):
                    encoded[stored] = self._encode_shard(stored, taken, expected)
                else:
                    new[stored] = self._new_object(taken, expected)
        results: dict[Index, _Now] = {}
        if new:
            done = perform(StoreChunks(self.writer, new), self.processes)
            results = {stored: (now, new[stored].expected) for stored, now in done.items()}
        states = zip(encoded.items(), self.writer.store(list(encoded.values())), strict=True)
        results.update({stored: (now, one.expected) for (stored, one), now in states})
        return results

    def _end(self, objects: Sequence[Index]) -> None:
        more = sum(map(self.dirty.end, objects))
        self.write_back.budget.charge(more)
        # Later changes are younger than the stored state.
        for stored in objects:
            if not self.dirty.has(stored):
                self._states.pop(stored, None)

    @contextmanager
    def _failing(
        self, objects: Collection[Index], errors: dict[Index, ZarrfsError]
    ) -> Iterator[None]:
        """An error inside is an error of each of these objects, so that no caller waits in vain."""
        try:
            yield
        except ZarrfsError as error:
            # The frames would keep all data of the failed store in memory.
            errors.update(dict.fromkeys(objects, error.without_frames()))
        except Exception as error:
            for stored in objects:
                key = self.array.key(stored)
                log.exception("storing %s failed", key)
                failed = ChunkError(key, f"storing failed: {reason_of(error)}")
                failed.__cause__ = error
                errors[stored] = failed.without_frames()

    def _new_object(self, taken: Taken, expected: Expected) -> NewObject:
        """A shard that is new as a whole, or a chunk, completed from the store if it is not."""
        chunks, merges = self._chunks_of(taken.tiles.items())
        for index, merge in merges.items():
            (result,) = self.array.read_chunks([index])
            if expected not in (ANY, result.generation):
                raise StoreConflict(self.array.key(index), "changed while it was rewritten")
            return NewObject({index: merge(self.array.stored_chunk(result))}, result.generation)
        return NewObject(chunks, expected)

    def _encode_shard(self, stored: Index, taken: Taken, expected: Expected) -> EncodedObject:
        """Encode a shard. The old shard is read once, for kept chunks and for completed chunks."""
        tiles = list(taken.tiles.items())
        each = math.prod(tiles[0][1].form.counts)
        share = max(1, self.writer.batch_size // each)
        batches = [
            partial(self._replaced, tiles[first : first + share])
            for first in range(0, len(tiles), share)
        ]
        return self.writer.encode_shard(stored, batches, expected, whole=taken.whole)

    def _replaced(self, tiles: Sequence[tuple[Index, TileCopy]]) -> Replaced:
        return Replaced(*self._chunks_of(tiles))

    def _chunks_of(
        self, tiles: Iterable[tuple[Index, TileCopy]]
    ) -> tuple[dict[Index, Chunk], dict[Index, Merge]]:
        """Chunks that are new as a whole, and functions that complete the others."""
        chunks: dict[Index, Chunk] = {}
        merges: dict[Index, Merge] = {}
        for tile, copy in tiles:
            for place, whole in copy.places():
                index = self.dirty.tiles.chunk(tile, place)
                if whole:
                    chunks[index] = copy.part(place)
                else:
                    merges[index] = partial(copy.merged, place)
        return chunks, merges


_Now = tuple[Stored | ChunkError, Expected]
"""The new state of an object, or the error; and the state that it was expected to be in."""


class _Tried(NamedTuple):
    """
    errors : by object, why it could not be stored.
    more : objects of which only a part of the earlier changes is stored.
    """

    errors: dict[Index, ZarrfsError]
    more: set[Index]
