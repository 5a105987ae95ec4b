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

import numpy as np

from zarrfs.cache.write.journal.journal import JournalEntry
from zarrfs.cache.write.journal.pending import (
    Change,
    hash_of,
    in_units,
    inside_array,
    layout_name,
    state_name,
    stored_tile,
)
from zarrfs.cache.write.tile_copy import Bits
from zarrfs.cache.write.tiles import Tiles
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import JournalError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk

_ROWS = re.compile(r"\[(\d+)(.*)", re.DOTALL)


class Outcome(Enum):
    """The outcome of an entry; a `JournalError` stands for that of a damaged one.

    STORED : its changes are in the store, or later changes of the same elements are.
    OLDER : others have changed the stored object since.
    ELSEWHERE : the array is another one by now.
    WAITS : the stored chunk cannot be read, so the replay cannot judge the entry, which stays.
    """

    STORED = auto()
    OLDER = auto()
    ELSEWHERE = auto()
    WAITS = auto()


Restored = tuple[JournalEntry, Outcome | JournalError]


def restore(target: WritableArray, entries: Iterable[JournalEntry]) -> Iterator[Restored]:
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
            by_object[target.tiles.stored(entry.header.index)].append(entry)
        else:
            yield entry, Outcome.ELSEWHERE
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


def _belongs(target: WritableArray, entry: JournalEntry) -> bool:
    """Whether an entry belongs to a tile of this array, which may have grown since."""
    array, tiles = target.array, target.tiles
    if not _same_layout(layout_name(array, tiles), entry) or not tiles.grid.contains(
        entry.header.index
    ):
        return False
    # The entry is loaded, which takes memory, only if it has this form.
    form, (*shape, units) = tiles.form(entry.header.index), entry.header.shape
    return (*shape, units * entry.header.item_size) == (*form.shape, form.dtype.itemsize)


def _same_layout(now: str, entry: JournalEntry) -> bool:
    if now == entry.header.layout:
        return True
    rows, others = _ROWS.fullmatch(now), _ROWS.fullmatch(entry.header.layout)
    if rows is None or others is None:
        return False
    return rows[2] == others[2] and int(rows[1]) > int(others[1])


def _restore_object(
    target: WritableArray, stored: Index, members: list[JournalEntry]
) -> list[Restored]:
    results = _judge(target, stored, members)
    changed = False
    for entry in members:
        if entry in results:
            continue
        try:
            change = entry.load()
        except JournalError as error:
            results[entry] = error
            continue
        new: Bits = np.asarray(change.new.all(axis=-1))
        target.adopt(change.index, change.elements, new)
        for place in map(tuple, np.argwhere(change.new.any(axis=-1) & ~new).tolist()):
            value, known = change.units[place].view(np.uint8), change.new[place]
            target.write_part(change.index, place, value, known, True)
        results[entry] = Outcome.STORED
        changed = True
    if changed:
        target.flush_object(stored)
    return [(entry, results[entry]) for entry in members]


def _judge(
    target: WritableArray, stored: Index, members: list[JournalEntry]
) -> dict[JournalEntry, Outcome | JournalError]:
    """The results of entries that must not be stored.

    Their changes are stored already if the last replay was interrupted after storing them: then the
    chunk has their elements, or those of later entries of the same tile.
    """
    array, tiles = target.array, target.tiles
    info = array.stored_info(stored)
    newer = 0 if info is None else info.mtime_ns or 0
    state = state_name(None if info is None else info.generation)
    results: dict[JournalEntry, Outcome | JournalError] = {}
    for index in {entry.header.index for entry in members}:
        same = [entry for entry in members if entry.header.index == index]
        if all(_in_time(entry, newer, state) for entry in same):
            continue
        elements = stored_tile(array, tiles, index)
        later: Bits = np.zeros(1, bool)
        for entry in reversed(same):
            try:
                change = entry.load()
            except JournalError as error:
                results[entry] = error
                continue
            if not _in_time(entry, newer, state):
                outcome = _judged(tiles, elements, entry, change, later)
                if outcome is not None:
                    results[entry] = outcome
            later = later | change.new
    return results


def _judged(
    tiles: Tiles, elements: Chunk | None, entry: JournalEntry, change: Change, later: Bits
) -> Outcome | None:
    """The outcome of an entry; None if its changes must be stored.

    elements : of the tile, as they are stored now; None if they cannot be read.
    """
    if elements is None:
        # A tile that is new as a whole does not depend on stored elements.
        whole = entry.header.old is None and bool(
            change.new[inside_array(tiles, change.index)].all()
        )
        return None if whole else Outcome.WAITS
    if entry.header.old == hash_of(tiles, elements, change):
        return None
    return Outcome.STORED if _holds(tiles, elements, change, later) else Outcome.OLDER


def _in_time(entry: JournalEntry, newer: int, state: str) -> bool:
    """Whether others cannot have changed the stored object since."""
    return entry.header.base == state or (
        entry.header.old is None and entry.header.written_ns >= newer
    )


def _holds(tiles: Tiles, elements: Chunk, change: Change, later: Bits) -> bool:
    """Whether a stored tile has the changes that no later entry has changed again.

    later : units, or bytes of them, that later entries have changed.
    """
    inside = inside_array(tiles, change.index)
    new = change.units[inside].view("V1")
    marks = np.broadcast_to((change.new & ~later)[inside], new.shape)
    stored = in_units(elements[inside], 1)
    return bool(stored[marks].tobytes() == new[marks].tobytes())
