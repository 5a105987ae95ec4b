"""A block of an array in one piece of memory, and the chunks that cover it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, repeat
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Chunk

_Item = TypeVar("_Item")


class Run(NamedTuple):
    """Along one axis: the number of a chunk, its wanted part, and where that goes in the block."""

    chunk: int
    source: slice
    target: slice


class RunRange(NamedTuple):
    """Runs of neighbouring chunks with the same wanted part and adjacent places in the block.

    chunk, source, target : the first run, as (start, stop).
    runs : how many.
    """

    chunk: int
    source: tuple[int, int]
    target: tuple[int, int]
    runs: int


class Piece(NamedTuple):
    """The part of a chunk to copy, and its target.

    chunk : its index.
    source : part of the chunk.
    target : memory of that part's shape.
    """

    chunk: Index
    source: tuple[slice, ...]
    target: Chunk


class Patch(NamedTuple):
    """The same part of several chunks that are neighbours along every axis.

    first : index of the first chunk.
    counts : how many chunks along each axis.
    source : the part of each chunk.
    targets : memory for these parts, of shape ``(*counts, *part)``.
    """

    first: Index
    counts: Shape
    source: tuple[slice, ...]
    targets: Chunk

    @classmethod
    def of(cls, piece: Piece) -> Patch:
        """A patch of one chunk."""
        index, source, target = piece
        one = (1,) * len(index)
        return cls(index, one, source, target.reshape(*one, *target.shape))

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return math.prod(self.counts)

    def indices(self) -> Iterator[Index]:
        """The indices of the chunks, in C order."""
        return product(*map(range, self.first, map(add, self.first, self.counts)))

    def pieces(self) -> Iterator[Chunk]:
        """The memory for the part of each chunk, in the same order."""
        for place in product(*map(range, self.counts)):
            where: tuple[Any, ...] = (*place, ...)
            yield self.targets[where]

    def cut(self, most: int) -> Iterator[Patch]:
        """Patches of at most ``most`` chunks, which in this order have the same chunks."""
        axis, joined = len(self.counts), 1
        while axis > 0 and joined * self.counts[axis - 1] <= most:
            axis -= 1
            joined *= self.counts[axis]
        if axis == 0:
            yield self
            return
        axis -= 1
        steps = [1] * axis + [most // joined]
        for starts in product(*map(range, repeat(0), self.counts, steps)):
            stops = map(min, map(add, starts, steps), self.counts)
            where: tuple[Any, ...] = (*map(slice, starts, stops), ...)
            targets = self.targets[where]
            first = tuple(map(add, self.first, starts)) + self.first[axis + 1 :]
            yield Patch(first, targets.shape[: len(first)], self.source, targets)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """All chunks in the product of some runs along each axis.

    runs : for each axis of the array, in order; each chunk has one run only.
    target : memory that contains the places of all their parts.
    carrier : the data type through which chunks are copied.
    """

    runs: tuple[Sequence[Run], ...]
    target: Chunk
    carrier: np.dtype[Any]

    @property
    def count(self) -> int:
        """Number of chunks."""
        return math.prod(map(len, self.runs))

    @property
    def part(self) -> Chunk:
        """The part of the target that belongs to these chunks."""
        where: list[Any] = [slice(runs[0].target.start, runs[-1].target.stop) for runs in self.runs]
        return self.target[(*where, ...)]  # a view for rank 0, too

    def pieces(self) -> Iterator[Piece]:
        """The pieces, chunk by chunk in C order."""
        for runs in product(*self.runs):
            index, source, where = zip(*runs, strict=True) if runs else ((), (), ())
            yield Piece(index, source, self.target[(*where, ...)])  # a view for rank 0, too

    def patches(self, layout: ChunkLayout) -> Iterator[Patch]:
        """All chunks, as few patches.

        Each patch is in one shard, if there are shards, and those of a shard follow each other. The
        last axis varies slowest, because neighbours along it write to the same pages.
        """
        along = self._units(layout) if layout.sharded else [[runs] for runs in self.runs]
        spans = [[ranges(runs) for runs in shards] for shards in along]
        for shard in product(*reversed(spans)):
            for patch in product(*shard):
                yield self._patch(patch[::-1])

    def _patch(self, spans: Sequence[RunRange]) -> Patch:
        sides: list[int] = []
        where: list[Any] = []
        for _, _, (start, stop), count in spans:
            sides += count, stop - start
            where.append(slice(start, start + count * (stop - start)))
        axes = range(0, len(sides), 2)
        return Patch(
            tuple([span.chunk for span in spans]),
            tuple(sides[::2]),
            tuple([slice(*span.source) for span in spans]),
            self.target[(*where, ...)].reshape(sides).transpose(*axes, *[a + 1 for a in axes]),
        )

    def indices(self) -> Iterator[Index]:
        """The indices of the chunks."""
        return product(*([run.chunk for run in runs] for runs in self.runs))

    def moved(self, target: Chunk) -> Block:
        """The same chunks with other memory: ``target`` in place of `part`."""
        runs = [expanded(ranges(along, along[0].target.start)) for along in self.runs]
        return replace(self, runs=tuple(runs), target=target)

    def jobs(self, layout: ChunkLayout | None, most: int) -> Iterator[Block]:
        """Blocks of at most ``most`` chunks, as contiguous in the target as possible.

        Shards of at most ``most`` chunks are not divided. If ``layout`` is None, cuts may be
        anywhere.
        """
        yield from self._cut(self._units(layout), most)

    def _cut(self, units: Sequence[Sequence[Sequence[Run]]], most: int) -> Iterator[Block]:
        """Cut between units, or within a single one, along the slowest axes first.

        units : see `_units`.
        """
        block = self._with([[run for unit in along for run in unit] for along in units])
        if (count := block.count) <= most:
            if count:
                yield block
            return
        axis = next((axis for axis, along in enumerate(units) if len(along) > 1), None)
        if axis is None:
            yield from block._cut(block._units(None), most)
            return
        for along in _shares(units[axis], -(-count // most)):
            yield from self._cut((*units[:axis], along, *units[axis + 1 :]), most)

    def shards(self, layout: ChunkLayout) -> Iterator[Block]:
        """One block per shard; all chunks together if there are no shards."""
        if not layout.sharded:
            yield self
            return
        # The last axis varies slowest, because neighbours along it write to the same pages.
        for runs in product(*reversed(self._units(layout))):
            yield self._with(runs[::-1])

    def by_stored(self, layout: ChunkLayout) -> dict[Index, tuple[Sequence[Run], ...]]:
        """The runs of each stored object that holds chunks of the block, by its index."""
        along = self._units(layout)
        firsts = product(*[[unit[0].chunk for unit in units] for units in along])
        return dict(zip(map(layout.stored_index, firsts), product(*along), strict=True))

    def crosses_shards(self, layout: ChunkLayout) -> bool:
        """Whether the block crosses its shards along all axes but one, so that a scan wants all of
        each shard."""
        if layout.members is None:
            return False
        within = 0
        for runs, many, count in zip(self.runs, layout.members, layout.read.counts, strict=True):
            first, stop = runs[0].chunk, runs[-1].chunk + 1
            within += bool(
                stop - first != len(runs) or first % many or (stop % many and stop != count)
            )
        return within <= 1

    def _with(self, runs: Sequence[Sequence[Run]]) -> Block:
        """A block of other runs in the same memory."""
        return Block(tuple(runs), self.target, self.carrier)

    def _units(self, layout: ChunkLayout | None) -> Sequence[Sequence[Sequence[Run]]]:
        """Along each axis, the runs of each stored object; for None, those of each chunk."""
        if layout is None or not layout.sharded:
            return [[[run] for run in runs] for runs in self.runs]
        origin = [runs[0].chunk if runs else 0 for runs in self.runs]

        def shard_along(axis: int) -> Callable[[Run], int]:
            def shard(run: Run) -> int:
                return layout.stored_index((*origin[:axis], run.chunk, *origin[axis + 1 :]))[axis]

            return shard

        found = []
        for axis, runs in enumerate(self.runs):
            shard = shard_along(axis)
            most = len(runs) if layout.members is None else layout.members[axis]
            units, start = list[Sequence[Run]](), 0
            while start < len(runs):
                end = min(start + most, len(runs))
                stop = bisect_right(runs, shard(runs[start]), start, end, key=shard)
                units.append(runs[start:stop])
                start = stop
            found.append(units)
        return found


def _shares(items: Sequence[_Item], count: int) -> Iterator[Sequence[_Item]]:
    """At most ``count`` parts of similar size, so that no reader waits long for the last part."""
    step = -(-len(items) // min(len(items), count))
    for start in range(0, len(items), step):
        yield items[start : start + step]


def ranges(runs: Sequence[Run], origin: int = 0) -> tuple[RunRange, ...]:
    """Runs along one axis in compact form, with places that count from ``origin``.

    See `expanded`.
    """
    found = []
    first = 0
    for count, run in enumerate(runs, 1):
        after = runs[count] if count < len(runs) else None
        if (
            after is not None
            and after.source == run.source
            and (after.chunk, after.target.start) == (run.chunk + 1, run.target.stop)
        ):
            continue
        chunk, source, target = runs[first]
        ends = (source.start, source.stop), (target.start - origin, target.stop - origin)
        found.append(RunRange(chunk, *ends, count - first))
        first = count
    return tuple(found)


def expanded(short: Sequence[RunRange]) -> list[Run]:
    """The runs from which `ranges` made the compact form."""
    runs: list[Run] = []
    for chunk, source, (start, stop), count in short:
        step = stop - start
        starts, stops = (range(at, at + count * step, step) for at in (start, stop))
        targets = map(slice, starts, stops)
        numbers = range(chunk, chunk + count)
        # Faster than `Run._make`, which is a function in Python.
        runs += map(tuple.__new__, repeat(Run), zip(numbers, repeat(slice(*source)), targets))
    return runs
