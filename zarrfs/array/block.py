"""A block of an array in one piece of memory, and the chunks that cover it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from zarrfs.format.chunk_grid import Index
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


class Strip(NamedTuple):
    """The same part of several chunks that are neighbours along the last axis.

    chunks : their indices.
    source : the part of each chunk.
    targets : memory for these parts, one after the other along a first axis.
    """

    chunks: Sequence[Index]
    source: tuple[slice, ...]
    targets: Chunk


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """All chunks in the product of some runs along each axis.

    runs : for each axis of the array, in order; each chunk has one run only.
    target : memory that contains the places of all their parts.
    carrier : the data type through which chunks are copied.
    new_memory : whether the target is mostly memory without pages yet, and not filled again soon.
    """

    runs: tuple[Sequence[Run], ...]
    target: Chunk
    carrier: np.dtype[Any]
    new_memory: bool = False

    @property
    def count(self) -> int:
        """Number of chunks."""
        count = 1
        for runs in self.runs:
            count *= len(runs)
        return count

    @property
    def part(self) -> Chunk:
        """The part of the target that belongs to these chunks."""
        where: list[Any] = [slice(runs[0].target.start, runs[-1].target.stop) for runs in self.runs]
        return self.target[(*where, ...)]  # a view for rank 0, too

    def pieces(self) -> Iterator[Piece]:
        """The pieces, chunk by chunk."""
        for chunks, source, targets in self.strips():
            for number, chunk in enumerate(chunks):
                yield Piece(chunk, source, targets[number, ...])  # a view for rank 0, too

    def strips(self) -> Iterator[Strip]:
        """The chunks in order, as strips of neighbours with the same part and adjacent places."""
        if not self.runs:
            yield Strip([()], (), self.target[np.newaxis])
            return
        alongs = list(_alike(self.runs[-1]))
        for runs in product(*self.runs[:-1]):
            index, source, where = zip(*runs, strict=True) if runs else ((), (), ())
            for along in alongs:
                target = self.target[(*where, slice(along[0].target.start, along[-1].target.stop))]
                if len(along) == 1:
                    targets = target[np.newaxis]
                else:
                    length = target.shape[-1] // len(along)
                    rank = target.ndim
                    targets = target.reshape(*target.shape[:-1], len(along), length)
                    targets = targets.transpose(rank - 1, *range(rank - 1), rank)
                chunks = [(*index, run.chunk) for run in along]
                yield Strip(chunks, (*source, along[0].source), targets)

    @property
    def in_order(self) -> bool:
        """Whether the parts lie in the target one after the other, each in one piece."""
        if not self.part.flags.c_contiguous:
            return False
        several = [axis for axis, runs in enumerate(self.runs) if len(runs) > 1]
        before = self.runs[: several[-1]] if several else ()
        return all(run.target.stop - run.target.start == 1 for runs in before for run in runs)

    def indices(self) -> Iterator[Index]:
        """The indices of the chunks."""
        return product(*([run.chunk for run in runs] for runs in self.runs))

    def moved(self, target: Chunk) -> Block:
        """The same chunks with other memory: ``target`` in place of `part`."""
        runs = tuple(
            [
                run._replace(target=slice(run.target.start - first, run.target.stop - first))
                for run in along
            ]
            for along in self.runs
            for first in (along[0].target.start,)
        )
        return replace(self, runs=runs, target=target)

    def jobs(self, layout: ChunkLayout | None, most: int) -> Iterator[Block]:
        """Blocks of at most ``most`` chunks, as contiguous in the target as possible.

        Shards of at most ``most`` chunks are not divided. If ``layout`` is None, cuts may be
        anywhere.
        """
        if layout is not None and layout.sharded:
            yield from self._cut_units(list(self._by_shard(layout)), most)
        else:
            yield from self._cut(most)

    def _cut_units(self, units: Sequence[Sequence[Sequence[Run]]], most: int) -> Iterator[Block]:
        """Cut between units, along the slowest axes first.

        units : for each axis, the runs of each shard.
        """
        count = math.prod([sum(map(len, along)) for along in units])
        axis = next((axis for axis, along in enumerate(units) if len(along) > 1), None)
        if count <= most or axis is None:
            runs = tuple([run for unit in along for run in unit] for along in units)
            yield from self._with(runs)._cut(most)
            return
        for along in _shares(units[axis], -(-count // most)):
            yield from self._cut_units((*units[:axis], along, *units[axis + 1 :]), most)

    def split(self, layout: ChunkLayout, most: int) -> Iterator[Block]:
        """Blocks of at most ``most`` chunks; in a sharded array, one shard per block."""
        if not layout.sharded:
            yield from self._cut(most)
            return
        # The last axis varies slowest, because neighbours along it write to the same pages.
        for runs in product(*reversed(list(self._by_shard(layout)))):
            yield from self._with(runs[::-1])._cut(most)

    def _with(self, runs: tuple[Sequence[Run], ...]) -> Block:
        """A block of other runs in the same memory; there may be one per shard."""
        return Block(runs, self.target, self.carrier, self.new_memory)

    def _by_shard(self, layout: ChunkLayout) -> Iterator[list[Sequence[Run]]]:
        """Along each axis, the runs of each shard."""
        origin = [runs[0].chunk if runs else 0 for runs in self.runs]

        def shard_along(axis: int) -> Callable[[Run], int]:
            def shard(run: Run) -> int:
                return layout.stored_index((*origin[:axis], run.chunk, *origin[axis + 1 :]))[axis]

            return shard

        for axis, runs in enumerate(self.runs):
            yield [list(members) for _, members in groupby(runs, shard_along(axis))]

    def _cut(self, most: int) -> Iterator[Block]:
        """Cut along the slowest axes first."""
        count = self.count
        if count <= most:
            if count:
                yield self
            return
        axis = next(axis for axis, runs in enumerate(self.runs) if len(runs) > 1)
        for along in _shares(self.runs[axis], -(-count // most)):
            part = (*self.runs[:axis], along, *self.runs[axis + 1 :])
            yield from self._with(part)._cut(most)


def _shares(items: Sequence[_Item], count: int) -> Iterator[Sequence[_Item]]:
    """At most ``count`` parts of similar size, so that no reader waits long for the last part."""
    step = -(-len(items) // min(len(items), count))
    for start in range(0, len(items), step):
        yield items[start : start + step]


def _alike(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Groups of runs with the same wanted part and adjacent places."""
    strip: list[Run] = []
    for run in runs:
        before = strip[-1] if strip else run
        beside = run.chunk == before.chunk + 1 and run.target.start == before.target.stop
        if strip and (run.source != before.source or not beside):
            yield strip
            strip = []
        strip.append(run)
    if strip:
        yield strip


def ranges(runs: Sequence[Run]) -> tuple[RunRange, ...]:
    """Runs along one axis in compact form; see `expanded`."""
    found = []
    for strip in _alike(runs):
        (chunk, source, target) = strip[0]
        ends = (source.start, source.stop), (target.start, target.stop)
        found.append(RunRange(chunk, *ends, len(strip)))
    return tuple(found)


def expanded(short: Sequence[RunRange]) -> list[Run]:
    """The runs from which `ranges` made the compact form."""
    return [
        Run(chunk + i, slice(*source), slice(start + i * (stop - start), stop + i * (stop - start)))
        for chunk, source, (start, stop), count in short
        for i in range(count)
    ]
