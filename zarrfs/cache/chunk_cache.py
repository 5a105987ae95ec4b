"""Decoded chunks of many arrays under one budget, each loaded once however many ask.

How memory is kept bounded: a load reserves the most that it can need before it
starts, and gives back all but the chunk itself. Waiting requests hold no chunks;
each leaves a function that copies what it needs out of the chunk, which the loader
calls while the chunk is charged for. So eviction can always make room, and nothing
waits for what a waiter holds.

Shared state, all under ``_lock``: ``_entries`` (in order of use, oldest first) and
``_flights``. A chunk is in at most one of them, except that a flight which checks an
entry against the store holds the old entry itself. An entry with pins is not
evicted. The lock is never held while the budget's lock is taken.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from zarrfs.array.array import Array, ChunkResult
from zarrfs.cache.budget import MemoryBudget
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

_ENTRY_OVERHEAD = 1024
# Bytes of memory that one job may take, unless a single chunk takes more. A hop
# between threads costs as much as decoding some 50 KiB; a request to a remote store
# costs far more, so there its size counts.
_LOCAL_BATCH = 4 << 20
_REMOTE_BATCH = 32 << 20


class _Entry:
    __slots__ = ("charged", "checked", "chunk", "generation", "pins")

    def __init__(self, chunk: Chunk, generation: Generation | None, charged: int) -> None:
        self.chunk = chunk
        self.generation = generation
        self.charged = charged
        self.checked = time.monotonic()
        self.pins = 0


class _Flight:
    __slots__ = ("again", "keep", "old", "waiters")

    def __init__(self, old: _Entry | None, keep: bool) -> None:
        self.old = old
        self.keep = keep
        self.again = False
        self.waiters: list[tuple[Deliver, Ticket]] = []


_Key = tuple[int, Index]
_numbers = count(1)


class ChunkCache:
    """Decoded chunks of all arrays of a mount."""

    def __init__(self, budget: MemoryBudget, pool: LoaderPool, stats: Stats) -> None:
        self._budget = budget
        self._pool = pool
        self._stats = stats
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._flights: dict[_Key, _Flight] = {}
        self._lock = Lock()
        budget.add_reclaim(self._evict)

    def get(self, key: _Key, not_before: float) -> Chunk | None:
        """A chunk that is decoded already and was checked at ``not_before`` or later.

        For the event loop: does not block. The chunk stays valid, but should not be
        kept, because it may be evicted and is then charged to nobody.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.checked < not_before:
                return None
            self._entries.move_to_end(key)
        self._stats.hits += 1
        return entry.chunk

    def request(
        self,
        array: CachedArray,
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
                entry = self._entries.get(key)
                if entry is not None and entry.checked >= array.freshness.not_before:
                    entry.pins += 1
                    self._entries.move_to_end(key)
                else:
                    flight = self._flights.get(key)
                    if flight is None:
                        flight = self._flights[key] = _Flight(entry, keep)
                        claimed.append(index)
                        self._stats.misses += 1
                    else:
                        flight.keep |= keep
                        self._stats.shared += 1
                    flight.waiters.append((deliver, ticket))
                    continue
            self._stats.hits += 1
            self._hand_over(key, entry.chunk, [(deliver, ticket)])
            self._unpin(entry)
        for batch in self._batches(array, claimed):
            self._pool.submit(partial(self._load, array, batch), ahead=ahead)
        ticket.finish()

    def submit(self, job: Callable[[], None], *, ahead: bool) -> None:
        """See `LoaderPool.submit`."""
        self._pool.submit(job, ahead=ahead)

    def drop_stored(
        self, array: CachedArray, stored: Collection[Index], *, loading: bool = False
    ) -> None:
        """Forget the chunks that came from these stored objects.

        loading : have those that are being loaded right now loaded once more, because
            what is on its way may be older than what is stored.
        """
        layout = array.array.layout
        with self._lock:
            keys: list[_Key]
            if layout.sharded:
                keys = [
                    key
                    for key in (*self._entries, *self._flights)
                    if key[0] == array.number and layout.stored_index(key[1]) in stored
                ]
            else:
                keys = [(array.number, index) for index in stored]
            if loading:
                for key in keys:
                    if (flight := self._flights.get(key)) is not None:
                        flight.again = True
        for key in keys:
            self._drop(key)

    def drop_array(self, array: CachedArray) -> None:
        """Forget all chunks of an array, and load those anew that are being loaded."""
        with self._lock:
            keys = [key for key in (*self._entries, *self._flights) if key[0] == array.number]
            for key in keys:
                if (flight := self._flights.get(key)) is not None:
                    flight.again = True
        for key in keys:
            self._drop(key)

    def close(self) -> None:
        """Let go of every chunk."""
        with self._lock:
            self._entries.clear()

    @property
    def largest_load(self) -> int:
        """The most bytes that loading one chunk may take."""
        return self._budget.total - _ENTRY_OVERHEAD

    @property
    def chunks(self) -> int:
        """Number of chunks held."""
        return len(self._entries)

    def _batches(self, array: CachedArray, indices: Sequence[Index]) -> Iterator[list[Index]]:
        """Chunks for one job each: of one stored object, large enough to be worth a hop."""
        layout = array.array.layout
        most = _LOCAL_BATCH if array.array.store.cheap_stat else _REMOTE_BATCH
        most = min(most, self._budget.total // 16)
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

    def _load(self, array: CachedArray, indices: Sequence[Index]) -> None:
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

    def _revalidate(self, array: CachedArray, indices: Sequence[Index]) -> Iterator[Index]:
        """Ask the store whether old entries are still good, and end their flights if so."""
        states: dict[Index, Generation | None] = {}
        for index in indices:
            key = (array.number, index)
            old = self._flights[key].old
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
                self._drop(key)
                continue
            with self._lock:
                # It may have been evicted meanwhile; its bytes are then nobody's.
                if self._entries.get(key) is not old:
                    continue
                old.checked = now
                old.pins += 1
                flight = self._flights.pop(key)
            self._stats.revalidated += 1
            self._hand_over(key, old.chunk, flight.waiters)
            self._unpin(old)
            yield index

    def _read(self, array: CachedArray, indices: Sequence[Index]) -> Iterator[ChunkResult]:
        reserved = sum(_cost(array.array, index) for index in indices) + array.array.shard_cost
        self._budget.reserve(reserved)
        try:
            for result in array.array.read_chunks(indices):
                key = (array.number, result.index)
                stored = array.array.layout.stored_index(result.index)
                if result.chunk is None:
                    assert result.error is not None
                    self._fail(array, result.index, result.error)
                else:
                    if array.freshness.saw(stored, result.generation):
                        self.drop_stored(array, {stored})
                    reserved -= self._admit(array, key, result.chunk, result.generation)
                yield result
        finally:
            self._budget.release(reserved)

    def _admit(
        self, array: CachedArray, key: _Key, chunk: Chunk, generation: Generation | None
    ) -> int:
        """Hand a chunk to its waiters and cache it if one wants that; the bytes charged."""
        self._stats.loads += 1
        self._stats.decoded_bytes += chunk.nbytes
        entry = None
        if self._flights[key].keep:
            charged = _ENTRY_OVERHEAD
            if any(chunk.strides) or not chunk.ndim:
                # Flat views copy fastest from C order, and a view into something much larger
                # would keep all of that alive.
                if not chunk.flags.c_contiguous or _base_size(chunk) > 1.125 * chunk.nbytes:
                    chunk = np.array(chunk, order="C")
                charged += _base_size(chunk)
            chunk.flags.writeable = False
            entry = _Entry(chunk, generation, charged)
            entry.pins = 1
        old = None
        with self._lock:
            flight = self._flights[key]
            # In one step with the end of the flight, or it would be noticed by nobody.
            if again := flight.again:
                flight.again = False
                flight.old = None
            else:
                del self._flights[key]
                if entry is not None:
                    old = self._entries.pop(key, None)
                    self._entries[key] = entry
        if again:
            self._pool.submit(partial(self._load, array, [key[1]]))
            return 0
        if old is not None:
            self._budget.release(old.charged)
        self._hand_over(key, chunk, flight.waiters)
        if entry is None:
            return 0
        self._unpin(entry)
        return entry.charged

    def _hand_over(self, key: _Key, chunk: Chunk, waiters: list[tuple[Deliver, Ticket]]) -> None:
        for deliver, ticket in waiters:
            error = None
            try:
                deliver(key[1], chunk)
            except Exception as failure:  # noqa: BLE001 - one waiter's failure is its own
                error = ChunkError(str(key[1]), f"copying failed: {failure!r}")
            ticket.finish(error=error)

    def _fail(self, array: CachedArray, index: Index, error: ChunkError) -> None:
        key = (array.number, index)
        with self._lock:
            flight = self._flights[key]
            # What was replaced while it was read may be fine now.
            if again := flight.again:
                flight.again = False
                flight.old = None
            else:
                del self._flights[key]
        if again:
            self._pool.submit(partial(self._load, array, [index]))
            return
        self._stats.error(error.key, error.reason)
        for _, ticket in flight.waiters:
            ticket.finish(error=error)

    def _unpin(self, entry: _Entry) -> None:
        with self._lock:
            entry.pins -= 1
            idle = entry.pins == 0
        if idle:
            self._budget.wake()

    def _drop(self, key: _Key) -> None:
        """Forget a chunk; whoever copies from it right now still can."""
        with self._lock:
            entry = self._entries.pop(key, None)
            self._let_go(key)
        if entry is None:
            return
        self._budget.release(entry.charged)

    def _evict(self, wanted: int) -> int:
        """Reclaim for the budget: least recently used first, never what is pinned."""
        freed = 0
        with self._lock:
            for key in list(self._take_oldest(wanted)):
                freed += self._entries.pop(key).charged
                self._let_go(key)
        return freed

    def _let_go(self, key: _Key) -> None:
        """Keep a chunk that is charged to nobody from living on in its flight."""
        if (flight := self._flights.get(key)) is not None:
            flight.old = None

    def _take_oldest(self, wanted: int) -> Iterator[_Key]:
        for key, entry in self._entries.items():
            if wanted <= 0:
                return
            if not entry.pins:
                wanted -= entry.charged
                yield key


class CachedArray:
    """An array whose chunks are cached.

    number : tells it from the other arrays of the cache.
    freshness : whether what was read from it is still current.
    """

    def __init__(self, cache: ChunkCache, array: Array, recheck: float) -> None:
        self.array = array
        self.number = next(_numbers)
        self.freshness = Freshness(array, recheck)
        self._cache = cache
        self._told = self.freshness.epoch

    @property
    def largest_load(self) -> int:
        """The most bytes of the budget that loading one chunk takes."""
        array = self.array
        largest = array.cost(array.layout.read.largest_chunk) + array.shard_cost
        return largest + _ENTRY_OVERHEAD

    def get(self, index: Index) -> Chunk | None:
        """A chunk that is decoded and fresh; does not block."""
        return self._cache.get((self.number, index), self.freshness.not_before)

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None:
        """See `ChunkCache.request`."""
        self._cache.request(self, indices, deliver, done, keep=keep, ahead=ahead)

    def run(self, job: Callable[[], None], *, ahead: bool) -> None:
        """Run ``job`` in a loader thread; it must not block."""
        self._cache.submit(job, ahead=ahead)

    @property
    def state(self) -> tuple[int, ...]:
        """Differs whenever chunks may hold something else than before."""
        return (self.freshness.epoch,)

    def stored_anew(self, stored: Index, generation: Generation | None) -> None:
        """A stored object was replaced from here, and is in this state now."""
        self.freshness.wrote(stored, generation)
        self.array.forget([stored])
        self._cache.drop_stored(self, {stored}, loading=True)

    def distrust(self) -> None:
        """Forget everything that was read: the array has been resized."""
        self.freshness.expire()
        self._cache.drop_array(self)

    def check(self) -> bool:
        """Ask the store for changes, if it is time. May block.

        Whether what was handed out may be old, because changes were found since the
        last time or cannot be ruled out.
        """
        changed = set(self.freshness.check())
        if changed:
            self._cache.drop_stored(self, changed)
        told, self._told = self._told, self.freshness.epoch
        return told != self._told


def _cost(array: Array, index: Index) -> int:
    """The most bytes that one more chunk takes, while it is loaded and after."""
    return array.cost(array.layout.read.chunk_shape(index)) + _ENTRY_OVERHEAD


def _base_size(chunk: Chunk) -> int:
    """Bytes that ``chunk`` keeps alive."""
    base: Any = chunk
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if not isinstance(base, np.ndarray):
        # A part of a memoryview keeps all that the whole one is of.
        base = memoryview(base)
        base = base if base.obj is None else memoryview(base.obj)
    return int(base.nbytes)
