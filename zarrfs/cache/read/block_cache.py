"""The decoded memory of a mount: one budget, one order of use, one way to reclaim.

An *entry* is memory that is charged, used and evicted as a whole: a chunk or
a slab, which is a contiguous part of a flat file. Each array and each flat file finds its own
entries by key (`ArrayChunks`, `Slabs`). The cache has all entries in order of use.

The order of eviction: first unused buffers (`Arena`), then slabs that their readers have finished
with, then the least recently used entries. An entry that a reader copies from is pinned and stays.
So does a recently used slab, if a load can wait for other loads to end.

Shared state, under ``lock``: the order of use, the entries by key, and the loads in progress
(`Flights`). The lock is held for a few steps only, never while a thread copies or waits. In the
order of locks it comes after the lock of the budget, which is held while the cache reclaims. So no
thread may reserve or release while it holds this lock.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.stats import Stats
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.threads import ThreadPool

# Seconds for which a used buffer is safe from loads that no reader waits for.
_IDLE = 10.0
# Seconds after which `lend_soon` tries again: returned buffers wake no thread.
_LOOK_AGAIN = 0.02


class Entry:
    """Memory that is charged, used and evicted as a whole.

    charged : bytes of the budget that eviction frees.
    pins : number of readers that are copying from it.
    """

    __slots__ = ("charged", "pins")

    def __init__(self) -> None:
        self.charged = 0
        self.pins = 0

    def forget(self) -> None:
        """The entry is evicted: its owner must not find it again. With the cache's lock held."""
        raise NotImplementedError


class BufferEntry(Entry):
    """An entry whose memory belongs to the arena, which is charged for it.

    nbytes : of the buffer.
    wanted : whether a reader may come back to it, as far as is known.
    read : whether a reader has read any of it.
    used : when it was last read, or created if it was never read (`time.monotonic`).
    """

    __slots__ = ("nbytes", "read", "used", "wanted")

    def __init__(self, nbytes: int) -> None:
        super().__init__()
        self.nbytes = nbytes
        # A load creates the entry for a reader that is about to come.
        self.wanted = True
        self.read = False
        self.used = time.monotonic()


