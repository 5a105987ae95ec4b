"""Stores the changes that an earlier mount of an array has left in the journal.

A replay does what the earlier mount would have done had it been able to store when it ended: it
stores the changes over the elements stored then. It never overwrites the same elements if others
have stored them since. A hash of the elements that were stored when the entry was written shows
this. An entry has no hash if the store did not answer. Then time decides: the stored object must be
older than the oldest change, or in the state into which the same mount has brought it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from zarrfs.array.array import Array
from zarrfs.cache.write.journal.journal import JournalEntry
from zarrfs.cache.write.journal.pending import Bits, Bytes, Change
from zarrfs.cache.write.tiles import Tiles
from zarrfs.errors import JournalError, MissingChunkError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation

_ROWS = re.compile(r"\[(\d+)(.*)", re.DOTALL)


class Outcome(Enum):
    """The outcome of an entry.

    STORED : its changes are in the store, or later changes of the same elements are.
    OLDER : others have changed the stored object since.
    ELSEWHERE : the array is another one by now.
    DAMAGED : the entry cannot be read.
    WAITS : the stored chunk cannot be read, so the replay cannot judge the entry, which stays.
    """

    STORED = auto()
    OLDER = auto()
    ELSEWHERE = auto()
    DAMAGED = auto()
    WAITS = auto()


class Restored(NamedTuple):
    """The outcome of an entry; ``error`` says why it is damaged."""

    entry: JournalEntry
    outcome: Outcome
    error: JournalError | None = None


class Restorable(Protocol):
    """The part of `WritableArray` that a replay needs. Both methods block and raise ZarrfsError."""

    @property
    def array(self) -> Array: ...

    @property
    def tiles(self) -> Tiles: ...

    def adopt(self, index: Index, elements: Chunk, marked: Bits) -> None:
        """Change the ``marked`` elements of a tile."""
        ...

    def write_part(self, index: Index, place: Index, value: Bytes, known: Bits, wait: bool) -> bool:
        """Change the ``known`` bytes of one element."""
        ...

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object."""
        ...


def restore(target: Restorable, entries: Iterable[JournalEntry]) -> Iterator[Restored]:
    """Store entries of one array, object by object. Blocks.

    Entries of one tile, from several mounts, are merged: the latest change of each element counts.
    An entry is yielded as soon as its object is stored, in the order in which the entries may be
    removed. Raises the first ZarrfsError at the end, after all other entries have been tried; the
    entries of an object that fails are not yielded.
    """
    first: ZarrfsError | None = None
    by_object: dict[Index, list[JournalEntry]] = defaultdict(list)
    for entry in entries:
        if _belongs(target, entry):
            by_object[target.tiles.stored(entry.index)].append(entry)
        else:
            yield Restored(entry, Outcome.ELSEWHERE)
    for stored, members in by_object.items():
        members.sort(key=lambda entry: (entry.header.written_ns, entry.name))
        try:
            results = _restore_object(target, stored, members)
        except ZarrfsError as error:
            first = first or error
        else:
            yield from results
    if first is not None:
        raise first


def state_name(generation: Generation | None) -> str:
    """Names the state of a stored object, as `PendingChunk.base` does."""
    return "missing" if generation is None else repr(generation)


def layout_name(array: Array, tiles: Tiles) -> str:
    """Identifies the layout of an array; arrays of one layout have interchangeable tiles."""
    layout = array.layout
    return (
        f"{list(array.metadata.shape)} in {list(tiles.grid.largest_chunk)} of "
        f"{layout.data_type.name}"
    )


def _belongs(target: Restorable, entry: JournalEntry) -> bool:
    """Whether an entry belongs to a tile of this array, which may have grown since."""
    array, tiles = target.array, target.tiles
    if not _same_layout(layout_name(array, tiles), entry) or not tiles.grid.contains(entry.index):
        return False
    # The entry is loaded, which takes memory, only if it has this form.
    form = tiles.form(entry.index)
    return (entry.header.shape, entry.header.item_size) == (form.shape, form.dtype.itemsize)


def _same_layout(now: str, entry: JournalEntry) -> bool:
    if now == entry.header.layout:
        return True
    rows, others = _ROWS.fullmatch(now), _ROWS.fullmatch(entry.header.layout)
    if rows is None or others is None:
        return False
    return rows[2] == others[2] and int(rows[1]) > int(others[1])


def _restore_object(
    target: Restorable, stored: Index, members: list[JournalEntry]
) -> list[Restored]:
    results = _judge(target, stored, members)
    changed = False
    for entry in members:
        if entry in results:
            continue
        try:
            change = entry.load()
        except JournalError as error:
            results[entry] = Restored(entry, Outcome.DAMAGED, error)
            continue
        target.adopt(change.index, change.elements, change.mask)
        for place, (value, known) in change.parts.items():
            target.write_part(change.index, place, value, known, True)
        results[entry] = Restored(entry, Outcome.STORED)
        changed = True
    if changed:
        target.flush_object(stored)
    return [results[entry] for entry in members]


