"""Divides reads of very many chunks, so that few of the chunks have objects at any time.

A chunk that is read takes a kilobyte of objects, and a chunk may have one byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from zarrfs.array.block import Run
from zarrfs.cache.read.flights import Done
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.window import Box, Window

MOST_CHUNKS = 10_000

Work = Callable[[], None]


def portions(window: Window, box: Box, units: Shape) -> Iterator[tuple[list[Run], ...]]:
    """Runs along each axis that together have all chunks of a box, `MOST_CHUNKS` or fewer at once.

    units : chunks along each axis that shall stay together, as those of a shard do. Larger units
        are divided.
    """
    counts = list(map(window.count_along, range(len(box.shape)), box.start, box.shape))
    if math.prod(counts) <= MOST_CHUNKS:
        yield tuple(window.runs(box))
        return
    if math.prod(units) > MOST_CHUNKS:
        units = (1,) * len(units)
    # The fastest axes stay whole. Along the axes before them, one portion has one unit.
    steps, room = list(units), MOST_CHUNKS // math.prod(units)
    for axis in reversed(range(len(steps))):
        wanted = -(-counts[axis] // units[axis]) + 1
        steps[axis] = units[axis] * max(1, min(room, wanted))
        room //= max(1, min(room, wanted))
    along = [
        _parts(window, axis, start, length, step)
        for axis, (start, length, step) in enumerate(zip(box.start, box.shape, steps, strict=True))
    ]
    for parts in product(*along):
        yield tuple(
            [_runs(window, axis, box.start[axis], *part) for axis, part in enumerate(parts)]
        )


def _parts(window: Window, axis: int, start: int, length: int, step: int) -> list[tuple[int, int]]:
    """Start and length of parts of at most ``step`` chunks along an axis."""
    along, origin = window.grid.axes[axis], window.origin[axis]
    low, high = origin + start, min(origin + start + length, along.extent)
    parts = []
    while low < high:
        chunk = along.chunk_of(low)
        last = min((chunk // step + 1) * step, along.count) - 1
        end = min(high, along.origin(last) + along.length(last))
        parts.append((low - origin, end - low))
        low = end
    return parts


def _runs(window: Window, axis: int, first: int, start: int, length: int) -> list[Run]:
    """The runs of a part of a box that begins at ``first``."""
    moved = start - first
    return [
        run._replace(target=slice(run.target.start + moved, run.target.stop + moved))
        for run in window.runs_along(axis, start, length)
    ]


def one_after_another(
    begin: Iterator[Callable[[Done], None]], done: Done, in_thread: Callable[[Work, Done], None]
) -> None:
    """Have each of the reads done after the one before, and ``done`` after all, or after an error.

    begin : each begins a read, and has its argument called when the read has ended.
    in_thread : performs work in a thread; its second argument gets the error if the work fails.
    """

    def next_one() -> None:
        if (read := next(begin, None)) is None:
            done(None)
        else:
            read(later)

    def later(error: ChunkError | None) -> None:
        if error is not None:
            done(error)
        else:
            # Not in the call that ends the read before: the calls would be nested.
            in_thread(next_one, done)

    in_thread(next_one, done)