class BlockCache:
    """Entries of all arrays and files of a mount.

    arena : memory for slabs.
    pool : threads that load.
    chunks : how many chunks are cached.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        pool: ThreadPool,
        stats: Stats,
        spill_directory: str | None = None,
        shared: SharedMemory | None = None,
    ) -> None:
        """
        spill_directory, shared : as in `Arena`.
        """
        self.budget = budget
        self.pool = pool
        self.stats = stats
        self.lock = ranked_lock(Rank.CACHE)
        self.chunks = 0
        # Slabs that their readers have finished with are first. The others follow, the least
        # recently used ones first.
        self.order: OrderedDict[Entry, None] = OrderedDict()
        self._buffers: dict[BufferEntry, None] = {}
        # The budget asks the callbacks that were added last first.
        budget.add_reclaim(self.reclaim)
        self.arena = Arena(budget, spill_directory, shared)

    def add(self, entry: Entry) -> None:
        """Add an entry, whose memory is charged already. With the lock held."""
        self.order[entry] = None
        if isinstance(entry, BufferEntry):
            self._buffers[entry] = None

    def remove(self, entry: Entry) -> int:
        """Forget an entry; returns the bytes to release to the budget. With the lock held."""
        del self.order[entry]
        if isinstance(entry, BufferEntry):
            del self._buffers[entry]
        entry.forget()
        return entry.charged

    def done_with(self, entry: BufferEntry) -> None:
        """The reader has read the whole buffer and no other reader is known: evict it first.

        With the lock held.
        """
        entry.wanted = False
        self.order.move_to_end(entry, last=False)

    def unpin(self, pinned: Iterable[Entry]) -> None:
        """The readers that pinned these entries have finished copying. Without the lock."""
        idle = False
        with self.lock:
            for entry in pinned:
                entry.pins -= 1
                idle |= entry.pins == 0
        if idle:
            self.budget.wake()

    def reclaim(self, wanted: int) -> int:
        """Evict about ``wanted`` bytes; returns how many, for the budget to subtract.

        With the budget's lock held. A recently used slab stays if other loads will free memory by
        themselves when they end. Loading the slab again would decode all of its chunks, and late
        requests may follow the one that read its end.
        """
        size = wanted + self.budget.total - self.budget.used
        idle = 0.0 if self.arena.lent + size > self.budget.total else _IDLE
        freed = 0
        while freed < wanted:
            evicted = self._evict(wanted - freed, idle)
            if evicted is None:
                break
            # The arena gets an evicted buffer back at once, unless the kernel is still sending it.
            freed += evicted or self.arena.reclaim(wanted - freed)
        return freed

    def _evict(self, wanted: int, idle: float) -> int | None:
        """Evict chunks, or one buffer; returns the bytes of the budget, None if there are none.

        idle : seconds for which a buffer must have been unused.
        """
        freed = 0
        oldest: list[Entry] = []
        before = time.monotonic() - idle
        with self.lock:
            for entry in self.order:
                if entry.pins:
                    continue
                if isinstance(entry, BufferEntry):
                    if entry.used > before:
                        continue
                    if not oldest:
                        oldest.append(entry)
                    break
                oldest.append(entry)
                freed += entry.charged
                if freed >= wanted:
                    break
            for entry in oldest:
                self.remove(entry)
        return freed if oldest else None

    def lend(
        self,
        size: int,
        *,
        shared: bool,
        beside: int,
        keep: bool = False,
        ahead: bool = False,
        stay: Collection[BufferEntry] = (),
    ) -> NDArray[np.uint8] | None:
        """A buffer of the arena, evicting slabs if needed; None if there is no room now.

        shared, beside, keep : as in `Arena.lend`.
        ahead : no reader waits for it yet.
        stay : slabs that must not be evicted.

        `drop_buffers` has the order of eviction. A recently used slab is not evicted for a buffer
        that is loaded ahead, or that is to be kept.
        """
        idle = _IDLE if keep or ahead else 0.0
        while True:
            memory = self.arena.lend(size, shared=shared, keep=keep, beside=beside)
            if memory is not None:
                return memory
            with self.lock:
                others = [buffer for buffer in self._buffers if buffer not in stay]
                missing = self.arena.missing(size, keep=keep, beside=beside)
                if not self.drop_buffers(others, missing, idle):
                    return None

    def lend_soon(
        self, size: int, *, shared: bool, beside: int, seconds: float
    ) -> NDArray[np.uint8] | None:
        """As `lend`, waiting up to ``seconds`` for other threads to return memory. Blocks."""
        take = partial(self.lend, size, shared=shared, beside=beside)
        give_up = time.monotonic() + seconds
        while True:
            left = max(0.0, min(_LOOK_AGAIN, give_up - time.monotonic()))
            memory = self.budget.attempt(take, left)
            if memory is not None or time.monotonic() >= give_up:
                return memory

    def drop_buffers(self, buffers: Iterable[BufferEntry], wanted: int, idle: float) -> int:
        """Drop some of these buffers, of about ``wanted`` bytes in total; returns how many bytes.

        The order: buffers that their readers have finished with; then buffers that no reader has
        read yet, newest first, because the one that is needed last can be loaded again; then the
        least recently used. With the lock held.

        idle : seconds for which a buffer that is still wanted must have been unused.
        """
        before = time.monotonic() - idle
        order = sorted(buffers, key=lambda b: (b.wanted, b.read, b.used if b.read else -b.used))
        dropped = 0
        for buffer in order:
            if (
                dropped < wanted
                and not buffer.pins
                and (not buffer.wanted or buffer.used <= before)
            ):
                dropped += buffer.nbytes
                self.remove(buffer)
        return dropped

    def clear(self) -> None:
        """Forget all entries, without a release to the budget."""
        with self.lock:
            for entry in list(self.order):
                self.remove(entry)
