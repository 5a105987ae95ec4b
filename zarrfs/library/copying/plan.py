"""Cuts a copy into boxes of whole destination objects, so that few source chunks are decoded twice.

A box holds whole stored objects of the destination, and is copied in memory. A source chunk that
lies in several boxes is decoded for each of them. So the plan looks for the boxes, within the
memory, that together decode the least; of those the smallest, and then grows these up to a useful
size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from zarrfs.format.chunk_grid import ChunkGrid, GridAxis, Index
from zarrfs.library.transfer.tiles import TilePlan, grown
from zarrfs.views.elements.window import Window

# Boxes along an axis that are looked at to estimate how often chunks are decoded.
_LOOKED_AT = 64
# Combinations of lengths that are compared.
_MOST_COMPARED = 20_000


@dataclass(frozen=True, slots=True)
class BoxPlan:
    """
    tiles : the boxes, in elements of the destination.
    decoded : how often a chunk of the source is decoded, on average; 1 is the best.
    fits : whether a box of one destination object is within the memory.
    """

    tiles: TilePlan
    decoded: float
    fits: bool


def plan_boxes(
    source: ChunkGrid, origin: Index, target: ChunkGrid, *, window: Window, most: int, useful: int
) -> BoxPlan:
    """The boxes for a copy.

    source : the chunks that are decoded, of which ``origin`` is the first element to be copied.
    target : the grid of the objects that boxes consist of.
    window : the part of the destination that is copied, whole objects of ``target``.
    most, useful : elements of a box: at most, and about.
    """
    extents = window.shape
    if 0 in extents:
        return BoxPlan(TilePlan(window, extents, cuts_chunks=False), 1.0, fits=True)
    begin = tuple(o + w for o, w in zip(origin, window.origin, strict=True))
    each = [
        list(_candidates(axis, first, unit.longest, extent))
        for axis, first, unit, extent in zip(source.axes, begin, target.axes, extents, strict=True)
    ]
    while math.prod(map(len, each)) > _MOST_COMPARED:
        longest = max(each, key=len)
        del longest[1:-1:2]
    least = [lengths[0] for lengths in each]
    best = min(
        (
            (math.prod(share for _, share in choice), math.prod(n for n, _ in choice), choice)
            for choice in product(*each)
            if math.prod(n for n, _ in choice) <= most
        ),
        key=lambda found: found[:2],
        default=(math.prod(share for _, share in least), 0, tuple(least)),
    )
    decoded, size, choice = best
    lengths = [n for n, _ in choice]
    if size:
        lengths = grown(lengths, window, min(most, useful))
    plan = TilePlan(window, tuple(lengths), cuts_chunks=False)
    return BoxPlan(plan, decoded, fits=size > 0)


def _candidates(axis: GridAxis, first: int, unit: int, extent: int) -> Iterator[tuple[int, float]]:
    """Lengths of boxes, and how often a chunk is decoded with each; only where longer pays."""
    unit, chunk = min(unit, extent), axis.longest
    sizes = {1, math.lcm(unit, chunk) // unit, -(-extent // unit)}
    sizes.update(1 << i for i in range(extent.bit_length()))
    sizes.update(-(-chunk * m // unit) for m in (1, 2, 4, 8))
    fewest = math.inf
    for count in sorted(sizes):
        length = min(unit * count, extent)
        share = _decoded(axis, first, length, extent)
        if share < fewest * 0.99:
            fewest = share
            yield length, share
        if share <= 1 or length == extent:
            return


def _decoded(axis: GridAxis, first: int, length: int, extent: int) -> float:
    """How often boxes of ``length`` decode a chunk, from the first of them."""
    touched = 0
    start = stop = first
    for _ in range(_LOOKED_AT):
        if start >= first + extent:
            break
        stop = min(start + length, first + extent)
        touched += axis.chunk_of(stop - 1) - axis.chunk_of(start) + 1
        start = stop
    return touched / (axis.chunk_of(stop - 1) - axis.chunk_of(first) + 1)
