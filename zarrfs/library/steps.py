"""Elements at regular distances: the boxes that contain them, one after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.region import Region


class SteppedBox(NamedTuple):
    """
    region : a box without steps.
    target : where its selected elements lie among all selected ones, in ascending order.
    picks : which elements of the box are selected.
    """

    region: Region
    target: tuple[slice, ...]
    picks: tuple[slice, ...]


def ascending(region: Region) -> tuple[slice, ...]:
    """Turns an array of the selected elements into one in which they ascend, and back."""
    return tuple(slice(None, None, -1 if step < 0 else 1) for step in region.steps)


def boxes_to_read(region: Region, chunks: Shape, most: int) -> Iterator[SteppedBox]:
    """Boxes of at most ``most`` elements, or of one chunk if that has more.

    A chunk is in one box, unless it is larger than the box has to be. Chunks without selected
    elements are in none, but for those that a step shorter than a chunk passes over.
    """
    steps = [abs(step) for step in region.steps]
    units = [max(1, chunk // step) for chunk, step in zip(chunks, steps, strict=True)]
    sizes = [
        1 if step > chunk else n
        for n, step, chunk in zip(region.lengths, steps, chunks, strict=True)
    ]
    while math.prod([(n - 1) * step + 1 for n, step in zip(sizes, steps, strict=True)]) > most:
        parts = [-(-n // unit) for n, unit in zip(sizes, units, strict=True)]
        if (largest := max(parts)) == 1:
            break
        axis = parts.index(largest)
        sizes[axis] = units[axis] * -(-largest // 2)
    yield from _boxes(region, steps, sizes)


def boxes_to_write(region: Region) -> Iterator[SteppedBox]:
    """Boxes that hold nothing but selected elements."""
    steps = [abs(step) for step in region.steps]
    sizes = [1 if step > 1 else n for n, step in zip(region.lengths, steps, strict=True)]
    yield from _boxes(region, steps, sizes)


def _boxes(region: Region, steps: list[int], sizes: list[int]) -> Iterator[SteppedBox]:
    lengths = region.lengths
    picks = tuple(slice(None, None, step) for step in steps)
    for firsts in product(*[range(0, n, max(1, m)) for n, m in zip(lengths, sizes, strict=True)]):
        stops = [min(f + m, n) for f, m, n in zip(firsts, sizes, lengths, strict=True)]
        origin = [o + f * s for o, f, s in zip(region.origin, firsts, steps, strict=True)]
        shape = [(b - a - 1) * s + 1 for a, b, s in zip(firsts, stops, steps, strict=True)]
        box = Region(tuple(origin), tuple(shape))
        yield SteppedBox(box, tuple(map(slice, firsts, stops)), picks)
