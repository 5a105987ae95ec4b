"""Loads of the chunks of one array: one load per chunk, shared by all readers that wait for it.

How memory stays bounded: a load reserves the most that it can need before it starts, and then
releases all but the chunk itself. Waiting requests hold no chunks. Each request leaves a function
that copies from the chunk, and the loader calls that function while the chunk is charged. So
eviction can always make room, and no load waits for memory that a waiting request holds.

Shared state, under the lock of the cache: the cached chunks and the loads in progress. A chunk is
in at most one of the two, except while a load is about to check an old chunk against the store. A
chunk enters the cache in the step in which its load ends. When a stored object has changed, one
step removes its chunks and marks its loads to be repeated.

A load is for readers who asked before the next check, as its bytes may be older than that. Later
readers have a load of their own. If a check has begun meanwhile, a chunk enters the cache as one
that must be checked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.cache.read.array_chunks import CHUNK_OVERHEAD, ArrayChunks, CachedChunk, Freshness
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.chunk_jobs import jobs
from zarrfs.cache.read.flights import Done, Flights, Keep, Ticket
from zarrfs.errors import ChunkError, StoreError, UncountedError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation

Delivery = Sequence[tuple[Index, Chunk]]
"""Some chunks of an array, each with its index."""

Deliver = Callable[[Delivery], None]
"""Copies from chunks. Called in any thread; must neither block nor keep a chunk.

