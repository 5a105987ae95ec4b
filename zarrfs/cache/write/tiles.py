"""Tiles: neighbouring chunks of one stored object whose changes are kept together.

Each piece of memory with changes takes about a kibibyte in addition to its elements. If inner
chunks are smaller than that, several of them share one piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product, repeat
from operator import floordiv, lt
from typing import Any, NamedTuple

import numpy as np

from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout

Slices = tuple[slice, ...]

# Smallest bytes of a chunk that is a tile of its own, and bytes of a tile of smaller chunks.
_SMALLEST_ALONE = 4 << 10
_TILE = 64 << 10


class TileForm(NamedTuple):
    """The form of one tile.

    shape : of its memory, in elements; including the part beyond the array.
    valid : shape of the part that lies inside the array.
    chunk : shape of each read chunk in it.
    """

    shape: Shape
    dtype: np.dtype[Any]
    valid: Shape
    chunk: Shape

    @property
    def counts(self) -> Shape:
        """How many read chunks it has along each axis."""
        return tuple([n // c for n, c in zip(self.shape, self.chunk, strict=True)])

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def part(self, place: Index) -> Slices:
        """The slices of the tile that contain the read chunk at ``place``."""
        return tuple([slice(i * c, i * c + c) for i, c in zip(place, self.chunk, strict=True)])

    def chunk_of(self, element: Index) -> Index:
        """The place of the read chunk that contains an element."""
        return tuple([i // c for i, c in zip(element, self.chunk, strict=True)])

    def is_whole(self, where: Slices) -> bool:
        """Whether slices contain all elements inside the array."""
        for part, length in zip(where, self.valid, strict=True):
            if part.start or part.stop < length:
                return False
        return True


class Tiles:
    """The tiles of one array.

    grid : each of its chunks is a tile.
    inside : the slices of a tile that lies inside the array as a whole; None: tiles differ.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        self._members = _members(layout)
        self.grid = layout.read
        if self._members is not None and (chunk := layout.read.regular_shape) is not None:
            shape = tuple([c * n for c, n in zip(chunk, self._members, strict=True)])
            self.grid = ChunkGrid.regular(layout.read.shape, shape)
        self._zeros = (0,) * len(layout.read.axes)
        # The form of tiles that lie inside the array as a whole: most of them.
        self._inner: TileForm | None = None
        self.inside: Slices | None = None
        if (regular := self.grid.regular_shape) is not None:
            chunk = regular if self._members is None else layout.read.largest_chunk
            self._inner = TileForm(regular, layout.data_type.dtype, regular, chunk)
            self.inside = tuple(map(slice, repeat(0), regular))
            self._whole = tuple(map(floordiv, self.grid.shape, regular))

    @property
    def single(self) -> bool:
        """Whether each read chunk is a tile of its own."""
        return self._members is None

    def locate(self, index: Index) -> tuple[Index, Index]:
        """The tile of a read chunk, and its place in the tile."""
        if self._members is None:
            return index, self._zeros
        both = [divmod(i, n) for i, n in zip(index, self._members, strict=True)]
        return tuple([tile for tile, _ in both]), tuple([at for _, at in both])

    def chunk(self, tile: Index, place: Index) -> Index:
        """The index of the read chunk at ``place`` of a tile."""
        if self._members is None:
            return tile
        axes = zip(tile, self._members, place, strict=True)
        return tuple([i * n + at for i, n, at in axes])

    def chunks(self, tile: Index) -> Iterator[Index]:
        """The indices of all read chunks of a tile that contain a part of the array."""
        form = self.form(tile)
        axes = zip(form.valid, form.chunk, strict=True)
        for place in product(*(range(-(-n // c)) for n, c in axes)):
            yield self.chunk(tile, place)

    def stored(self, tile: Index) -> Index:
        """The stored object that contains a tile."""
        if self._members is None:
            return self._layout.stored_index(tile)
        return self._layout.stored_index(self.chunk(tile, self._zeros))

    def all_stored(self, tiles: Sequence[Index]) -> list[Index]:
        """As `stored`, of many tiles, with no call for each."""
        if self._members is None and (members := self._layout.members) is not None:
            return [tuple(map(floordiv, tile, members)) for tile in tiles]
        return list(map(self.stored, tiles))

    def forms(self, tiles: Sequence[Index]) -> list[TileForm]:
        """As `form`, of many tiles, with no call for each that lies inside the array."""
        if (inner := self._inner) is None:
            return list(map(self.form, tiles))
        whole = self._whole
        return [inner if all(map(lt, tile, whole)) else self.form(tile) for tile in tiles]

    def form(self, tile: Index) -> TileForm:
        if self._inner is not None and all(map(lt, tile, self._whole)):
            return self._inner
        grid = self.grid
        shape = grid.chunk_shape(tile)
        chunk = shape if self._members is None else self._layout.read.chunk_shape(tile)
        return TileForm(shape, self._layout.data_type.dtype, grid.valid_shape(tile), chunk)

    def count_in(self, stored: Index) -> int:
        """How many tiles of a stored object contain a part of the array."""
        layout = self._layout
        if not layout.sharded:
            return 1
        valid = layout.stored.valid_shape(stored)
        # All tiles of a shard have the same shape.
        shape = self.grid.largest_chunk
        return math.prod(-(-v // n) for v, n in zip(valid, shape, strict=True))


def _members(layout: ChunkLayout) -> Shape | None:
    """Read chunks along each axis of a tile; None if each read chunk is a tile."""
    members, chunk = layout.members, layout.read.regular_shape
    if not layout.sharded or members is None or chunk is None:
        return None
    size = layout.spec(chunk).nbytes
    if not 0 < size < _SMALLEST_ALONE:
        return None
    counts = [1] * len(members)
    # The last axis first, because programs write files along it.
    for axis in reversed(range(len(members))):
        room = _TILE // (size * math.prod(counts))
        most = max(1, min(room, members[axis]))
        counts[axis] = next(n for n in range(most, 0, -1) if members[axis] % n == 0)
    return tuple(counts) if math.prod(counts) > 1 else None
