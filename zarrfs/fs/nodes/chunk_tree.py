"""Numbers the directories and files of ``chunks/`` and ``shards/`` without making them."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate

from zarrfs.format.chunk_grid import Index, Shape


class ChunkTree:
    """A tree with one level of directories per axis, and files at the last.

    A node is the prefix of an index: ``()`` is the tree's root directory, a whole
    index is a file. Nodes have the numbers 0 to ``nodes - 1``: the root, then all that is
    in the directory ``0``, then all in ``1`` and so on, so that a number stays the same
    when the first axis grows or shrinks. A 0-dimensional grid has one file, ``0``.
    """

    def __init__(self, counts: Shape) -> None:
        self._scalar = not counts
        self.counts = counts or (1,)
        # Within each entry of the root, level by level.
        inner = self.counts[1:]
        per_depth = [math.prod(inner[:depth]) for depth in range(len(inner) + 1)]
        self._starts = [0, *accumulate(per_depth)]

    @property
    def nodes(self) -> int:
        return 1 + self.counts[0] * self._starts[-1]

    def number(self, prefix: Index) -> int:
        if not prefix:
            return 0
        position = 0
        for i, count in zip(prefix[1:], self.counts[1:], strict=False):
            position = position * count + i
        return 1 + prefix[0] * self._starts[-1] + self._starts[len(prefix) - 1] + position

    def prefix(self, number: int) -> Index:
        if number == 0:
            return ()
        first, number = divmod(number - 1, self._starts[-1])
        depth = bisect_right(self._starts, number) - 1
        position = number - self._starts[depth]
        reversed_prefix = []
        for count in reversed(self.counts[1 : 1 + depth]):
            position, i = divmod(position, count)
            reversed_prefix.append(i)
        return (first, *reversed(reversed_prefix))

    def is_file(self, prefix: Index) -> bool:
        return len(prefix) == len(self.counts)

    def chunk(self, prefix: Index) -> Index:
        """The chunk that a file stands for."""
        return () if self._scalar else prefix

    def child(self, prefix: Index, name: str) -> Index | None:
        """The node called ``name`` in the directory ``prefix``; None if there is none."""
        if not (name.isascii() and name.isdigit()) or (len(name) > 1 and name[0] == "0"):
            return None
        if len(name) > 20 or int(name) >= self.counts[len(prefix)]:
            return None
        return (*prefix, int(name))

    def children(self, prefix: Index) -> range:
        """The numbers of all that is in the directory ``prefix``, in order."""
        first = self.number((*prefix, 0))
        step = 1 if prefix else self._starts[-1]
        return range(first, first + step * self.counts[len(prefix)], step)
