"""NumPy with a file that is mapped: what a program does that knows nothing of Zarr."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def read_planes(
    path: str, dtype: str, shape: list[int], axis: int, positions: list[int]
) -> Callable[[], None]:
    """Planes across an axis, one after the other."""

    def run() -> None:
        array = np.memmap(path, np.dtype(dtype), "r", shape=tuple(shape))
        for position in positions:
            np.array(array[(slice(None),) * axis + (position,)])

    return run
