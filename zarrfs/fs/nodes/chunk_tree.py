"""Numbers the directories and files of ``chunks/`` and ``shards/`` without making them."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape


class ChunkTree:
    """A tree with one level of directories per axis, and files at the last.

    A node is the prefix of an index: ``()`` is the tree's root directory, a whole
    index is a file. The root has the number ``first``; then comes all that is in the
    directory ``0``, then all in ``1`` and so on, so that a number stays the same
    when the first axis grows or shrinks. A 0-dimensional grid has one file, ``0``.

    step : from one number to the next.
    nodes : how many there are.
    """

    def __init__(self, counts: Shape, first: int = 0, step: int = 1) -> None:
        self.first = first
        self._step = step
        self._scalar = not counts
        self.counts = counts or (1,)
        # Within each entry of the root, level by level.
        inner = self.counts[1:]
        per_depth = [math.prod(inner[:depth]) for depth in range(len(inner) + 1)]
        self._starts = [0, *accumulate(per_depth)]

    @property
    def nodes(self) -> int:
        return 1 + self.counts[0] * self._starts[-1]

    @property
    def stop(self) -> int:
        """The number after the last one."""
        return self.first + (self.nodes - 1) * self._step + 1

    def number(self, prefix: Index) -> int:
        if not prefix:
            return self.first
        position = 0
        for i, count in zip(prefix[1:], self.counts[1:], strict=False):
            position = position * count + i
        number = 1 + prefix[0] * self._starts[-1] + self._starts[len(prefix) - 1] + position
        return self.first + number * self._step

    def prefix(self, number: int) -> Index | None:
        """The node with this number; None for another number."""
        number, rest = divmod(number - self.first, self._step)
        if rest or not 0 <= number < self.nodes:
            return None
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
        step = self._step * (1 if prefix else self._starts[-1])
        return range(first, first + step * self.counts[len(prefix)], step)


class GridTree(ChunkTree):
    """``chunks/`` or ``shards/``: one file for each chunk of ``grid``.

    first : number within the node of the tree's root directory.
    step : the trees of a node take turns, so that none is in the way when another one grows.
    """

    def __init__(self, name: str, grid: ChunkGrid, first: int, step: int) -> None:
        super().__init__(grid.counts, first, step)
        self.name = name
        self.grid = grid

    def place(self, local: int) -> TreePlace | None:
        """The place with this number within the node; None if it is not in the tree."""
        prefix = self.prefix(local)
        return None if prefix is None else TreePlace(self, prefix)


class TreePlace(NamedTuple):
    """A directory or file below ``chunks/`` or ``shards/``."""

    tree: GridTree
    prefix: Index

    @property
    def is_file(self) -> bool:
        return self.tree.is_file(self.prefix)

    @property
    def chunk(self) -> Index:
        """Index in the tree's grid of the chunk that a file shows."""
        return self.tree.chunk(self.prefix)