def _judge(
    target: Restorable, stored: Index, members: list[JournalEntry]
) -> dict[JournalEntry, Restored]:
    """The results of entries that must not be stored.

    Their changes are stored already if the last replay was interrupted after storing them: then the
    chunk has their elements, or those of later entries of the same tile.
    """
    array, tiles = target.array, target.tiles
    info = array.stored_info(stored)
    newer = 0 if info is None else info.mtime_ns or 0
    state = state_name(None if info is None else info.generation)
    results: dict[JournalEntry, Restored] = {}
    for index in {entry.index for entry in members}:
        same = [entry for entry in members if entry.index == index]
        if all(_in_time(entry, newer, state) for entry in same):
            continue
        elements = _stored_tile(array, tiles, index)
        later = _Later()
        for entry in reversed(same):
            try:
                change = entry.load()
            except JournalError as error:
                results[entry] = Restored(entry, Outcome.DAMAGED, error)
                continue
            if not _in_time(entry, newer, state):
                outcome = _judged(tiles, elements, entry, change, later)
                if outcome is not None:
                    results[entry] = Restored(entry, outcome)
            later.add(change)
    return results


def _judged(
    tiles: Tiles, elements: Chunk | None, entry: JournalEntry, change: Change, later: _Later
) -> Outcome | None:
    """The outcome of an entry; None if its changes must be stored.

    elements : of the tile, as they are stored now; None if they cannot be read.
    """
    if elements is None:
        # A tile that is new as a whole does not depend on stored elements.
        whole = entry.header.old is None and bool(change.mask[_inside(tiles, change.index)].all())
        return None if whole else Outcome.WAITS
    if entry.header.old == _hash(tiles, elements, change):
        return None
    return Outcome.STORED if _holds(tiles, elements, change, later) else Outcome.OLDER


def _in_time(entry: JournalEntry, newer: int, state: str) -> bool:
    """Whether others cannot have changed the stored object since."""
    return entry.header.base == state or (
        entry.header.old is None and entry.header.written_ns >= newer
    )


def stored_hash(array: Array, tiles: Tiles, change: Change) -> str | None:
    """A hash of the stored elements that changes replace; None if they cannot be read."""
    try:
        elements = _stored_tile(array, tiles, change.index)
    except ZarrfsError:
        return None
    return None if elements is None else _hash(tiles, elements, change)


def _hash(tiles: Tiles, elements: Chunk, change: Change) -> str:
    digest = blake2b(digest_size=16)
    inside = _inside(tiles, change.index)
    plain = np.ascontiguousarray(elements[inside]).view(f"V{elements.dtype.itemsize}")
    digest.update(plain[change.mask[inside]].tobytes())
    for place, (_, known) in sorted(change.parts.items(), key=lambda part: part[0]):
        digest.update(np.frombuffer(plain[place].tobytes(), np.uint8)[known].tobytes())
    return digest.hexdigest()


def _stored_tile(array: Array, tiles: Tiles, tile: Index) -> Chunk | None:
    """The elements of a tile as they are stored now; None if they cannot be read."""
    form = tiles.form(tile)
    elements = np.empty(form.shape, form.dtype)
    for result in array.read_chunks(list(tiles.chunks(tile))):
        chunk = result.chunk
        if isinstance(result.error, MissingChunkError):
            chunk = array.fill_chunk(result.index)
        if chunk is None:
            return None
        elements[form.part(tiles.locate(result.index).place)] = chunk
    return elements


def _inside(tiles: Tiles, tile: Index) -> tuple[slice, ...]:
    return tuple(map(slice, tiles.form(tile).valid))


class _Later:
    """Elements of one tile that later entries have changed."""

    def __init__(self) -> None:
        self._mask: Bits | None = None
        self._parts: dict[Index, Bits] = {}

    def add(self, change: Change) -> None:
        self._mask = change.mask if self._mask is None else self._mask | change.mask
        for place, (_, known) in change.parts.items():
            before = self._parts.get(place)
            self._parts[place] = known if before is None else known | before

    def marks(self, change: Change) -> Bits:
        """Elements of ``change`` that are new as a whole, and that no later entry touches."""
        marks = change.mask.copy() if self._mask is None else change.mask & ~self._mask
        for place in self._parts:
            marks[place] = False
        return marks

    def known(self, place: Index, known: Bits) -> Bits:
        """The bytes of one element that no later entry has changed."""
        if self._mask is not None and self._mask[place]:
            return np.zeros_like(known)
        later = self._parts.get(place)
        return known if later is None else known & ~later


def _holds(tiles: Tiles, elements: Chunk, change: Change, later: _Later) -> bool:
    """Whether a stored tile has the changes that no later entry has changed again."""
    inside = _inside(tiles, change.index)
    stored = np.ascontiguousarray(elements[inside]).view(change.elements.dtype)
    marks = later.marks(change)[inside]
    if stored[marks].tobytes() != change.elements[inside][marks].tobytes():
        return False
    for place, (value, known) in change.parts.items():
        which = later.known(place, known)
        now = np.frombuffer(stored[place].tobytes(), np.uint8)
        if not np.array_equal(now[which], value[which]):
            return False
    return True