A read-only chunk may be kept as the reply; once evicted it no longer counts against the budget.
"""

# Chunks of a request that are looked up, and pinned if cached, under one hold of the lock.
_AT_ONCE = 1024

# Seconds after which decoded chunks are handed over although their job is not finished. Handing
# over many chunks together costs less, but a reader may wait for the first one only.
_PATIENCE = 0.004

_Waiter = tuple[Deliver, Ticket]
_Load = tuple[Index, int]
"""A chunk, and the last check (`Freshness.checks`) before its load began."""


class ChunkLoads:
    """
    chunks : the cached chunks of ``array``, which are in ``cache``.
    """

    def __init__(self, cache: BlockCache, array: Array, freshness: Freshness) -> None:
        self.chunks = ArrayChunks(cache)
        self.cache = cache
        self.array = array
        self.freshness = freshness
        layout = array.layout
        self._sharded = layout.sharded
        regular = layout.read.regular_shape if layout.data_type.fixed_size else None
        self._regular_bytes = 0 if regular is None else layout.spec(regular).nbytes
        self._flights: Flights[_Load, _Waiter] = Flights()

    def in_thread(
        self,
        work: Callable[[], None],
        failed: Callable[[ChunkError], object],
        *,
        ahead: bool = False,
    ) -> None:
        """Run work that a reader waits for in a loader thread; ``failed`` gets its exception."""
        self.cache.pool.submit(work, lambda error: failed(self.failure(error)), ahead=ahead)

    def failure(self, error: Exception) -> ChunkError:
        """The error that a reader gets for an exception."""
        return ChunkError.of(self.array.path, error)

    def expects(self, index: Index) -> bool:
        """Whether a chunk is in memory, in whatever state, or is being loaded."""
        return self.chunks.peek(index) is not None or (
            (index, self.freshness.checks) in self._flights
        )

    def request(
        self, indices: Sequence[Index], deliver: Deliver, done: Done, *, keep: Keep, ahead: bool
    ) -> None:
        """See `CachedArray.request`."""
        cache = self.cache
        ticket = Ticket(len(indices) + 1, done)
        waiter = (deliver, ticket)
        for start in range(0, len(indices), _AT_ONCE):
            part = indices if len(indices) <= _AT_ONCE else indices[start : start + _AT_ONCE]
            found: list[tuple[Index, CachedChunk]] = []
            claimed: list[_Load] = []
            try:
                with cache.lock:
                    found, missing = self.chunks.pin(part, self.freshness.not_before)
                    check = self.freshness.checks
                    loads = zip(missing, repeat(check))
                    self._flights.join_all(loads, waiter, claimed, keep=keep)
                firsts = [index for index, _ in claimed]
                if len(firsts) == 1:
                    self._submit(firsts, check, ahead=ahead)
                elif firsts:
                    for batch in jobs(self.array, cache, firsts):
                        self._submit(batch, check, ahead=ahead)
                cache.stats.misses += len(claimed)
                cache.stats.shared += len(missing) - len(claimed)
                if found:
                    cache.stats.hits += len(found)
                    _hand_over(waiter, [(index, held.chunk) for index, held in found])
            except Exception as error:
                self._fail_all(claimed, error)
                raise
            finally:
                if found:
                    cache.unpin([held for _, held in found])
        ticket.finish()

    def _load(self, indices: Sequence[Index], check: int) -> None:
        """Load chunks that the caller has claimed; every flight ends here, even if it fails.

        check : the last one before they were claimed.
        """
        left = dict.fromkeys(indices)
        try:
            if self.chunks.count(indices):
                for index in self._revalidate(indices, check):
                    del left[index]
            if left:
                for over in self._read(list(left), check):
                    for index in over:
                        del left[index]
        except Exception as error:  # noqa: BLE001 - a flight must end, or its waiters wait forever
            # No other name is given to the error: it would refer to itself through this frame, and
            # keep the chunks of all frames below until a garbage collection.
            self._fail_all(zip(left, repeat(check)), error)
            return
        if left:
            never_came = ChunkError(self.array.path, "was not returned")
            self._fail_all(zip(left, repeat(check)), never_came)

    def _submit(self, indices: Sequence[Index], check: int, *, ahead: bool) -> None:
        failed = partial(self._fail_all, list(zip(indices, repeat(check))))
        self.cache.pool.submit(partial(self._load, indices, check), failed, ahead=ahead)

    def _fail_all(self, loads: Iterable[_Load], error: Exception) -> None:
        """End those of these flights that have not ended."""
        for each in loads:
            self._fail(each, self.failure(error))

    def _revalidate(self, indices: Sequence[Index], check: int) -> Iterator[Index]:
        """Ask the store whether old chunks are current; end the flights of those and yield them."""
        states: dict[Index, Generation | None] = {}
        for index in indices:
            old = self.chunks.peek(index)
            if old is None:
                continue
            stored = self.array.layout.stored_index(index)
            if stored not in states:
                try:
                    info = self.array.stored_info(stored)
                except StoreError:
                    continue
                states[stored] = None if info is None else info.generation
            if states[stored] != old.generation:
                self.array.forget([stored])
                self.drop([index])
                continue
            with self.cache.lock:
                if not self.chunks.confirm(index, old, self._since(check)):
                    continue
                waiting = self._flights.end((index, check))
            if waiting is None:
                self.cache.unpin([old])
                continue
            self.cache.stats.revalidated += 1
            for waiter in waiting:
                _hand_over(waiter, [(index, old.chunk)])
            self.cache.unpin([old])
            yield index

    def _since(self, check: int) -> int:
        """`CachedChunk.checked` of a load that began after a check."""
        return check if check == self.freshness.checks else -1

    def _read(self, indices: Sequence[Index], check: int) -> Iterator[list[Index]]:
        """Load chunks and hand them over; yields the finished indices, some at a time."""
        budget = self.cache.budget
        reserved = self.array.decoder.total_cost(indices, CHUNK_OVERHEAD) + self.array.shard_cost
        budget.reserve(reserved)
        try:
            coming = self.array.read_chunks(indices, self._memory)
            for results in in_time(coming) if len(indices) > 1 else [list(coming)]:
                reserved -= self._admit(results, check)
                yield [result.index for result in results]
                # A chunk that is not kept must be freed before other loads get its memory.
                results.clear()
        finally:
            budget.release(reserved)

    def _memory(self, _index: Index) -> memoryview | None:
        """Memory for the bytes of a chunk; see `Array.read_chunks`.

        The decoder touches this memory first, without the interpreter's lock. A bytearray would be
        cleared with the lock held, while all other threads wait.
        """
        return np.empty(self._regular_bytes, np.uint8).data if self._regular_bytes else None

    def _admit(self, results: Sequence[ChunkResult], check: int) -> int:
        """Hand chunks to their waiters and cache those to be kept; returns the bytes charged."""
        self._notice(results)
        wishes = self._flights.kept([(result.index, check) for result in results])
        coming: list[tuple[Index, Chunk, CachedChunk | None]] = []
        for result, keep in zip(results, wishes, strict=True):
            index, chunk = result.index, result.chunk
            if chunk is None:
                continue
            held = None
            if keep:
                in_order = keep is Keep.IN_ORDER
                held = CachedChunk(self.chunks, index, chunk, result.generation, in_order=in_order)
                chunk = held.chunk
            coming.append((index, chunk, held))
        waiting: dict[_Waiter, list[tuple[Index, Chunk]]] = {}
        try:
            kept, charged = self._land(coming, check, waiting)
        finally:
            for waiter, delivery in waiting.items():
                _hand_over(waiter, delivery)
        self.cache.unpin(kept)
        for result in results:
            if result.chunk is None:
                assert result.error is not None
                self._fail((result.index, check), result.error)
        return charged

    def _notice(self, results: Sequence[ChunkResult]) -> None:
        """Count chunks, and forget cached chunks of objects whose state has changed."""
        layout, stats = self.array.layout, self.cache.stats
        sharded = self._sharded
        seen: list[tuple[Index, Generation | None]] = []
        for result in results:
            if result.chunk is None:
                continue
            stats.loads += 1
            stats.decoded_bytes += result.chunk.nbytes
            stored = layout.stored_index(result.index) if sharded else result.index
            # All chunks of a shard come from one state of it, and follow each other.
            if not seen or seen[-1][0] != stored:
                seen.append((stored, result.generation))
        self.freshness.saw(seen, self.drop_stored)

    def _fail(self, load: _Load, error: ChunkError) -> None:
        with self.cache.lock:
            waiting = self._flights.end(load)
        # An object that was replaced during the read may be readable now.
        if waiting is None:
            index, check = load
            self._submit([index], check, ahead=False)
            return
        try:
            if waiting:
                self.cache.stats.error(error.key, error.reason)
        finally:
            for _, ticket in waiting:
                ticket.finish(error=error)

    def _land(
        self,
        coming: Sequence[tuple[Index, Chunk, CachedChunk | None]],
        check: int,
        waiting: dict[_Waiter, list[tuple[Index, Chunk]]],
    ) -> tuple[list[CachedChunk], int]:
        """End flights; returns the cached chunks, still pinned, and the bytes charged.

        waiting : gets the chunks by waiter.
        """
        kept: list[tuple[Index, CachedChunk]] = []
        again: list[Index] = []
        charged = 0
        with self.cache.lock:
            since = self._since(check)
            for index, chunk, held in coming:
                waiters = self._flights.end((index, check))
                if waiters is None:
                    again.append(index)
                    continue
                for waiter in waiters:
                    waiting.setdefault(waiter, []).append((index, chunk))
                if held is not None:
                    held.checked = since
                    held.pins += 1
                    kept.append((index, held))
                    charged += held.charged
            freed = self.chunks.put(kept)
        self.cache.budget.release(freed)
        for index in again:
            self._submit([index], check, ahead=False)
        return [held for _, held in kept], charged

    def drop_stored(self, stored: Collection[Index], *, loading: bool = False) -> None:
        """Forget the chunks that came from these stored objects.

        loading : repeat loads in progress, because their results may be older than the stored
            object.
        """
        layout = self.array.layout
        if not layout.sharded:
            self.drop(stored, loading=loading)
            return
        with self.cache.lock:
            loads = self._flights.keys()
            known = {*self.chunks.keys(), *[index for index, _ in loads]}
        self.drop({i for i in known if layout.stored_index(i) in stored}, loading=loading)

    def drop(self, indices: Collection[Index] | None, *, loading: bool = False) -> None:
        """Forget these chunks, as `drop_stored` does; None: all chunks."""
        with self.cache.lock:
            if loading:
                loads = self._flights.keys()
                self._flights.repeat([one for one in loads if indices is None or one[0] in indices])
            freed = self.chunks.drop(indices)
        self.cache.budget.release(freed)


def _hand_over(waiter: _Waiter, delivery: Delivery) -> None:
    deliver, ticket = waiter
    error = None
    try:
        deliver(delivery)
    except Exception as failure:  # noqa: BLE001 - one failure must not affect other waiters
        error = UncountedError(str(delivery[0][0]), f"copying failed: {failure!r}")
    ticket.finish(len(delivery), error)


def in_time(results: Iterable[ChunkResult]) -> Iterator[list[ChunkResult]]:
    """Several results together, none of them delayed for long.

    If reading fails unexpectedly, the results before the failure come first.
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
