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
from dataclasses import dataclass
from functools import partial
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

ENTRY_OVERHEAD = 1024
# Bytes of memory that one job may take, unless a single chunk takes more. A hop
# between threads costs as much as decoding some 50 KiB; a request to a remote store
# costs far more, so there its size counts.
_LOCAL_BATCH = 4 << 20
_REMOTE_BATCH = 32 << 20


class _Entry:
    __slots__ = ("charged", "checked", "chunk", "data", "generation", "pins")

    def __init__(self, chunk: Chunk, generation: Generation | None, charged: int) -> None:
        self.chunk = chunk
        self.data: memoryview | None = None
        if chunk.flags.c_contiguous and chunk.nbytes and not chunk.dtype.hasobject:
            self.data = chunk.reshape(-1).view(np.uint8).data
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


@dataclass(frozen=True, slots=True)
class Member:
    """An array of the cache. ``number`` tells it from the others."""

    number: int
    array: Array
    freshness: Freshness


class ChunkCache:
    """Decoded chunks of all arrays of a mount."""

    def __init__(self, budget: MemoryBudget, pool: LoaderPool, stats: Stats) -> None:
        self.budget = budget
        self.pool = pool
        self.stats = stats
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
        self.stats.hits += 1
        return entry.chunk

    def get_row(
        self, number: int, index: Index, last: Sequence[int], not_before: float
    ) -> list[memoryview] | None:
        """The same for several chunks of an array, as bytes in C order.

        index, last : what their indices begin with, and the last part of each.

        None also where one takes less memory than that.
        """
        found = []
        entries = self._entries
        with self._lock:
            for column in last:
                key = (number, (*index, column))
                entry = entries.get(key)
                if entry is None or entry.checked < not_before or entry.data is None:
                    return None
                entries.move_to_end(key)
                found.append(entry.data)
        self.stats.hits += len(found)
        return found

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
                entry = self._entries.get(key)
                if entry is not None and entry.checked >= array.freshness.not_before:
                    entry.pins += 1
                    self._entries.move_to_end(key)
                else:
                    flight = self._flights.get(key)
                    if flight is None:
                        flight = self._flights[key] = _Flight(entry, keep)
                        claimed.append(index)
                        self.stats.misses += 1
                    else:
                        flight.keep |= keep
                        self.stats.shared += 1
                    flight.waiters.append((deliver, ticket))
                    continue
            self.stats.hits += 1
            self._hand_over(key, entry.chunk, [(deliver, ticket)])
            self._unpin(entry)
        for batch in self._batches(array, claimed):
            self.pool.submit(partial(self._load, array, batch), ahead=ahead)
        ticket.finish()

    def submit(self, job: Callable[[], None], *, ahead: bool) -> None:
        """See `LoaderPool.submit`."""
        self.pool.submit(job, ahead=ahead)

    def drop_stored(
        self, array: Member, stored: Collection[Index], *, loading: bool = False
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

    def drop_array(self, array: Member) -> None:
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
        return self.budget.total - ENTRY_OVERHEAD

    @property
    def chunks(self) -> int:
        """Number of chunks held."""
        return len(self._entries)

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
            self.stats.revalidated += 1
            self._hand_over(key, old.chunk, flight.waiters)
            self._unpin(old)
            yield index

    def _read(self, array: Member, indices: Sequence[Index]) -> Iterator[ChunkResult]:
        reserved = sum(_cost(array.array, index) for index in indices) + array.array.shard_cost
        self.budget.reserve(reserved)
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
            self.budget.release(reserved)

    def _admit(self, array: Member, key: _Key, chunk: Chunk, generation: Generation | None) -> int:
        """Hand a chunk to its waiters and cache it if one wants that; the bytes charged."""
        self.stats.loads += 1
        self.stats.decoded_bytes += chunk.nbytes
        entry = None
        if self._flights[key].keep:
            charged = ENTRY_OVERHEAD
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
            self.pool.submit(partial(self._load, array, [key[1]]))
            return 0
        if old is not None:
            self.budget.release(old.charged)
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

    def _fail(self, array: Member, index: Index, error: ChunkError) -> None:
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
            self.pool.submit(partial(self._load, array, [index]))
            return
        self.stats.error(error.key, error.reason)
        for _, ticket in flight.waiters:
            ticket.finish(error=error)

    def _unpin(self, entry: _Entry) -> None:
        with self._lock:
            entry.pins -= 1
            idle = entry.pins == 0
        if idle:
            self.budget.wake()

    def _drop(self, key: _Key) -> None:
        """Forget a chunk; whoever copies from it right now still can."""
        with self._lock:
            entry = self._entries.pop(key, None)
            self._let_go(key)
        if entry is None:
            return
        self.budget.release(entry.charged)

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


def _cost(array: Array, index: Index) -> int:
    """The most bytes that one more chunk takes, while it is loaded and after."""
    return array.cost(array.layout.read.chunk_shape(index)) + ENTRY_OVERHEAD


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
