"""The changed tiles of one array, by the stored object that contains them.

Shared state, all under ``changed``: the objects, their tiles, and ``_readers``. The lock is held
for a few steps only, never while a thread copies elements or waits, so the event loop may take it.
Elements are under the lock of their tile (`TileChanges.lock`).

`zarrfs.locks` has the order of locks. The event loop takes the lock of `Gathering` and the locks of
tiles only if they are free; otherwise it leaves its work to a thread.

Invariants: objects are in the order of ``since``. ``_whole`` has the whole objects that no thread
stores or is going to store, because storing them failed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tile_copy import TileCopy
from zarrfs.cache.write.tiles import Tiles
from zarrfs.format.chunk_grid import Index
from zarrfs.locks import Rank, ranked_condition


@dataclass(slots=True, eq=False, repr=False)
class _DirtyObject:
    """
    wanted : number of its tiles that contain a part of the array.
    since : when the oldest change was made, or when storing the object was last tried.
    whole_tiles : how many tiles are new as a whole.
    storing, scheduled : whether a thread stores it now, or is going to.
    """

    wanted: int
    since: float
    tiles: dict[Index, TileChanges] = field(default_factory=dict)
    whole_tiles: int = 0
    storing: bool = False
    scheduled: bool = False

    @property
    def whole(self) -> bool:
        return self.whole_tiles == self.wanted

    @property
    def seen_to(self) -> bool:
        return self.storing or self.scheduled


class Candidate(NamedTuple):
    """An object that could be stored to make room; the smallest candidate is the best.

    partial : whether old elements must be read before it can be stored.
    """

    partial: bool
    since: float
    stored: Index


class Taken(NamedTuple):
    """Copies of an object's changed tiles, to be stored.

    whole : whether the copies are all elements of the object.
    more : whether the object has other changed tiles, for which there is no room now.
    """

    tiles: dict[Index, TileCopy]
    whole: bool
    more: bool


class DirtyObjects:
    """Thread-safe.

    begun : how often storing an object was scheduled or begun.
    ended : how often that has ended, successfully or not.
    """

    def __init__(self, tiles: Tiles) -> None:
        self.changed = ranked_condition(Rank.DIRTY_OBJECTS)
        self.tiles = tiles
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
            tiles = [tile for found in self._objects.values() for tile in found.tiles.values()]
        return sum(changes.nbytes for changes in tiles)

    def has(self, stored: Index) -> bool:
        """Whether an object has any changes."""
        with self.changed:
            return stored in self._objects

    def find(self, tile: Index) -> TileChanges | None:
        """The changes of a tile. Another thread may store them before the caller has their lock."""
        if not self._objects:
            return None
        stored = self.tiles.stored(tile)
        with self.changed:
            found = self._objects.get(stored)
            return None if found is None else found.tiles.get(tile)

    def put(self, tiles: Sequence[tuple[Index, TileChanges, bool]]) -> list[Index]:
        """Add tiles with changes, or note that they have changed. The caller holds their locks.

        tiles : each with its changes, and whether it was new as a whole before.

        Returns the tiles that have other changes by now, of which nothing is noted.
        """
        places = self.tiles.all_stored([tile for tile, _, _ in tiles])
        others: list[Index] = []
        touched: dict[Index, _DirtyObject] = {}
        with self.changed:
            for stored, (tile, changes, was_whole) in zip(places, tiles, strict=True):
                found = touched.get(stored) or self._objects.get(stored)
                if found is None:
                    found = _DirtyObject(self.tiles.count_in(stored), changes.since)
                    self._objects[stored] = found
                if found.tiles.setdefault(tile, changes) is not changes:
                    others.append(tile)
                elif changes.whole != was_whole:
                    found.whole_tiles += changes.whole - was_whole
                    touched[stored] = found
            for stored, found in touched.items():
                self._sort(stored, found)
        return others

    def schedule_whole(self, tiles: Sequence[Index]) -> list[Index]:
        """The objects of these tiles that are new as a whole and that no thread is going to store.

        The caller must store them.
        """
        places = dict.fromkeys(self.tiles.all_stored(tiles))
        due: list[Index] = []
        with self.changed:
            for stored in places:
                found = self._objects.get(stored)
                if found is not None and found.whole and not found.scheduled:
                    self._schedule(stored, found)
                    due.append(stored)
        return due

    def _schedule(self, stored: Index, found: _DirtyObject) -> None:
        found.scheduled = True
        self._whole.pop(stored, None)
        self.begun += 1

    def _sort(self, stored: Index, found: _DirtyObject) -> None:
        if found.whole and not found.seen_to:
            self._whole[stored] = None
        else:
            self._whole.pop(stored, None)

    # --- concurrent readers -----------------------------------------------------

    def enter(self) -> set[Index]:
        """A reader starts: the returned set gets every object stored until `leave`."""
        stored: set[Index] = set()
        with self.changed:
            self._readers.append(stored)
        return stored

    def leave(self, stored: set[Index]) -> None:
        with self.changed:
            self._readers = [reader for reader in self._readers if reader is not stored]

    # --- selecting objects to store ---------------------------------------------

    def all(self) -> list[Index]:
        """All objects; those that a thread stores now come last, as others have to wait for it."""
        with self.changed:
            return sorted(self._objects, key=lambda stored: self._objects[stored].storing)

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        """The object to store first if memory is short, except those being stored or scheduled.

        partly : also consider objects of which only a part is new.
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
        """Objects changed before ``older_than`` that no thread stores or is going to store.

        The caller must store them.
        """
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
        """Wait until no other thread stores the object; returns False if it has no changes then.

        After True the caller must `end` it.

        wait : False: also return False if another thread stores it now.
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

    def bytes_in(self, stored: Index) -> tuple[int, bool]:
        """Bytes of the changed tiles of an object, and whether all of it is new."""
        with self.changed:
            found = self._objects[stored]
            whole, changes = found.whole, list(found.tiles.values())
        sizes = (each.form.elements * each.form.dtype.itemsize for each in changes)
        return sum(sizes), whole

    def copies(self, stored: Index, room: int) -> Taken:
        """Copies of an object's changed tiles, for the thread that stores it.

        room : bytes for tiles that are not new as a whole; one such tile is always copied.
        """
        with self.changed:
            found = self._objects[stored]
            changes = list(found.tiles.items())
        copies: dict[Index, TileCopy] = {}
        for tile, each in changes:
            size = each.form.elements * each.form.dtype.itemsize
            if not each.whole and size > room and copies:
                continue
            with each.lock:
                copies[tile] = each.begin_store()
            if not copies[tile].whole:
                room -= size
        whole = len(copies) == found.wanted and all(copy.whole for copy in copies.values())
        return Taken(copies, whole, len(copies) < len(changes))

    def forget_stored(self, stored: Index, copies: dict[Index, TileCopy], foreign: int) -> int:
        """Forget the changes that are stored; returns the bytes of memory that this frees.

        foreign : see `TileChanges.stored`.
        """
        freed = 0
        with self.changed:
            found = self._objects[stored]
            # A reader that looks for a tile after this step sees that its chunks are out of date.
            for reader in self._readers:
                reader.add(stored)
        for tile, copy in copies.items():
            changes = found.tiles[tile]
            with changes.lock:
                was_whole = changes.whole
                changes.gone = changes.stored(copy, foreign)
                if changes.gone:
                    freed += changes.charged
                    with self.changed:
                        del found.tiles[tile]
                        found.whole_tiles -= was_whole
                        self._sort(stored, found)
                else:
                    freed -= grown(changes)
                    self.put([(tile, changes, was_whole)])
        return freed

    def end(self, stored: Index) -> int:
        """Storing has ended; returns the bytes of changes not charged to the budget yet.

        Less than 0 if memory is free again that only storing needed.
        """
        more = 0
        with self.changed:
            found = self._objects[stored]
            changes = list(found.tiles.values())
        for each in changes:
            with each.lock:
                each.end_store()
                more += grown(each)
        with self.changed:
            self.ended += 1
            found.storing = False
            if found.tiles:
                # Behind all others: if this object cannot be stored, another one may.
                found.since = time.monotonic()
                # In one step: `__bool__` and `find` look without the lock and must see it.
                self._objects.move_to_end(stored)
                self._sort(stored, found)
            else:
                # Storing has included the changes that were scheduled meanwhile.
                self.ended += found.scheduled
                del self._objects[stored]
            self.changed.notify_all()
        return more

    def snapshot(self) -> Iterator[tuple[Index, TileCopy]]:
        """Copies of all changed tiles, one at a time."""
        with self.changed:
            changes = [each for found in self._objects.values() for each in found.tiles.items()]
        for tile, each in changes:
            with each.lock:
                if each.gone:
                    continue
                copy = each.copy()
            yield tile, copy


def grown(changes: TileChanges) -> int:
    """Charge a tile for all of its memory; returns the bytes added, less than 0 if it has less.

    The caller holds its lock.
    """
    more = changes.taken - changes.charged
    changes.charged += more
    return more
