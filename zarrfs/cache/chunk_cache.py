"""Decoded chunks of many arrays under one budget, each loaded once however many ask.

How memory is kept bounded: a load reserves the most that it can need before it
starts, and gives back all but the chunk itself. Waiting requests hold no chunks;
each leaves a function that copies what it needs out of the chunk, which the loader
calls while the chunk is charged for. So eviction can always make room, and nothing
waits for what a waiter holds.

Shared state: ``chunks``, which has a lock of its own, and ``_flights`` under ``_lock``.
A chunk is in at most one of them, except that a flight may be about to check an old
chunk against the store. Chunks come in when a flight ends, and go because of what is
stored when flights are told to go again, each in one step under ``_lock``. Locks are
taken in this order: this one, the budget's, that of ``chunks``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.cache.budget import MemoryBudget
from zarrfs.cache.decoded_chunks import ENTRY_OVERHEAD, DecodedChunks, Entry, Key
from zarrfs.cache.freshness import Freshness
from zarrfs.cache.loaders import LoaderPool
from zarrfs.cache.stats import Stats
from zarrfs.cache.ticket import Done, Ticket
from zarrfs.errors import ChunkError, StoreError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.store.base import Generation

Deliver = Callable[[Index, Chunk], None]
"""Copies from a chunk. Called in any thread; must neither block nor keep the chunk."""

# Bytes of memory that one job may take, unless a single chunk takes more. A hop
# between threads costs as much as decoding some 50 KiB; a request to a remote store
# costs far more, so there its size counts.
_LOCAL_BATCH = 4 << 20
_REMOTE_BATCH = 32 << 20

_Waiters = list[tuple[Deliver, Ticket]]


class _Flight:
    """A chunk that is being loaded.

    keep : whether somebody wants it to stay in memory.
    again : what is on its way may be old by now.
    """

    __slots__ = ("again", "keep", "waiters")

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.again = False
        self.waiters: _Waiters = []


@dataclass(frozen=True, slots=True)
class Member:
    """An array of the cache. ``number`` tells it from the others."""

    number: int
    array: Array
    freshness: Freshness


class ChunkCache:
    """Decoded chunks of all arrays of a mount.

    chunks : those that are there.
    """

    def __init__(self, budget: MemoryBudget, pool: LoaderPool, stats: Stats) -> None:
        self.budget = budget
        self.pool = pool
        self.stats = stats
        self.chunks = DecodedChunks(budget, stats)
        self._flights: dict[Key, _Flight] = {}
        self._lock = Lock()

    def request(
        self,
        array: Member,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None:
        """Deliver chunks, loading those that are missing. Does not block.

        keep : whether chunks that are loaded for this request should stay in memory.
        ahead : nobody waits for the chunks yet.

        ``deliver`` is called once for each chunk that could be had, ``done`` once at
        the end, each in whatever thread it happens; both may have been called
        before this returns.
        """
        ticket = Ticket(len(indices) + 1, done)
        claimed: list[Index] = []
        for index in indices:
            key = (array.number, index)
            with self._lock:
                entry = self.chunks.pin(key, array.freshness.not_before)
                if entry is None:
                    flight = self._flights.get(key)
                    if flight is None:
                        flight = self._flights[key] = _Flight(keep)
                        claimed.append(index)
                        self.stats.misses += 1
                    else:
                        flight.keep |= keep
                        self.stats.shared += 1
                    flight.waiters.append((deliver, ticket))
                    continue
            self.stats.hits += 1
            self._hand_over(index, entry.chunk, [(deliver, ticket)])
            self.chunks.unpin(entry)
        for batch in self._batches(array, claimed):
            self.pool.submit(partial(self._load, array, batch), ahead=ahead)
        ticket.finish()

    def drop_stored(
        self, array: Member, stored: Collection[Index], *, loading: bool = False
    ) -> None:
        """Forget the chunks that came from these stored objects.

        loading : have those that are being loaded right now loaded once more, because
            what is on its way may be older than what is stored.
        """
        layout = array.array.layout
        with self._lock:
            keys = (
                [key for key in self._keys(array) if layout.stored_index(key[1]) in stored]
                if layout.sharded
                else [(array.number, index) for index in stored]
            )
            self._drop(keys, loading=loading)

    def drop_array(self, array: Member) -> None:
        """Forget all chunks of an array, and load those anew that are being loaded."""
        with self._lock:
            self._drop(self._keys(array), loading=True)

    def close(self) -> None:
        """Let go of every chunk."""
        self.chunks.clear()

    @property
    def largest_load(self) -> int:
        """The most bytes that loading one chunk may take."""
        return self.budget.total - ENTRY_OVERHEAD

    def _keys(self, array: Member) -> list[Key]:
        """Of all chunks that are there or being loaded; with the lock held."""
        loading = [key for key in self._flights if key[0] == array.number]
        return self.chunks.keys(array.number) + loading

    def _drop(self, keys: Collection[Key], *, loading: bool) -> None:
        """See `drop_stored`; with the lock held."""
        if loading:
            for key in keys:
                if (flight := self._flights.get(key)) is not None:
                    flight.again = True
        self.chunks.drop(keys)

    def _batches(self, array: Member, indices: Sequence[Index]) -> Iterator[list[Index]]:
        """Chunks for one job each: of one stored object, large enough to be worth a hop."""
        layout = array.array.layout
        most = _LOCAL_BATCH if array.array.store.cheap_stat else _REMOTE_BATCH
        most = min(most, self.budget.total // 16)
        most -= array.array.shard_cost
        batch: list[Index] = []
        cost = 0
        last = None
        for stored, index in sorted((layout.stored_index(index), index) for index in indices):
            more = _cost(array.array, index)
            if batch and (cost + more > most or (layout.sharded and stored != last)):
                yield batch
                batch, cost = [], 0
            batch.append(index)
            cost += more
            last = stored
        if batch:
            yield batch

    def _load(self, array: Member, indices: Sequence[Index]) -> None:
        """Bring claimed chunks in; every flight ends here, whatever happens."""
        left = dict.fromkeys(indices)
        reason = "was not returned"
        try:
            for index in self._revalidate(array, indices):
                del left[index]
            if left:
                for result in self._read(array, list(left)):
                    del left[result.index]
        except ZarrfsError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a flight must end, or nobody would wake
            reason = f"failed: {error!r}"
        for index in left:
            self._fail(array, index, ChunkError(array.array.path, reason))

    def _revalidate(self, array: Member, indices: Sequence[Index]) -> Iterator[Index]:
        """Ask the store whether old chunks are still good, and end their flights if so."""
        states: dict[Index, Generation | None] = {}
        for index in indices:
            key = (array.number, index)
            old = self.chunks.peek(key)
            if old is None:
                continue
            stored = array.array.layout.stored_index(index)
            now = time.monotonic()
            if stored not in states:
                try:
                    info = array.array.stored_info(stored)
                except StoreError:
                    continue
                states[stored] = None if info is None else info.generation
            if states[stored] != old.generation:
                array.array.forget([stored])
                self.chunks.drop([key])
                continue
            with self._lock:
                if not self.chunks.confirm(key, old, now):
                    continue
                flight = self._flights.pop(key)
            self.stats.revalidated += 1
            self._hand_over(index, old.chunk, flight.waiters)
            self.chunks.unpin(old)
            yield index

    def _read(self, array: Member, indices: Sequence[Index]) -> Iterator[ChunkResult]:
        reserved = sum(_cost(array.array, index) for index in indices) + array.array.shard_cost
        self.budget.reserve(reserved)
        try:
            for result in array.array.read_chunks(indices):
                stored = array.array.layout.stored_index(result.index)
                if result.chunk is None:
                    assert result.error is not None
                    self._fail(array, result.index, result.error)
                else:
                    if array.freshness.saw(stored, result.generation):
                        self.drop_stored(array, {stored})
                    reserved -= self._admit(array, result, result.chunk)
                yield result
        finally:
            self.budget.release(reserved)

    def _admit(self, array: Member, result: ChunkResult, chunk: Chunk) -> int:
        """Hand a chunk to its waiters and cache it if one wants that; the bytes charged."""
        self.stats.loads += 1
        self.stats.decoded_bytes += chunk.nbytes
        index = result.index
        entry = None
        if self._flights[array.number, index].keep:
            entry = Entry(chunk, result.generation, borrowed=result.borrowed)
            chunk = entry.chunk
        waiters = self._land(array, index, entry)
        if waiters is None:
            return 0
        self._hand_over(index, chunk, waiters)
        if entry is None:
            return 0
        self.chunks.unpin(entry)
        return entry.charged

    def _fail(self, array: Member, index: Index, error: ChunkError) -> None:
        # What was replaced while it was read may be fine now.
        waiters = self._land(array, index, None)
        if waiters is None:
            return
        self.stats.error(error.key, error.reason)
        for _, ticket in waiters:
            ticket.finish(error=error)

    def _land(self, array: Member, index: Index, entry: Entry | None) -> _Waiters | None:
        """End a flight, with what to keep of it; None: it has to go again."""
        key = (array.number, index)
        with self._lock:
            flight = self._flights[key]
            again, flight.again = flight.again, False
            if not again:
                del self._flights[key]
                if entry is not None:
                    self.chunks.put(key, entry)
        if again:
            self.pool.submit(partial(self._load, array, [index]))
            return None
        return flight.waiters

    def _hand_over(self, index: Index, chunk: Chunk, waiters: _Waiters) -> None:
        for deliver, ticket in waiters:
            error = None
            try:
                deliver(index, chunk)
            except Exception as failure:  # noqa: BLE001 - one waiter's failure is its own
                error = ChunkError(str(index), f"copying failed: {failure!r}")
            ticket.finish(error=error)


def _cost(array: Array, index: Index) -> int:
    """The most bytes that one more chunk takes, while it is loaded and after."""
    return array.cost(array.layout.read.chunk_shape(index)) + ENTRY_OVERHEAD
