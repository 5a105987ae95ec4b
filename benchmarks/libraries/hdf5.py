"""h5py on a file of a mount."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import h5py


def _data(path: str) -> Any:
    """The dataset of the most axes: the others are scales."""
    file = h5py.File(path)
    return max(file.values(), key=lambda dataset: dataset.ndim)


def read_planes(path: str, axis: int, positions: Sequence[int]) -> Callable[[], None]:
    """Planes across an axis, one after the other."""

    def run() -> None:
        data = _data(path)
        for position in positions:
            data[(slice(None),) * axis + (position,)]

    return run


def read_planes_again(path: str, axis: int, positions: Sequence[int]) -> Callable[[], None]:
    """The same of an open file, after the first of them has been read."""
    data = _data(path)
    first, *others = positions
    data[(slice(None),) * axis + (first,)]

    def run() -> None:
        for position in others:
            data[(slice(None),) * axis + (position,)]

    return run
