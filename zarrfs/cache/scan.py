"""Chunks decoded straight into memory that waits for them, past the cache.

Whoever scans an array needs each chunk once, so nothing is kept of it: no place in the
cache, no flight for others to join, no memory of its own. A loader thread decodes one
chunk after the other into memory that stays hot, or into its place where it is
contiguous there.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.chunk_cache import ChunkCache, Member
from zarrfs.cache.spill import Spill
from zarrfs.cache.ticket import Done, Ticket
from zarrfs.errors import ChunkError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk

# Decoded bytes of one job: a hop between threads costs as much as decoding some 50 KiB.
_JOB = 4 << 20
# Memory that one job may take for encoded bytes, beyond what a single chunk takes.
_JOB_MEMORY = 16 << 20
# A thread keeps the memory that it decodes into, up to this size.
_KEPT_SCRATCH = 8 << 20


class Piece(NamedTuple):
    """What to copy of a chunk, and where to.

    chunk : its index.
    source : part of the chunk.
    target : memory of that part's shape.
    """

    chunk: Index
    source: tuple[slice, ...]
    target: Chunk


class _Scratch(threading.local):
    """Memory of one thread to decode into."""

    memory: NDArray[np.uint8] | None = None

    def take(self, size: int) -> memoryview:
        memory = self.memory
        if memory is None or memory.nbytes < size:
            memory = np.empty(size, np.uint8)
            if size <= _KEPT_SCRATCH:
                self.memory = memory
        return memory.data[:size]


_scratch = _Scratch()


class Scanner:
    """Scans one array."""

    def __init__(self, cache: ChunkCache, member: Member) -> None:
        self._cache = cache
        self._member = member
        self._array = member.array

    def scan(
        self,
        pieces: Sequence[Piece],
        carrier: np.dtype[Any],
        done: Done,
        *,
        ahead: bool,
        spill: Spill | None = None,
    ) -> None:
        """Fill the pieces' memory; then ``done``, in any thread. Does not block.

        pieces : no two of one chunk.
        carrier : the type that chunks are seen through when they are copied.
        ahead : nobody waits for them yet.
        spill : where to keep chunks of which other parts will be wanted soon. Pieces then
            differ from their chunk in length along one axis only, before which all are 1,
            but for the array's end.
        """
        jobs = list(self._jobs(pieces))
        ticket = Ticket(len(jobs) + 1, done)
        for job in jobs:
            run = partial(self._run, job, carrier, ticket, spill)
            self._cache.pool.submit(run, ahead=ahead)
        ticket.finish()

    def _jobs(self, pieces: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
        """Pieces of one shard each, or of a few small stored objects."""
        layout = self._array.layout
        if not layout.sharded:
            yield from self._parts(pieces)
            return
        by_shard: dict[Index, list[Piece]] = defaultdict(list)
        for piece in pieces:
            by_shard[layout.stored_index(piece.chunk)].append(piece)
        for members in by_shard.values():
            yield from self._parts(members)

    def _parts(self, pieces: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
        """As many as a job should have."""
        array = self._array
        shape = array.layout.read.largest_chunk
        most = min(_JOB_MEMORY, self._cache.budget.total // 16) - array.shard_cost
        count = min(_JOB // max(array.layout.spec(shape).nbytes, 1), most // array.cost(shape))
        count = max(count, 1)
        for start in range(0, len(pieces), count):
            yield pieces[start : start + count]

    def _run(
        self, job: Sequence[Piece], carrier: np.dtype[Any], ticket: Ticket, spill: Spill | None
    ) -> None:
        error: ChunkError | None
        try:
            left = self._copy_cached(job, carrier)
            if spill is not None:
                left = self._copy_spilled(left, carrier, spill)
            error = self._load(left, carrier, spill)
        except ZarrfsError as failure:
            error = ChunkError(self._array.path, str(failure))
        except Exception as failure:  # noqa: BLE001 - whoever waits must be told
            error = ChunkError(self._array.path, f"failed: {failure!r}")
        ticket.finish(error=error)

    def _copy_cached(self, job: Sequence[Piece], carrier: np.dtype[Any]) -> dict[Index, Piece]:
        """Copy what is decoded already; what is left to do."""
        member = self._member
        not_before = member.freshness.not_before
        left = {}
        for piece in job:
            chunk = self._cache.chunks.get((member.number, piece.chunk), not_before)
            if chunk is None:
                left[piece.chunk] = piece
            else:
                piece.target[...] = chunk.view(carrier)[piece.source]
        return left

    @property
    def _state(self) -> tuple[int, ...]:
        return (self._member.freshness.epoch,)

    def _copy_spilled(
        self, pieces: dict[Index, Piece], carrier: np.dtype[Any], spill: Spill
    ) -> dict[Index, Piece]:
        """Copy what was decoded before; what is left to do."""
        state = self._state
        left = {}
        for index, piece in pieces.items():
            shape = self._array.layout.read.chunk_shape(index)
            axis = next((a for a, length in enumerate(shape) if length > 1), 0)
            rows = piece.source[axis]
            row = math.prod(shape[axis + 1 :]) * carrier.itemsize
            memory = _scratch.take((rows.stop - rows.start) * row)
            if spill.read(index, state, rows.start * row, memory):
                part = np.frombuffer(memory, carrier)
                part = part.reshape(*shape[:axis], rows.stop - rows.start, *shape[axis + 1 :])
                piece.target[...] = part[
                    (*piece.source[:axis], slice(None), *piece.source[axis + 1 :])
                ]
            else:
                left[index] = piece
        return left

    def _load(
        self, pieces: dict[Index, Piece], carrier: np.dtype[Any], spill: Spill | None
    ) -> ChunkError | None:
        if not pieces:
            return None
        array, stats = self._array, self._cache.stats
        layout = array.layout
        # Of a shard all that is wanted is fetched at once.
        together = len(pieces) if layout.sharded else 1
        reserved = together * array.cost(layout.read.largest_chunk) + array.shard_cost
        self._cache.budget.reserve(reserved)
        state = self._state
        try:
            stats.misses += len(pieces)
            saw: object = None
            memory = self._memory(pieces, carrier)
            for result in array.read_chunks(list(pieces), memory):
                if result.chunk is None:
                    assert result.error is not None
                    stats.error(result.error.key, result.error.reason)
                    return result.error
                if saw is not result.generation or not layout.sharded:
                    saw = result.generation
                    stored = layout.stored_index(result.index)
                    if self._member.freshness.saw(stored, result.generation):
                        self._cache.drop_stored(self._member, {stored})
                piece = pieces[result.index]
                chunk = result.chunk.view(carrier)
                if not (piece.target.flags.c_contiguous and _same(chunk, piece.target)):
                    piece.target[...] = chunk[piece.source]
                if spill is not None and chunk.flags.c_contiguous and result.generation is not None:
                    spill.put(result.index, state, chunk.reshape(-1).view(np.uint8).data)
                stats.decoded_bytes += chunk.nbytes
            stats.loads += len(pieces)
        finally:
            self._cache.budget.release(reserved)
        return None

    def _memory(
        self, pieces: dict[Index, Piece], carrier: np.dtype[Any]
    ) -> Callable[[Index], memoryview | None]:
        grid, item = self._array.layout.read, carrier.itemsize
        regular = grid.regular_shape

        def memory(index: Index) -> memoryview | None:
            size = math.prod(regular or grid.chunk_shape(index)) * item
            target = pieces[index].target
            if target.nbytes == size and target.flags.c_contiguous and target.dtype == carrier:
                return target.reshape(-1).view(np.uint8).data if size else None
            return _scratch.take(size)

        return memory


def _same(chunk: Chunk, target: Chunk) -> bool:
    """Whether a chunk was decoded in its place."""
    return (
        chunk.nbytes == target.nbytes
        and chunk.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    )
