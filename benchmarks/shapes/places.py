"""Where to read 4 KiB, and which planes, so that a library can read the very same elements."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import PAGE
from benchmarks.shapes.geometry import Geometry

PLANES = 4


def random_places(geometry: Geometry, count: int) -> tuple[NDArray[np.int64], int]:
    """Byte offsets, and for how many bytes each: whole rows, as many as 4 KiB hold.

    What lies there is one box of the array.
    """
    shape, item = geometry.shape, geometry.dtype.itemsize
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] * item <= PAGE:
        inner *= shape[axis]
        axis -= 1
    rows = min(shape[axis], PAGE // item // inner)
    rng = np.random.default_rng(geometry.seed)
    outer = rng.integers(0, math.prod(shape[:axis]), count)
    first = rng.integers(0, shape[axis] - rows + 1, count)
    return (outer * shape[axis] + first) * inner * item, rows * inner * item


def planes(geometry: Geometry, axis: int) -> tuple[list[int], int]:
    """Positions along the axis, and bytes of all these planes together."""
    length = geometry.shape[axis]
    rng = np.random.default_rng(geometry.seed)
    positions = rng.permutation(length)[:PLANES].tolist()
    return positions, geometry.size // length * len(positions)
