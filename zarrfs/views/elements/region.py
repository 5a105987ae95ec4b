"""Boxes of an array: from an index as numpy takes it, or from text."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from types import EllipsisType
from typing import SupportsIndex, TypeAlias

from zarrfs.errors import UsageError
from zarrfs.format.chunk_grid import Index, Shape

Item: TypeAlias = SupportsIndex | slice | EllipsisType
Selection: TypeAlias = Item | tuple[Item, ...]
"""Integers, slices and one ellipsis, as numpy's basic indexing takes them."""


@dataclass(frozen=True, slots=True)
class Region:
    """A box of an array.

    dropped : axes that the index has an integer for, and that the result does not have.
    steps : along each axis, the distance of the selected elements; negative: the last one comes
        first. Empty: all elements of the box are selected, in order.
    """

    origin: Index
    shape: Shape
    dropped: frozenset[int] = frozenset()
    steps: Shape = ()

    @property
    def lengths(self) -> Shape:
        """How many elements are selected along each axis."""
        if not self.steps:
            return self.shape
        return tuple(-(-n // abs(step)) for n, step in zip(self.shape, self.steps, strict=True))

    @property
    def result_shape(self) -> Shape:
        """The lengths without the dropped axes."""
        return tuple(n for axis, n in enumerate(self.lengths) if axis not in self.dropped)


def select(selection: Selection, shape: Shape) -> Region:
    """The box that an index selects in an array of ``shape``, by numpy's rules.

    Raises IndexError for an unsupported index: an integer outside the array, too many indices, or
    anything but integers, slices and an ellipsis. ValueError for a step of 0.
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if len(items) - ellipses > len(shape):
        raise IndexError(f"{len(items) - ellipses} indices for an array of {len(shape)} axes")
    if not ellipses:
        items = (*items, Ellipsis)
    at = next(i for i, item in enumerate(items) if item is Ellipsis)
    whole = (slice(None),) * (len(shape) - len(items) + 1)
    origin, lengths, dropped, steps = [], [], [], [1] * len(shape)
    for axis, (item, extent) in enumerate(
        zip((*items[:at], *whole, *items[at + 1 :]), shape, strict=True)
    ):
        if isinstance(item, slice):
            try:
                selected = range(*item.indices(extent))
            except TypeError:
                raise IndexError(f"{item!r}: the parts of a slice must be integers") from None
            steps[axis] = selected.step
            low, high = sorted((selected[0], selected[-1])) if selected else (0, -1)
            origin.append(low)
            lengths.append(high - low + 1)
            continue
        if isinstance(item, bool | EllipsisType) or not hasattr(item, "__index__"):
            raise IndexError(
                f"{item!r} is neither an integer, a slice nor an ellipsis: "
                "read a box, and index that with numpy"
            )
        number = operator.index(item)
        if not -extent <= number < extent:
            raise IndexError(f"index {number} is outside axis {axis} of {extent} elements")
        origin.append(number % extent)
        lengths.append(1)
        dropped.append(axis)
    stepped = () if set(steps) <= {1} else tuple(steps)
    return Region(tuple(origin), tuple(lengths), frozenset(dropped), stepped)


def parse_region(text: str, shape: Shape) -> Region:
    """The box that text like ``0:10,:,5`` selects.

    Unlike in numpy, a slice that reaches beyond the array is an error. Raises UsageError.
    """
    parts = text.split(",") if text.strip() else []
    if len(parts) > len(shape):
        raise UsageError(f"the region {text!r} has {len(parts)} axes, the array has {len(shape)}")
    origin, lengths, dropped = [], [], []
    for axis, extent in enumerate(shape):
        part = parts[axis].strip() if axis < len(parts) else ":"
        low, colon, high = part.partition(":")
        try:
            if colon:
                start = int(low) if low.strip() else 0
                stop = int(high) if high.strip() else extent
            else:
                start = int(part)
                stop = start + 1 or extent
                dropped.append(axis)
        except ValueError:
            raise UsageError(
                f"the region {text!r} is not of the form START:STOP,… ({part!r})"
            ) from None
        start, stop = (n + extent if n < 0 else n for n in (start, stop))
        if not 0 <= start <= stop <= extent:
            raise UsageError(f"the region {text!r} leaves axis {axis}, which has {extent} elements")
        origin.append(start)
        lengths.append(stop - start)
    return Region(tuple(origin), tuple(lengths), frozenset(dropped))
