"""The changed chunks of one array, by the stored object that holds them.

Shared state, all under ``changed``: the objects, their chunks, and ``_readers``. The lock
is held while elements are copied in or out, never while anything waits. Invariants: the
objects come about in the order of ``since``; ``_whole`` has those that are whole and that
nobody sees to: storing them failed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, NamedTuple

import numpy as np

from zarrfs.array.array import Array
from zarrfs.cache.write.dirty_chunk import DirtyChunk, Slices
from zarrfs.cache.write.scattered_changes import ScatteredChanges
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk


@dataclass(slots=True, eq=False, repr=False)
class _DirtyObject:
    """
    chunks, scattered : a chunk is in one of them.
    wanted : in how many chunks part of the array lies.
    since : when the oldest change was made, or the object was last tried to be stored.
    whole_chunks : how many chunks are new as a whole.
    storing, scheduled : whether somebody stores it now, or is going to.
    """

    wanted: int
    since: float
    chunks: dict[Index, DirtyChunk] = field(default_factory=dict)
    scattered: dict[Index, ScatteredChanges] = field(default_factory=dict)
    whole_chunks: int = 0
    storing: bool = False
    scheduled: bool = False

    @property
    def whole(self) -> bool:
        return self.whole_chunks == self.wanted

    @property
    def seen_to(self) -> bool:
        return self.storing or self.scheduled


class Candidate(NamedTuple):
    """An object that could be stored to make room; the smallest is best.

    partial : whether old elements have to be read for that.
    """

    partial: bool
    since: float
    stored: Index


class DirtyObjects:
    """Safe for any number of threads, where nothing else is said.

    begun, ended : how often an object was to be, and has been, stored or tried to be.
    """

    def __init__(self, array: Array) -> None:
        self.changed = Condition()
        self._array = array
        self._objects: OrderedDict[Index, _DirtyObject] = OrderedDict()
        self._whole: dict[Index, None] = {}
        self.begun = 0
        self.ended = 0
        self._readers: list[set[Index]] = []

    def __bool__(self) -> bool:
        return bool(self._objects)

    @property
    def dirty_bytes(self) -> int:
        with self.changed:
            return sum(
                sum(dirty.chunk.nbytes for dirty in found.chunks.values())
                + sum(few.nbytes for few in found.scattered.values())
                for found in self._objects.values()
            )

    def find(self, index: Index, stored: Index | None = None) -> DirtyChunk | None:
        """A changed chunk. For whoever has the lock.

        stored : the object that holds it, where that is known already.
        """
        if stored is None:
            stored = self._array.layout.stored_index(index)
        found = self._objects.get(stored)
        return None if found is None else found.chunks.get(index)

    def find_scattered(self, index: Index, stored: Index | None = None) -> ScatteredChanges | None:
        """The same of a chunk that has small changes only."""
        if stored is None:
            stored = self._array.layout.stored_index(index)
        found = self._objects.get(stored)
        return None if found is None else found.scattered.get(index)

    def is_dirty(self, index: Index) -> bool:
        """Whether a chunk has any changes. For whoever has the lock."""
        stored = self._array.layout.stored_index(index)
        found = self._objects.get(stored)
        return found is not None and (index in found.chunks or index in found.scattered)

    def scatter(
        self, stored: Index, index: Index, where: Slices, values: Chunk, view: np.dtype[Any]
    ) -> bool:
        """Keep a small change of a chunk; False where it should have a chunk's memory.

        For whoever has the lock.
        """
        found = self._objects.get(stored)
        valid = self._array.layout.read.valid_shape(index)
        if found is not None:
            if index in found.chunks:
                return False
            if (few := found.scattered.get(index)) is not None:
                if few.takes(valid, values):
                    few.add(where, values, view)
                    return True
                return False
        if not ScatteredChanges.fits(valid, values):
            return False
        few = self._object(stored, time.monotonic()).scattered[index] = ScatteredChanges()
        few.add(where, values, view)
        return True

    def add(
        self,
        stored: Index,
        index: Index,
        since: float | None = None,
        memory: Chunk | None = None,
    ) -> int:
        """Begin a chunk that is not there yet. For whoever has the lock.

        Returns the bytes of memory that come free, where it had small changes.

        since : when its first change was made; None: now.
        memory : see `DirtyChunk`.
        """
        if since is None:
            since = time.monotonic()
        found = self._object(stored, since)
        few = found.scattered.pop(index, None)
        if few is None:
            found.chunks[index] = DirtyChunk(*self._form(index), since, memory)
            return 0
        assert memory is None
        found.chunks[index] = few.turned(*self._form(index))
        return few.charged

    def _object(self, stored: Index, since: float) -> _DirtyObject:
        if (found := self._objects.get(stored)) is None:
            found = _DirtyObject(self._array.chunks_in(stored), since=since)
            self._objects[stored] = found
        return found

    def _form(self, index: Index) -> tuple[Shape, np.dtype[Any], Shape]:
        """Of a chunk: its shape and type, and what of it lies inside the array."""
        layout = self._array.layout
        read = layout.read
        return read.chunk_shape(index), layout.data_type.dtype, read.valid_shape(index)

    def change(self, stored: Index, index: Index, apply: Callable[[DirtyChunk], bool]) -> bool:
        """Change a chunk that is there; what ``apply`` says. For whoever has the lock."""
        found = self._objects[stored]
        dirty = found.chunks[index]
        was_whole = dirty.whole
        changed = apply(dirty)
        if dirty.whole != was_whole:
            self._count(stored, found, dirty.whole - was_whole)
        return changed

    def charge(self, stored: Index, index: Index) -> int:
        """What a chunk takes now, and is charged from now on. For whoever has the lock."""
        dirty = self._objects[stored].chunks[index]
        dirty.charged = dirty.taken
        return dirty.charged

    def has(self, stored: Index) -> bool:
        """Whether an object has any changes."""
        with self.changed:
            return stored in self._objects

    def is_whole(self, stored: Index) -> bool:
        """Whether all of an object is new."""
        with self.changed:
            return self._objects[stored].whole

    def schedule_whole(self, stored: Index) -> bool:
        """Whether all of an object is new and nobody sees to it yet; then the caller must.

        For whoever has the lock.
        """
        found = self._objects[stored]
        if not found.whole or found.scheduled:
            return False
        self._schedule(stored, found)
        return True

    def _schedule(self, stored: Index, found: _DirtyObject) -> None:
        found.scheduled = True
        self._whole.pop(stored, None)
        self.begun += 1

    def _count(self, stored: Index, found: _DirtyObject, more: int) -> None:
        found.whole_chunks += more
        self._sort(stored, found)

    def _sort(self, stored: Index, found: _DirtyObject) -> None:
        if found.whole and not found.seen_to:
            self._whole[stored] = None
        else:
            self._whole.pop(stored, None)

    # --- whoever reads meanwhile ------------------------------------------------

    def enter(self) -> set[Index]:
        """A reader comes: what is stored until `leave` will be in the set."""
        stored: set[Index] = set()
        with self.changed:
            self._readers.append(stored)
        return stored

    def leave(self, stored: set[Index]) -> None:
        with self.changed:
            self._readers = [reader for reader in self._readers if reader is not stored]

    # --- what is to be stored ---------------------------------------------------

    def all(self) -> list[Index]:
        with self.changed:
            return list(self._objects)

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        """The object to store first where memory is short, of those that nobody sees to.

        partly : also one of which only a part is new.
        """
        with self.changed:
            for stored in self._whole:
                if not skip(stored):
                    return Candidate(False, self._objects[stored].since, stored)
            for stored, found in self._objects.items() if partly else ():
                if not found.seen_to and not skip(stored):
                    return Candidate(True, found.since, stored)
        return None

    def schedule(self, older_than: float) -> list[Index]:
        """Objects with older changes that nobody stores or is going to; the caller will."""
        with self.changed:
            due = [
                stored
                for stored, found in self._objects.items()
                if found.since < older_than and not found.seen_to
            ]
            for stored in due:
                self._schedule(stored, self._objects[stored])
            return due

    def begin(self, stored: Index, *, wait: bool = True) -> bool:
        """Wait until nobody stores the object; False if it has no changes then.

        After True the caller must `end` it.

        wait : False: also False where somebody stores it now.
        """
        with self.changed:
            while (found := self._objects.get(stored)) is not None and found.storing:
                if not wait:
                    return False
                self.changed.wait()
            if found is None:
                return False
            self.begun += not found.scheduled
            found.storing, found.scheduled = True, False
            self._whole.pop(stored, None)
            return True

    def bytes_in(self, stored: Index) -> int:
        """Bytes of the changed chunks of an object."""
        layout = self._array.layout
        with self.changed:
            found = self._objects[stored]
            return sum(dirty.chunk.nbytes for dirty in found.chunks.values()) + sum(
                layout.spec(layout.read.chunk_shape(index)).nbytes for index in found.scattered
            )

    def copies(self, stored: Index) -> dict[Index, DirtyChunk]:
        """Copies of an object's changed chunks, to be stored."""
        copies = {}
        with self.changed:
            found = self._objects[stored]
            # In one step: small changes may become a chunk at any time.
            indices = [*found.chunks, *found.scattered]
        for index in indices:
            # The lock is let go in between, so that nobody waits for a whole shard.
            with self.changed:
                if (few := found.scattered.get(index)) is not None:
                    copies[index] = few.begin_store()
                else:
                    copies[index] = found.chunks[index].begin_store()
        return copies

    def settle(self, stored: Index, copies: dict[Index, DirtyChunk]) -> int:
        """Forget the changes that are stored; the bytes of memory that they took.

        Less what chunks take now that have changed since, in memory of their own.
        """
        freed = 0
        with self.changed:
            found = self._objects[stored]
            for index, copy in copies.items():
                if (few := found.scattered.get(index)) is not None:
                    freed += few.stored()
                    if few.empty:
                        del found.scattered[index]
                    continue
                dirty = found.chunks[index]
                was_whole = dirty.whole
                if dirty.stored(copy):
                    del found.chunks[index]
                    freed += dirty.charged
                    self._count(stored, found, -was_whole)
                else:
                    self._count(stored, found, dirty.whole - was_whole)
                    freed -= self._grown(dirty)
            for reader in self._readers:
                reader.add(stored)
        return freed

    def end(self, stored: Index) -> int:
        """Returns the bytes of memory that changes take by now and that nobody has reserved."""
        grown = 0
        with self.changed:
            self.ended += 1
            found = self._objects[stored]
            found.storing = False
            for dirty in found.chunks.values():
                dirty.end_store()
                grown += self._grown(dirty)
            for few in found.scattered.values():
                few.end_store()
            if found.chunks or found.scattered:
                # Behind all others: if it cannot be stored, another may.
                found.since = time.monotonic()
                # In one step: who asks without the lock must never find it gone.
                self._objects.move_to_end(stored)
                self._sort(stored, found)
            else:
                # What was scheduled meanwhile has been stored, too.
                self.ended += found.scheduled
                del self._objects[stored]
            self.changed.notify_all()
        return grown

    @staticmethod
    def _grown(dirty: DirtyChunk) -> int:
        """What a chunk takes more than it is charged; from now on it is."""
        grown = dirty.taken - dirty.charged
        dirty.charged += grown
        return grown

    def snapshot(self) -> Iterator[tuple[Index, DirtyChunk]]:
        """Copies of all changed chunks, one at a time."""
        with self.changed:
            indices = [
                index
                for found in self._objects.values()
                for index in (*found.chunks, *found.scattered)
            ]
        for index in indices:
            with self.changed:
                dirty = self.find(index)
                few = self.find_scattered(index)
                if few is not None:
                    copy = few.copy(*self._form(index))
                elif dirty is not None:
                    copy = dirty.copy()
                else:
                    continue
            yield index, copy
