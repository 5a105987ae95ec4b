"""How the file of a window is divided into slabs: rows of chunks that are contiguous in it."""

from __future__ import annotations

import math
from typing import NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.window import Window

# Small rows of chunks are combined to a slab of this size, so that requests for it pay. Slabs of 2
# and 4 MiB were no faster, nor were slabs of whole shards where this size divides shards.
SMALL_SLAB = 8 << 20
# Bytes of the kernel's largest read or write.
LARGEST_REQUEST = 1 << 20


class SlabGrid(NamedTuple):
    """How a window is divided into slabs, in elements.

    axis : the slabs' own axis; all axes before it have chunks of length 1.
    rows : chunks along ``axis`` in one slab.
    piece : elements of one slab that is a box within one row of chunks; 0 if slabs are whole rows.
    cut : the axis along which pieces follow each other; pieces have length 1 along all axes before
        it.
    """

    window: Window
    axis: int
    rows: int
    piece: int = 0
    cut: int = 0

    @classmethod
    def plan(cls, window: Window, item_size: int, largest: int) -> SlabGrid | None:
        """Slabs of at most ``largest`` bytes; None if the window has no such slabs."""
        longest = window.grid.largest_chunk
        for axis, length in enumerate(longest):
            row = length * math.prod(window.shape[axis + 1 :]) * item_size
            if 0 < row <= largest:
                return cls(window, axis, max(1, min(SMALL_SLAB, largest) // row))
            if length > 1:
                return None
        return None

    @classmethod
    def plan_row(cls, window: Window, members: Shape | None = None) -> SlabGrid | None:
        """Slabs of one row of chunks or shards each, of any size; None if all are single elements.

        members : chunks along each axis of a shard; None: slabs are rows of chunks.
        """
        chunk = window.grid.largest_chunk
        counts = (1,) * len(chunk) if members is None else members
        for axis, (length, count) in enumerate(zip(chunk, counts, strict=True)):
            if length * count > 1:
                return cls(window, axis, count)
        return None

    def of_whole_shards(self, members: Shape, most: int) -> SlabGrid:
        """The same slabs, or larger ones of whole shards if these have at most ``most`` elements.

        members : chunks along each axis of a shard.
        """
        rows = members[self.axis]
        rows *= max(1, self.rows // rows)
        if math.prod(members[: self.axis]) > 1 or rows * self.row > most:
            return self
        return self._replace(rows=rows)

    def in_pieces(self, most: int, stretch: int = 0) -> SlabGrid:
        """The same rows in slabs of at most ``most`` elements, each of which is a box.

        stretch : elements more that a slab may have if the rows then have fewer slabs.
        """
        shape = self.window.shape
        cut, inner = self.axis, math.prod(shape[self.axis + 1 :])
        while inner > most + stretch:
            cut += 1
            inner //= shape[cut]
        thick = max(1, most // inner)
        if cut > self.axis:
            # Slabs of similar size: each end of the axis cuts one.
            slabs = -(-shape[cut] // max(1, (most + stretch) // inner))
            thick = -(-shape[cut] // slabs)
        return self._replace(piece=thick * inner, cut=cut)

    @property
    def row(self) -> int:
        """Elements of the largest row of chunks."""
        window, axis = self.window, self.axis
        return window.grid.axes[axis].longest * math.prod(window.shape[axis + 1 :])

    @property
    def chunks(self) -> int:
        """The most chunks of which a slab has a part."""
        beside = list(enumerate(self.window.shape))[self.axis + 1 :]
        return self.rows * math.prod(self.window.count_along(axis, 0, n) for axis, n in beside)

    def slab_at(self, element: int) -> tuple[int, int]:
        """First and last (exclusive) element of the slab that contains ``element``."""
        window, axis = self.window, self.axis
        inner = math.prod(window.shape[axis + 1 :])
        outer, within = divmod(element, inner * window.shape[axis])
        grid_axis = window.grid.axes[axis]
        origin = window.origin[axis]
        end = origin + window.shape[axis]
        position = origin + within // inner
        if position >= grid_axis.extent:
            # There are no chunks beyond the array, only fill value.
            start, stop = grid_axis.extent, end
        else:
            chunk = grid_axis.chunk_of(position)
            low = chunk - (chunk - grid_axis.chunk_of(origin)) % self.rows
            high = min(low + self.rows, grid_axis.count) - 1
            start = max(origin, grid_axis.origin(low))
            stop = min(end, grid_axis.extent, grid_axis.origin(high) + grid_axis.length(high))
        base = outer * inner * window.shape[axis] - origin * inner
        first, last = base + start * inner, base + stop * inner
        if self.piece:
            if self.cut > axis:
                whole = math.prod(window.shape[self.cut :])
                first += (element - first) // whole * whole
                last = min(last, first + whole)
            first += (element - first) // self.piece * self.piece
            last = min(last, first + self.piece)
        return first, last
