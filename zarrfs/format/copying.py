"""Copies elements between arrays of different memory layouts."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk

# Bytes.
_SHORT_ROW = 256
# The most elements of a row that are copied one at a time across all rows, and how many rows, at
# least, must follow each other.
_FEW = 4
_ROWS = 16
# Elements of one row in a tile of a transposition: as many cache lines stay in a cache whose sets
# they share.
_TILE = 16
# The least cache lines that a row of the target brings in before it needs one of them again.
_MANY_LINES = 64
# A stride of which lines lie in at most an eighth of the sets of a usual first-level cache.
_SHARED_SETS = 512
_LINE = 64
# Elements of one copy for which it pays to start another one.
_LEAST = 2048
_LEAST_TILED = 16384
# Elements that are copied along with each wanted one, at most.
_MOST_ALONG = 8


def copy_elements(part: Chunk, target: Chunk) -> None:
    """Copy between arrays of one shape; their byte orders may differ.

    To begin a row costs numpy as much as copying 60 bytes, so short rows are copied as elements.
    """
    movable = part.dtype == target.dtype and not part.dtype.hasobject
    if movable and part.ndim > 1 and part.shape[-1] > 1:
        item = part.itemsize
        row = part.shape[-1] * item
        if row <= _SHORT_ROW and part.strides[-1] == target.strides[-1] == item:
            part, target = part.view(f"V{row}"), target.view(f"V{row}")
    axis = step = 0
    if target.size >= _LEAST and part.ndim > 1:
        axis, step = _cut(part.shape, part.strides, target.strides)
    if not step:
        target[...] = part
        return
    where = [slice(None)] * target.ndim
    for start in range(0, target.shape[axis], step):
        where[axis] = slice(start, start + step)
        place = tuple(where)
        target[place] = part[place]


def contiguous(elements: Chunk, dtype: np.dtype[Any]) -> Chunk:
    """The same elements in C order, copied only if they are not, or have another data type."""
    if elements.flags.c_contiguous and elements.dtype == dtype:
        return elements
    copied: Chunk = np.empty(elements.shape, dtype)
    copy_elements(elements, copied)
    return copied


def in_sequence(elements: Chunk, first: int, last: int) -> Chunk:
    """Elements ``first`` to ``last`` (exclusive, not equal) in C order, one-dimensional.

    A copy, unless they are contiguous. An iterator of numpy (`ndarray.flat`) takes 9 ns for each
    element, up to twenty times as long as a copy of whole rows.
    """
    wanted = last - first
    if elements.flags.c_contiguous:
        return elements.reshape(-1)[first:last]
    while elements.ndim > 1:
        inner = math.prod(elements.shape[1:])
        low, high = first // inner, -(-last // inner)
        first, last = first - low * inner, last - low * inner
        if high - low > 1:
            if (high - low) * inner > _MOST_ALONG * wanted:
                return elements.flat[first + low * inner : last + low * inner]
            elements = contiguous(elements[low:high], elements.dtype).reshape(-1)
            break
        elements = elements[low]
    return contiguous(elements[first:last], elements.dtype)


def plain_type(size: int) -> np.dtype[Any]:
    """A data type of ``size`` bytes through which numpy copies and compares every bit.

    numpy handles plain numbers fastest, and swaps their bytes if byte orders differ.
    """
    return np.dtype(f"<u{size}" if size in (1, 2, 4, 8) else f"V{size}")


@lru_cache(maxsize=1024)  # chunks of an array are alike, and this takes as long as to copy some KiB
def _cut(shape: Shape, source: Shape, target: Shape) -> tuple[int, int]:
    """Along which axis to divide a copy, and into pieces of what length; 0: not at all.

    source, target : the strides of both sides, in bytes.

    numpy copies row by row, in the order of the target's memory, however short the rows are, and
    however far apart the elements of a row are in the source. In 400 transpositions of 4 KiB to
    4 MiB, on a processor with caches of 48 KiB and 1 MiB, rows of a few elements, as of colours,
    took half the time when they were divided, and a fifth where they were many. Where lengths are
    powers of two, all elements of a row lie in the same few sets of the caches, and each line is
    fetched again for each of its elements: tiles took two fifths of the time, and a ninth where the
    rows were many. Other transpositions gained nothing.
    """
    axes = [axis for axis, length in enumerate(shape) if length > 1]
    count = math.prod(shape)
    if len(axes) < 2 or not count:
        return 0, 0
    axes.sort(key=lambda axis: abs(target[axis]))
    row = axes[0]
    length = shape[row]
    nearest = min(axes, key=lambda axis: abs(source[axis]))
    if nearest == row:
        return 0, 0
    if length <= _FEW:
        worth = shape[axes[1]] >= _ROWS and count >= _LEAST * length
        return row, int(worth)
    lines = math.prod([shape[axis] for axis in axes[: axes.index(nearest)]])
    far = source[row] % _SHARED_SETS == 0 and abs(source[row]) >= _LINE
    worth = far and lines >= _MANY_LINES and length >= 2 * _TILE
    return row, _TILE * (worth and count >= _LEAST_TILED)
