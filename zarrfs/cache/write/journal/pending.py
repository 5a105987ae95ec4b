"""The forms in which the journal takes changes, and what it tells of the stored elements."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from zarrfs.array.array import Array
from zarrfs.cache.write.tile_copy import Bits
from zarrfs.cache.write.tiles import Tiles
from zarrfs.errors import ChunkError, ZarrfsError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """New elements of one chunk.

    units : of the chunk's full shape, with a last axis for the units of an element. A unit is a
        byte if an element is new in part, otherwise an element. Only the new ones are valid.
    new : which units are new, of the same shape.
    """

    index: Index
    units: Chunk
    new: Bits

    @property
    def elements(self) -> Chunk:
        return self.units.view(f"V{self.units.itemsize * self.units.shape[-1]}")[..., 0]


class PendingChunk(NamedTuple):
    """Changes of one chunk, and what a later mount needs to judge them.

    path : of the array below the source.
    layout : identifies shape, chunk grid and data type of the array.
    since : when the oldest of the changes was made (`time.monotonic`).
    base : names the state into which this mount itself has brought the stored object; None if it
        has not stored the object since the oldest change.
    old : a hash of the stored elements that the changes replace; None if the store does not answer.
    replaced : whether the array is encoded in another way now, or smaller, so that no mount may
        store them.
    """

    path: str
    layout: str
    change: Change
    since: float
    base: str | None
    old: str | None = None
    replaced: bool = False


class PendingGrowth(NamedTuple):
    """An array that has grown, and whose stored metadata have the old length.

    path : of the array below the source.
    shape : in the stored metadata.
    rows : the new length of the first axis. Its elements are stored already, unless they are
        pending, too.
    """

    path: str
    shape: Shape
    rows: int


Pending: TypeAlias = PendingChunk | PendingGrowth


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


def stored_hash(array: Array, tiles: Tiles, change: Change) -> str | None:
    """A hash of the stored elements that changes replace; None if they cannot be read."""
    try:
        elements = stored_tile(array, tiles, change.index)
    except ZarrfsError:
        return None
    return None if elements is None else hash_of(tiles, elements, change)


def hash_of(tiles: Tiles, elements: Chunk, change: Change) -> str:
    """As `stored_hash`, of a tile whose stored elements are known."""
    inside = inside_array(tiles, change.index)
    stored = in_units(elements[inside], change.units.itemsize)
    return blake2b(stored[change.new[inside]].tobytes(), digest_size=16).hexdigest()


def stored_tile(array: Array, tiles: Tiles, tile: Index) -> Chunk | None:
    """The elements of a tile as they are stored now; None if they cannot be read."""
    form = tiles.form(tile)
    elements = np.empty(form.shape, form.dtype)
    for result in array.read_chunks(list(tiles.chunks(tile))):
        try:
            chunk = array.stored_chunk(result)
        except ChunkError:
            return None
        elements[form.part(tiles.locate(result.index)[1])] = chunk
    return elements


def in_units(elements: Chunk, size: int) -> Chunk:
    """Elements with a last axis for their units of ``size`` bytes each."""
    return elements[..., np.newaxis].view(f"V{size}")


def inside_array(tiles: Tiles, tile: Index) -> Any:
    """The index of what is inside the array in a tile; a view of it without axes, too."""
    return (*map(slice, tiles.form(tile).valid), ...)
