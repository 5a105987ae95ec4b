"""Elements as instruments give them: a smooth field with noise, which codecs halve or so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.shapes.geometry import Geometry

_BLOCK = 1 << 21  # elements
_PART = 1 << 20  # bytes


def write_elements(geometry: Geometry, path: Path) -> None:
    """A file of the bytes that ``array.bin`` must have."""
    with path.open("wb") as file:
        for block in _blocks(geometry):
            file.write(block.data)


def write_other_elements(geometry: Geometry, plain: Path, path: Path) -> None:
    """Other elements for the same array, which compress as well: those of ``plain``, moved."""
    item = geometry.dtype.itemsize
    # An odd number of elements, so that hardly any stays what it was.
    moved = (geometry.size // item // 2 | 1) * item
    with plain.open("rb") as source, path.open("wb") as target:
        for start, stop in (moved, geometry.size), (0, moved):
            source.seek(start)
            for place in range(start, stop, _PART):
                target.write(source.read(min(_PART, stop - place)))


def _blocks(geometry: Geometry) -> Iterator[NDArray[Any]]:
    """The elements in C order, flat."""
    rng = np.random.default_rng(geometry.seed)
    shape = geometry.shape
    height, noise = rng.uniform(20, 90), rng.uniform(0.5, 6)
    waves = [
        (height * np.sin(np.arange(length) / rng.uniform(15, 80) + rng.uniform(0, 6))).astype("f4")
        for length in shape
    ]
    # Blocks are rows of one axis, with all of the axes behind it.
    axis = 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) > _BLOCK:
        axis += 1
    inner = np.zeros(1, np.float32)
    for wave in waves[axis + 1 :]:
        inner = np.add.outer(inner, wave).reshape(-1)
    rows = max(1, _BLOCK // inner.size)
    for index in np.ndindex(shape[:axis]):
        outer = sum(float(wave[i]) for wave, i in zip(waves, index, strict=False))
        for start in range(0, shape[axis], rows):
            block = np.add.outer(waves[axis][start : start + rows] + np.float32(outer), inner)
            block += rng.standard_normal(block.shape, np.float32) * np.float32(noise)
            yield _as_type(block.reshape(-1), geometry.dtype)


def _as_type(field: NDArray[np.float32], dtype: np.dtype[Any]) -> NDArray[Any]:
    counts = np.rint(field)
    match dtype.kind:
        case "f":
            # Counts of a detector with a gain.
            return counts.astype(dtype) * dtype.type(0.25)
        case "c":
            return (counts - 0.5j * counts[::-1]).astype(dtype)
        case _ if dtype.itemsize == 1:
            return (counts / 2 + 128).clip(0, 255).astype(dtype)
        case _:
            return (counts * 4 + 2000).clip(0).astype(dtype)
