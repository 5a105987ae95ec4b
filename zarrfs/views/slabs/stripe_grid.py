"""Where the parts of stripes and pieces of one row of chunks lie in its place in a scratch file.

`staged_rows` says what stripes and pieces are, and how the file is divided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Shape

Numbers = NDArray[np.int64]

# Pairs of stripes and pieces that are compared at once.
_COMPARED = 1 << 20


class Parts(NamedTuple):
    """Parts of one stripe, one after the other as they lie in its memory.

    sizes : elements of each.
    places : within the row's place in the file, in elements.
    """

    sizes: Numbers
    places: Numbers

    @property
    def joined(self) -> Parts:
        """Parts that also follow each other in the file are one."""
        sizes, places = self
        begins = np.flatnonzero(np.append(True, places[1:] != places[:-1] + sizes[:-1]))
        return Parts(np.add.reduceat(sizes, begins), places[begins])


class Strip(NamedTuple):
    """Parts of one piece in several stripes, all of one shape and neighbours along one axis.

    They follow each other in the file.

    low : where the first one begins within the piece, in elements.
    shape : of each.
    axis, number : along which axis, and how many.
    """

    low: Shape
    shape: Shape
    axis: int
    number: int


class StripeGrid(NamedTuple):
    """The stripes of one row.

    shape : of the row.
    cut, thick : pieces follow each other along this axis, with so many elements along it, and have
        length 1 along all axes before it.
    low, high : where each stripe begins and ends (exclusive) within the row, in elements; (stripes,
        axes).
    """

    shape: Shape
    cut: int
    thick: int
    low: Numbers
    high: Numbers

    def crossed(self, first: Sequence[int], shape: Shape) -> tuple[list[int], list[Strip]]:
        """The stripes that contain parts of a piece, and these parts.

        first, shape : of the piece within the row.
        """
        low = np.maximum(self.low - first, 0)
        high = np.minimum(self.high - first, shape)
        crossed = np.flatnonzero((low < high).all(axis=1))
        return crossed.tolist(), list(_strips(low[crossed], (high - low)[crossed]))

    def parts(self, number: int) -> Iterator[Parts]:
        """The parts of a stripe, which comes after ``number`` others."""
        cut, thick, shape = self.cut, self.thick, self.shape
        low, high = self.low[number], self.high[number]
        inner = math.prod(shape[cut + 1 :])
        before_low, before_high = self.low[:number], self.high[:number]
        # For each earlier stripe: its elements behind the cut, and how much of each piece it has.
        behind = (before_high - before_low)[:, cut + 1 :].prod(axis=1)
        pieces = np.arange(low[cut] // thick, -(-high[cut] // thick)) * thick
        along = np.minimum(before_high[:, cut, None], pieces + thick)
        along = np.maximum(along - np.maximum(before_low[:, cut, None], pieces), 0)
        along *= behind[:, None]
        sizes = np.minimum(pieces + thick, high[cut]) - np.maximum(pieces, low[cut])
        sizes *= (high - low)[cut + 1 :].prod()
        spans = [range(n, h) for n, h in zip(low[:cut].tolist(), high[:cut].tolist(), strict=True)]
        outers = list(product(*spans))
        steps = np.array([math.prod(shape[axis + 1 :]) for axis in range(cut)], np.int64)
        share = max(1, _COMPARED // max(1, number, len(pieces)))
        for done in range(0, len(outers), share):
            group = np.array(outers[done : done + share], np.int64)
            outer = group[:, None]
            has = ((before_low[:, :cut] <= outer) & (outer < before_high[:, :cut])).all(axis=2)
            before = has.astype(np.int64) @ along
            places = (group @ steps)[:, None] + pieces * inner + before
            yield Parts(np.tile(sizes, len(group)), places.reshape(-1))


def _strips(low: Numbers, lengths: Numbers) -> Iterator[Strip]:
    """
    low, lengths : of each part; (parts, axes).
    """
    steps = np.diff(low, axis=0)
    moved = steps != 0
    beside = (lengths[1:] == lengths[:-1]).all(axis=1) & (moved.sum(axis=1) == 1)
    axes = moved.argmax(axis=1) if moved.size else np.zeros(len(moved), np.int64)
    if moved.size:
        follows = np.arange(len(axes)), axes
        beside &= steps[follows] == lengths[1:][follows]
    first, axis = 0, -1
    starts, shapes = low.tolist(), lengths.tolist()
    for i, (near, along) in enumerate(zip(beside.tolist(), axes.tolist(), strict=True), 1):
        if near and axis in (-1, along):
            axis = along
            continue
        yield Strip(tuple(starts[first]), tuple(shapes[first]), max(axis, 0), i - first)
        first, axis = i, -1
    if starts:
        yield Strip(tuple(starts[first]), tuple(shapes[first]), max(axis, 0), len(starts) - first)
