"""Which slabs a flat file has, and how many of them there is memory for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs.slab_grid import LARGEST_REQUEST, SMALL_SLAB, SlabGrid
from zarrfs.views.slabs.staged_rows import StagedRows

# The most bytes of a kept slab, for which one read may wait, and its least number of chunks.
_LARGEST_KEPT = 64 << 20
_FEWEST_KEPT = 16
# Bytes of memory for slabs below which no slabs are assembled.
_LEAST = 64 << 10

# Bytes that are loaded ahead of a single reader, and in how many slabs. While one slab is copied
# from and another one is finished, loaders need further slabs, and more of them if a slab has few
# jobs. New memory costs as much as decoding some chunks, so the slabs are small and few, and soon
# used again.
_AHEAD = 48 << 20
_MOST_AHEAD = 3
# Slabs of whole shards that there must be room for: one that is read, one that is needed next, and
# others that are fetched meanwhile.
_FEWEST_WHOLE = 4
# Bytes of one request for a part of a stored object.
_REQUEST = 8 << 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SlabPlan:
    """
    grid : of the slabs that readers stream; None: the file has none that fit.
    staged : the rows that these slabs are parts of, if memory has no room for a row; else None.
    kept : the grid of slabs for random reads; None: keeping them does not pay.
    room : how many slabs fit into memory.
    ahead : how many of them to load ahead of a single reader of a local store.
    requests : to the store, for one slab.
    """

    grid: SlabGrid | None
    staged: StagedRows | None
    kept: SlabGrid | None
    room: int = 2
    ahead: int = 1
    requests: float = 1.0

    @classmethod
    def of(cls, elements: Elements, cache: BlockCache) -> Self:
        """The slabs of a file with these elements."""
        arena, item = cache.arena, elements.dtype.itemsize
        grid, staged = _streamed(elements, cache)
        if grid is None or not elements.count:
            return cls(grid, staged, None)
        kept = _kept(elements, cache, grid) if staged is None else None
        first, last = grid.slab_at(0)
        size = (last - first) * item
        lendable = arena.lendable(elements.array.largest_load)
        room = space = max(1, min(2 * arena.largest, lendable) // size)
        wanted = max(1, min(_AHEAD // size, _MOST_AHEAD))
        if staged is not None:
            # The slabs that two requests cross: the kernel sends the next one beside the first.
            wanted = 2 * (1 + -(-LARGEST_REQUEST // size)) - 1
            space = max(1, (lendable - staged.decoding) // size)
        ahead = max(0, min(wanted, space - 1))
        return cls(grid, staged, kept, room, ahead, size / _decoded_bytes(elements))


def is_distant(elements: Elements) -> bool:
    """Whether loads wait for a store more than for a processor."""
    return elements.array.array.store.traits.in_flight > 1


def _streamed(elements: Elements, cache: BlockCache) -> tuple[SlabGrid | None, StagedRows | None]:
    """Whole rows of chunks, if two of them fit or are all; else parts, from a scratch file.

    A file whose rows pass through memory alone is read a third faster than through a scratch file.
    If another file has the memory, its chunks are loaded one by one: two such files at once are
    read a tenth slower than through the scratch file, three a quarter.
    """
    arena, item = cache.arena, elements.dtype.itemsize
    # A slab is filled while others are lent out, unless there is room for the whole file.
    lendable = arena.lendable(elements.array.largest_load)
    largest = min(arena.largest, lendable // 2)
    if elements.count * item <= lendable:
        largest = lendable
    whole = SlabGrid.plan(elements.window, item, largest)
    members = elements.array.array.layout.members
    if whole is not None and members is not None and is_distant(elements):
        # Then each shard is one request. All requests of a slab should be in flight together.
        at_once = elements.array.array.store.traits.in_flight * _decoded_bytes(elements)
        most = min(lendable // _FEWEST_WHOLE, at_once)
        whole = whole.of_whole_shards(members, most // item)
    row = SlabGrid.plan_row(elements.window)
    if whole is not None or row is None or not row.row or largest < _LEAST:
        return whole, None
    # Requests that cross several pieces cost more than the room for further pieces gains.
    small = max(largest // 4, min(2 * LARGEST_REQUEST, largest // 2))
    most = max(1, min(SMALL_SLAB, small) // item)
    row = row.in_pieces(most, most // 4)
    staged = StagedRows.plan(elements, cache, row)
    if staged is None:
        return SlabGrid.plan(elements.window, item, lendable), None
    return row, staged


def _kept(elements: Elements, cache: BlockCache, streamed: SlabGrid) -> SlabGrid | None:
    """Slabs of one row of chunks each, if keeping them may pay.

    Per-chunk caching is as fast for few chunks. If requests cost money, nothing is fetched without
    a request.
    """
    array = elements.array
    if not array.array.store.traits.near or array.largest_load > cache.arena.never_lent:
        return None
    grid = streamed._replace(rows=1)
    first, last = grid.slab_at(0)
    small = (last - first) * elements.dtype.itemsize <= _LARGEST_KEPT
    return grid if small and grid.chunks >= _FEWEST_KEPT else None


def _decoded_bytes(elements: Elements) -> int:
    """Decoded bytes that one request brings."""
    layout = elements.array.array.layout
    return min(max(1, layout.spec(layout.stored.largest_chunk).nbytes), _REQUEST)
