"""Decodes blocks of an array without the cache.

A scan needs each chunk once, so its chunks are not cached, have no flight that other readers could
join, and no memory of their own. Jobs of a few MiB run in loader threads, or in worker processes if
these share the memory of the block.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import partial

from zarrfs.array.block import Block, Piece
from zarrfs.array.block_reader import BlockRead, read_pieces
from zarrfs.cache.read.chunk_loads import ChunkLoads
from zarrfs.cache.read.flights import Done, Ticket
from zarrfs.errors import ChunkError
from zarrfs.jobs.executor import Processes, perform
from zarrfs.jobs.read_block import ReadBlock

# Decoded bytes of one job: a switch between threads costs as much as decoding some 50 KiB. Jobs of
# 1, 2, 8 and 16 MiB were no faster.
_JOB = 4 << 20
# Bytes of the objects for a chunk while its job runs, about.
_OBJECTS = 1 << 10
# Memory that one job may take for encoded bytes, beyond the memory of a single chunk.
_JOB_MEMORY = 32 << 20


class Scanner:
    """Scans one array.

    processes : perform the jobs that decode blocks; None: threads do.
    """

    def __init__(self, loads: ChunkLoads, processes: Processes | None) -> None:
        """``loads`` : of the cached chunks of the array."""
        self._cache = loads.cache
        self._array = loads.array
        self._freshness = loads.freshness
        self._loads = loads
        self._chunks = loads.chunks
        self._processes = processes

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
        """Fill the memory of the block; then call ``done``, in any thread. Does not block.

        ahead : no reader waits for the block yet.
        """
        jobs = list(block.jobs(self._array.layout, self._chunks_a_job()))
        ticket = Ticket(len(jobs) + 1, done)
        for job in jobs:
            self._submit(job, ticket.part(), ahead=ahead)
        ticket.finish()

    def _submit(self, job: Block, done: Done, *, ahead: bool) -> None:
        self._loads.in_thread(lambda: done(self._read(job)), done, ahead=ahead)

    def memory(self, chunks: int, at_once: int) -> int:
        """The most bytes that decoding ``at_once`` blocks of so many chunks takes beside theirs."""
        share = min(chunks, self._chunks_a_job())
        jobs = min(at_once * -(-chunks // share), self._cache.pool.count)
        return jobs * self._memory(share)

    def _chunks_a_job(self) -> int:
        layout = self._array.layout
        chunks = max(1, _JOB // max(1, layout.spec(layout.read.largest_chunk).nbytes))
        if layout.members is not None and not self._array.store.traits.near:
            # Two jobs of one shard would wait for each other, or fetch it in more requests.
            chunks = max(chunks, math.prod(layout.members))
        # Half of the memory is for decoding; one more job may end while each thread has one.
        total, threads = self._cache.budget.total, self._cache.pool.count
        most = min(_JOB_MEMORY, max(total // 16, total // (2 * (threads + 1))))
        return max(1, bisect_right(range(1, chunks + 1), most, key=self._memory))

    def _read(self, job: Block) -> ChunkError | None:
        """Read all chunks of a job, copying those that are cached."""
        held = self._held(job)
        # A process decodes a whole block faster than a thread copies half of it from the cache.
        if not held or (self._processes is not None and 2 * held < job.count):
            return self._decode(job)
        for part in job.shards(self._array.layout):
            if not self._held(part):
                error = self._decode(part)
            elif left := self._copy_cached(part):
                read = partial(read_pieces, self._array, left, part.carrier)
                error = self._read_in_room(len(left), read)
            else:
                continue
            if error is not None:
                return error
        return None

    def _decode(self, block: Block) -> ChunkError | None:
        """Decode all chunks of a block."""
        # An array has few shards.
        remembers = self._array.layout.sharded or self._freshness.remembers(block.indices())
        job = ReadBlock(self._array, block, seen=remembers)
        return self._read_in_room(block.count, partial(perform, job, self._processes))

    def _read_in_room(self, chunks: int, read: Callable[[], BlockRead]) -> ChunkError | None:
        """Decode ``chunks`` chunks with memory reserved for them."""
        reserved = self._memory(chunks)
        self._cache.budget.reserve(reserved)
        try:
            answer = read()
        finally:
            self._cache.budget.release(reserved)
        return self._note(chunks, answer)

    def _note(self, chunks: int, read: BlockRead) -> ChunkError | None:
        """Count the chunks that were read, and forget cached chunks that are older."""
        stats = self._cache.stats
        self._freshness.saw(read.seen, self._loads.drop_stored)
        stats.misses += chunks
        stats.loads += read.chunks
        stats.decoded_bytes += read.decoded_bytes
        if read.error is not None:
            stats.error(read.error.key, read.error.reason)
        return read.error

    def _held(self, job: Block) -> int:
        """How many of the chunks are cached."""
        return self._chunks.count(job.indices())

    def _copy_cached(self, job: Block) -> list[Piece]:
        """Copy the cached chunks; returns the pieces that are left to decode."""
        not_before = self._freshness.not_before
        left = []
        for piece in job.pieces():
            found = self._chunks.find(piece.chunk, not_before)
            if found is None:
                left.append(piece)
            else:
                piece.target[...] = found.chunk.view(job.carrier)[piece.source]
        return left

    def _memory(self, chunks: int) -> int:
        """The most bytes that decoding ``chunks`` chunks in one job takes."""
        array = self._array
        shape, decoder = array.layout.read.largest_chunk, array.decoder
        cost = decoder.cost_in_block(shape)
        decoding = min(chunks, decoder.at_once)
        # All wanted chunks of a shard are fetched at once, and so are those from a remote store;
        # each waits until the earlier ones are decoded.
        at_once = array.layout.sharded or array.store.traits.in_flight > 1
        waiting = (chunks - decoding if at_once else 0) * min(cost, decoder.longest(shape))
        return decoding * cost + waiting + array.shard_cost + chunks * _OBJECTS
