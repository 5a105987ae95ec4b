"""Chunk shapes for a new array, chosen as TensorStore chooses them.

https://google.github.io/tensorstore/schema.html#chunk-layout. The tests compare the results with
TensorStore itself, constraint by constraint. *Read chunks* can be decoded on their own, *write
chunks* are stored as one object. If the two differ, a write chunk is a shard.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from zarrfs.format.chunk_grid import Shape

DEFAULT_ELEMENTS = 1 << 20
WHOLE = -1
"""A length that means the whole axis; 0 means a length to be chosen."""

# TensorStore's limits: for a length, for the search for a divisor, for inner chunks of a shard.
_LONGEST = (1 << 62) - 2
_SEARCH = 1_000_000
_MOST_IN_SHARD = 1 << 30
# Up to this number all divisors are computed at once.
_FACTORED = 1 << 40
_STEPS = 100


@dataclass(frozen=True, slots=True)
class ChunkConstraints:
    """Constraints for the read chunks or for the write chunks.

    lengths : along each axis; 0: to be chosen, -1: the whole axis. Empty: all to be chosen.
    about : axes whose length is only preferred, and yields to the constraints of the other
        chunks. The whole axis is always only preferred.
    elements : elements that a chunk should have if lengths are to be chosen; None: 2^20.
    aspect_ratio : of the lengths to be chosen; 0 and missing ones count as 1.
    """

    lengths: Sequence[int] = ()
    about: frozenset[int] = frozenset()
    elements: int | None = None
    aspect_ratio: Sequence[float] = ()

    def fixes(self, axis: int) -> bool:
        """Whether the length along ``axis`` is fixed."""
        return bool(self.lengths) and self.lengths[axis] > 0 and axis not in self.about


def choose_chunks(
    shape: Shape, read: ChunkConstraints, write: ChunkConstraints
) -> tuple[Shape, Shape]:
    """Shapes of read and write chunks; the second is a multiple of the first.

    shape : of the array.

    Raises ValueError if the constraints contradict each other.
    """
    inner, outer = _initial(shape, read), _initial(shape, write)
    for axis, (small, large) in enumerate(zip(inner, outer, strict=True)):
        if not small or not large or large % small == 0:
            continue
        if read.fixes(axis) and write.fixes(axis):
            raise ValueError(
                f"axis {axis}: shards of {large} do not consist of whole chunks of {small}"
            )
        if read.fixes(axis):
            outer[axis] = nearest_multiple(small, large)
        else:
            inner[axis] = nearest_divisor(large, small)
    inner = _complete(
        shape, inner, read, lambda axis, n: nearest_divisor(outer[axis], n) if outer[axis] else n
    )
    outer = _complete(shape, outer, write, lambda axis, n: nearest_multiple(inner[axis], n))
    inner_chunks = math.prod(large // small for small, large in zip(inner, outer, strict=True))
    if inner_chunks > _MOST_IN_SHARD:
        raise ValueError(f"a shard of {inner_chunks} chunks, at most {_MOST_IN_SHARD} are possible")
    return tuple(inner), tuple(outer)


def choose_chunk(shape: Shape, constraints: ChunkConstraints) -> Shape:
    """The chunk shape of an array without shards, as in every version before 3."""
    lengths = _initial(shape, constraints)
    return tuple(_complete(shape, lengths, constraints, lambda _, length: length))


def nearest_divisor(dividend: int, target: int) -> int:
    """The divisor of ``dividend`` nearest to ``target``; the smaller of two equally near ones."""
    if target >= dividend:
        return dividend
    if dividend <= _FACTORED:
        divisors = _divisors(dividend)
        place = bisect_right(divisors, target)
        near = min(divisors[max(place - 1, 0) : place + 1], key=lambda d: abs(d - target))
        return near if abs(near - target) < _SEARCH else dividend
    for distance in range(_SEARCH):
        if target > distance and dividend % (target - distance) == 0:
            return target - distance
        if dividend % (target + distance) == 0:
            return target + distance
    return dividend


@lru_cache(maxsize=64)
def _divisors(number: int) -> Sequence[int]:
    """All divisors, in order."""
    candidates = np.arange(1, math.isqrt(number) + 1)
    small = candidates[number % candidates == 0].tolist()
    return (*small, *(number // d for d in reversed(small) if d * d != number))


def nearest_multiple(divisor: int, target: int) -> int:
    """The multiple of ``divisor`` nearest to ``target``, but not 0; the smaller of two."""
    if target < divisor:
        return divisor
    lower = target // divisor * divisor
    upper = lower + divisor
    return lower if target - lower <= upper - target else upper


def _initial(shape: Shape, constraints: ChunkConstraints) -> list[int]:
    lengths = list(constraints.lengths) or [0] * len(shape)
    if len(lengths) != len(shape):
        raise ValueError(f"{len(lengths)} chunk lengths for {len(shape)} axes")
    if any(length < WHOLE for length in lengths):
        raise ValueError(f"{min(lengths)} is not a valid chunk length")
    return [
        max(1, extent) if length == WHOLE else length
        for extent, length in zip(shape, lengths, strict=True)
    ]


def _complete(
    shape: Shape,
    lengths: list[int],
    constraints: ChunkConstraints,
    fit: Callable[[int, int], int],
) -> list[int]:
    """Choose lengths for the axes that have none, near the requested number of elements.

    fit : maps an axis and a length to the nearest length that the axis can have.
    """
    wanted = DEFAULT_ELEMENTS if constraints.elements is None else constraints.elements
    if wanted < 1:
        raise ValueError(f"chunks of {wanted} elements")
    free = [axis for axis, length in enumerate(lengths) if not length]
    if not free:
        return lengths
    ratios = _ratios(len(shape), constraints.aspect_ratio)
    largest_ratio = max(ratios[axis] for axis in free)
    ratio = {axis: ratios[axis] / largest_ratio for axis in free}
    longest = {axis: min(wanted, max(1, shape[axis]), _LONGEST) for axis in free}

    def scaled(factor: float) -> list[int]:
        return [
            length or fit(axis, max(1, int(min(ratio[axis] * factor, longest[axis]))))
            for axis, length in enumerate(lengths)
        ]

    step = min(1 / ratio[axis] for axis in free) / 2
    high = 2 * max(longest[axis] / ratio[axis] for axis in free)
    low = step
    high_elements = None
    for _ in range(_STEPS):
        if low + step >= high:
            break
        middle = math.sqrt(low * high) if high > 4 * low else low + (high - low) / 2
        if not low < middle < high:
            break
        elements = math.prod(scaled(middle))
        if elements >= wanted:
            high, high_elements = middle, elements
        if elements <= wanted:
            low = middle
    return scaled(high if high_elements == wanted else low)


def _ratios(rank: int, given: Sequence[float]) -> list[float]:
    if given and len(given) != rank:
        raise ValueError(f"{len(given)} aspect ratios for {rank} axes")
    if any(not 0 <= value < math.inf for value in given):
        raise ValueError("an aspect ratio must be a number from 0 up")
    return [value or 1.0 for value in given] or [1.0] * rank
