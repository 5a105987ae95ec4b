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
"""Integers, slices of step 1 and one ellipsis, as numpy's basic indexing takes them."""


@dataclass(frozen=True, slots=True)
class Region:
    """A box of an array.

    dropped : axes that the index has an integer for, and that the result does not have.
    """

    origin: Index
    shape: Shape
    dropped: frozenset[int] = frozenset()

    @property
    def result_shape(self) -> Shape:
        """The shape without the dropped axes."""
        return tuple(n for axis, n in enumerate(self.shape) if axis not in self.dropped)


def select(selection: Selection, shape: Shape) -> Region:
    """The box that an index selects in an array of ``shape``, by numpy's rules.

    Raises IndexError for an unsupported index: an integer outside the array, too many indices, a
    step other than 1, or anything but integers, slices and an ellipsis.
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
    origin, lengths, dropped = [], [], []
    for axis, (item, extent) in enumerate(
        zip((*items[:at], *whole, *items[at + 1 :]), shape, strict=True)
    ):
        if isinstance(item, slice):
            start, stop, step = item.indices(extent)
            if step != 1:
                raise IndexError(f"a step of {step} is not supported, only 1")
            origin.append(start)
            lengths.append(max(0, stop - start))
            continue
        if isinstance(item, bool | EllipsisType) or not hasattr(item, "__index__"):
            raise IndexError(f"{item!r} is neither an integer, a slice nor an ellipsis")
        number = operator.index(item)
        if not -extent <= number < extent:
            raise IndexError(f"index {number} is outside axis {axis} of {extent} elements")
        origin.append(number % extent)
        lengths.append(1)
        dropped.append(axis)
    return Region(tuple(origin), tuple(lengths), frozenset(dropped))


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
