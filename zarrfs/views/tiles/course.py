"""Which boxes a program comes to next."""

from __future__ import annotations

from collections.abc import Iterator

from zarrfs.format.chunk_grid import Index, Shape

# Boxes of a range whose end is not known: a program that begins at the first box along an axis
# mostly reads to the last one. Any other one may end anywhere; a tenth is decoded in vain at most.
_FROM_FIRST, _FROM_WITHIN = 2, 10


class Course:
    """The way of one reader through a grid of boxes.

    A plane or a part of an array is a box of boxes, which libraries read in C order. Where its
    ranges along the axes end is known once the reader has begun anew along them.
    """

    def __init__(self, counts: Shape) -> None:
        """``counts`` : of the boxes along each axis."""
        self._counts = counts
        self._at: Index = ()
        self._low: list[int] = []
        self._high: list[int] = []
        # The axis along which the range has no known end, and boxes of the range so far.
        self._open = 0
        self._read = 0

    def follow(self, index: Index) -> None:
        """The reader has come to a box."""
        if index == self._at:
            return
        if not self._at or not self._goes_on(index):
            self._low, self._high = list(index), list(index)
            self._read = 0
        self._at = index
        self._read += 1

    def ahead(self, most: int) -> Iterator[Index]:
        """Up to ``most`` boxes that are likely to follow."""
        if self._low == self._high:
            return
        of = _FROM_WITHIN if self._low[self._open] else _FROM_FIRST
        guesses = self._read // of
        at, open_at = self._at, self._at[self._open]
        for _ in range(most):
            if (after := self._after(at)) is None:
                return
            if after[self._open] > open_at:
                if not guesses:
                    return
                guesses -= 1
            yield (at := after)

    def _goes_on(self, index: Index) -> bool:
        """Whether a box is in the range of those before, or makes it longer along one axis."""
        at = self._at
        if index == self._after(at):
            return True
        axis = next(i for i, (new, old) in enumerate(zip(index, at, strict=True)) if new != old)
        if index[axis] != at[axis] + 1 or any(
            new > old for new, old in zip(index[axis + 1 :], at[axis + 1 :], strict=True)
        ):
            return False
        low = self._low[axis]
        self._low = [*index[:axis], low, *index[axis + 1 :]]
        self._high = [*index[:axis], self._counts[axis] - 1, *at[axis + 1 :]]
        self._open = axis
        return True

    def _after(self, index: Index) -> Index | None:
        """The next box of the range; None: ``index`` is the last one."""
        for axis in reversed(range(len(index))):
            if index[axis] < self._high[axis]:
                return (*index[:axis], index[axis] + 1, *self._low[axis + 1 :])
        return None
