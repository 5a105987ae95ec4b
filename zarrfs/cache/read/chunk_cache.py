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
from functools import partial
from threading import Lock

from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.cache.read.decoded_chunks import ENTRY_OVERHEAD, DecodedChunks, Entry, Group, Key
from zarrfs.cache.read.loading import Loaded, load
from zarrfs.cache.read.member import Member
from zarrfs.cache.stats import Stats
from zarrfs.errors import ChunkError, StoreError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.loaders import LoaderPool
from zarrfs.jobs.ticket import Done, Ticket
from zarrfs.memory.budget import MemoryBudget
from zarrfs.store.base import Generation

Delivery = Sequence[tuple[Index, Chunk]]
"""Some chunks of an array, each with its index."""

Deliver = Callable[[Delivery], None]
"""Copies from chunks. Called in any thread; must neither block nor keep a chunk.

But for one that is read-only, where what is kept of it is the answer to a request: it may be
evicted meanwhile, and is then charged to nobody.
"""

# Chunks of a request that are looked up, and pinned where they are there, in one go.
_AT_ONCE = 1024

_Waiter = tuple[Deliver, Ticket]


class _Flight:
    """A chunk that is being loaded.

    keep : whether somebody wants it to stay in memory.
    again : what is on its way may be old by now.
    """

    __slots__ = ("again", "keep", "waiters")

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.again = False
        self.waiters: list[_Waiter] = []


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

        ``deliver`` is called with each chunk that could be had once, however many at a
        time, ``done`` once at the end, each in whatever thread it happens; both may have
        been called before this returns.
        """
        ticket = Ticket(len(indices) + 1, done)
        waiter = (deliver, ticket)
        for start in range(0, len(indices), _AT_ONCE):
            part = indices if len(indices) <= _AT_ONCE else indices[start : start + _AT_ONCE]
            with self._lock:
                found, missing = self.chunks.pin(array.number, part, array.freshness.not_before)
                claimed = self._join(array, missing, waiter, keep=keep)
            for batch in array.jobs(claimed, self.budget.total // 16, self.pool.count):
                self.pool.submit(partial(self._load, array, batch), ahead=ahead)
            if found:
                self.stats.hits += len(found)
                _hand_over(waiter, [(index, entry.chunk) for index, entry in found])
                self.chunks.unpin([entry for _, entry in found])
        ticket.finish()

    def _join(
        self, array: Member, missing: Sequence[Index], waiter: _Waiter, *, keep: bool
    ) -> list[Index]:
        """Wait for chunks; those that nobody loads yet. With the lock held."""
        claimed: list[Index] = []
        flights = self._flights
        for index in missing:
            key = (array.number, index)
            flight = flights.get(key)
            if flight is None:
                flight = flights[key] = _Flight(keep)
                claimed.append(index)
            else:
                flight.keep |= keep
            flight.waiters.append(waiter)
        self.stats.misses += len(claimed)
        self.stats.shared += len(missing) - len(claimed)
        return claimed

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

    def _load(self, array: Member, indices: Sequence[Index]) -> None:
        """Bring claimed chunks in; every flight ends here, whatever happens."""
        left = dict.fromkeys(indices)
        reason = "was not returned"
        try:
            if self.chunks.holds_any(array.number, indices):
                for index in self._revalidate(array, indices):
                    del left[index]
            if left:
                for over in self._read(array, list(left)):
                    for index in over:
                        del left[index]
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
            for waiter in flight.waiters:
                _hand_over(waiter, [(index, old.chunk)])
            self.chunks.unpin([old])
            yield index

    def _read(self, array: Member, indices: Sequence[Index]) -> Iterator[list[Index]]:
        """Load chunks and hand them over; those that this is over for, some at a time."""
        reserved = sum(map(array.cost, indices)) + array.array.shard_cost
        self.budget.reserve(reserved)
        try:
            for loaded in load(array.array, indices, array.memory):
                reserved -= self._admit(array, loaded)
                yield [result.index for result in loaded.results]
                # What nobody wants to keep is gone before its memory is somebody else's.
                loaded.results.clear()
        finally:
            self.budget.release(reserved)

    def _admit(self, array: Member, loaded: Loaded) -> int:
        """Hand chunks to their waiters and cache what one wants kept; the bytes charged."""
        results = loaded.results
        self._notice(array, results)
        # Memory of which not all is kept is not worth keeping.
        group = None
        if loaded.together and all(self._flights[array.number, r.index].keep for r in results):
            group = Group()
        coming: list[tuple[Index, Chunk, Entry | None]] = []
        for result in results:
            index, chunk = result.index, result.chunk
            if chunk is None:
                continue
            entry = None
            if self._flights[array.number, index].keep:
                entry = Entry(chunk, result.generation, group)
                chunk = entry.chunk
            coming.append((index, chunk, entry))
        waiting, kept, charged = self._land(array, coming, together=group is not None)
        for waiter, delivery in waiting.items():
            _hand_over(waiter, delivery)
        self.chunks.unpin(kept)
        for result in results:
            if result.chunk is None:
                assert result.error is not None
                self._fail(array, result.index, result.error)
        return charged

    def _notice(self, array: Member, results: Sequence[ChunkResult]) -> None:
        """Count chunks, and forget older ones of objects that they are newer than."""
        layout = array.array.layout
        stored: Index | None = None
        for result in results:
            if result.chunk is None:
                continue
            self.stats.loads += 1
            self.stats.decoded_bytes += result.chunk.nbytes
            # What is loaded together is of one state of one shard, where there are shards.
            if stored is None or not layout.sharded:
                stored = layout.stored_index(result.index)
                if array.freshness.saw(stored, result.generation):
                    self.drop_stored(array, {stored})

    def _fail(self, array: Member, index: Index, error: ChunkError) -> None:
        with self._lock:
            flight = self._end(array, index)
        # What was replaced while it was read may be fine now.
        if flight is None:
            self._load_again(array, index)
            return
        self.stats.error(error.key, error.reason)
        for _, ticket in flight.waiters:
            ticket.finish(error=error)

    def _land(
        self,
        array: Member,
        coming: Sequence[tuple[Index, Chunk, Entry | None]],
        *,
        together: bool,
    ) -> tuple[dict[_Waiter, list[tuple[Index, Chunk]]], list[Entry], int]:
        """End flights: who waits for which chunks, what is held of them, and the bytes charged.

        What is held is still pinned.
        """
        waiting: dict[_Waiter, list[tuple[Index, Chunk]]] = {}
        kept: list[tuple[Key, Entry]] = []
        again: list[Index] = []
        charged = unused = 0
        with self._lock:
            for index, chunk, entry in coming:
                flight = self._end(array, index)
                if flight is None:
                    again.append(index)
                    unused += 0 if entry is None else entry.charged
                    continue
                for waiter in flight.waiters:
                    waiting.setdefault(waiter, []).append((index, chunk))
                if entry is not None:
                    entry.used = len(flight.waiters) > 1
                    kept.append(((array.number, index), entry))
                    charged += entry.charged
            if kept and together:
                # Its memory lasts as long as that of the others.
                kept[0][1].group.charged += unused
                charged += unused
            self.chunks.put(kept)
        for index in again:
            self._load_again(array, index)
        return waiting, [entry for _, entry in kept], charged

    def _end(self, array: Member, index: Index) -> _Flight | None:
        """End a flight; None: it has to go again. With the lock held."""
        key = (array.number, index)
        flight = self._flights[key]
        if flight.again:
            flight.again = False
            return None
        del self._flights[key]
        return flight

    def _load_again(self, array: Member, index: Index) -> None:
        self.pool.submit(partial(self._load, array, [index]))


def _hand_over(waiter: _Waiter, delivery: Delivery) -> None:
    deliver, ticket = waiter
    error = None
    try:
        deliver(delivery)
    except Exception as failure:  # noqa: BLE001 - one waiter's failure is its own
        error = ChunkError(str(delivery[0][0]), f"copying failed: {failure!r}")
    ticket.finish(len(delivery), error)
