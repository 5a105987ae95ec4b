"""Chunks decoded for the cache, small ones several at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult, Memory
from zarrfs.format.chunk_grid import Index

# Seconds after which chunks are handed over although others of their job are yet to come:
# together they cost less, but somebody may wait for the first of them alone.
_PATIENCE = 0.004


class Loaded(NamedTuple):
    """Some chunks of a job.

    together : whether all of them lie in one piece of memory, but for fill values, which take
        none.
    """

    results: list[ChunkResult]
    together: bool


def load(array: Array, indices: Sequence[Index], memory: Memory) -> Iterator[Loaded]:
    """Decode chunks; each of ``indices`` comes exactly once.

    indices : of one shard, where there are shards.
    memory : for one chunk alone, as `Array.read_chunks` takes it.
    """
    layout = array.layout
    spec = layout.spec(layout.read.regular_shape or ())
    room: list[NDArray[np.uint8]] = []

    def for_several(_first: int, count: int) -> memoryview:
        room.append(np.empty(count * spec.nbytes, np.uint8))
        return room[-1].data

    batches = array.read_together(indices, for_several)
    if batches is None:
        for results in _in_time(array.read_chunks(indices, memory)):
            yield Loaded(results, together=False)
        return
    first = 0
    for generations, alone in batches:
        count = len(generations)
        chunks = room.pop().view(spec.dtype).reshape(count, *spec.shape)
        results = []
        for number, index in enumerate(indices[first : first + count]):
            result = alone.get(number)
            if result is None:
                result = ChunkResult(index, chunks[number, ...], None, generations[number])
            results.append(result)
        first += count
        apart = [r.chunk for r in alone.values() if r.chunk is not None and any(r.chunk.strides)]
        yield Loaded(results, together=not apart)


def _in_time(results: Iterable[ChunkResult]) -> Iterator[list[ChunkResult]]:
    """Several results together, where none waits long for that.

    Where reading fails in a way that nobody foresaw, those that came before come first.
    """
    ready: list[ChunkResult] = []
    late = time.monotonic() + _PATIENCE
    try:
        for result in results:
            ready.append(result)
            if time.monotonic() >= late:
                yield ready
                ready = []
                late = time.monotonic() + _PATIENCE
    except Exception:
        if ready:
            yield ready
        raise
    if ready:
        yield ready
