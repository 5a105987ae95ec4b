"""The decoded memory of a mount: one budget, one order of use, one way to reclaim.

An *entry* is memory that is charged for, used and evicted as a whole: a chunk, a group of small
chunks, or a slab, which is a stretch of a flat file in file order. Each array and each flat file
knows its own entries by key (`ArrayChunks`, `Slabs`); the cache knows them all in order of use.

One rule says what goes first: buffers that nobody holds (`Arena`), then entries that their
readers are done with, then those that were used least recently. An entry that somebody copies
from is pinned and stays; so does a slab that is in use, where a load can wait for others to end.

Shared state, under ``lock``: the order of use, what the owners hold by key, and their loads
(`Flights`). The lock is held for a few steps only, never while anything is copied or waits. It
comes after the budget's, which is held while the cache reclaims: so nothing is reserved or
released with it held.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.stats import Stats
from zarrfs.jobs.loaders import LoaderPool
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.shared_memory import SharedMemory

# Bytes that stay although their readers are done with them, and parts of the budget of which
# they may take one: others may come by where somebody copies file after file.
_MOST_PASSED = 8 << 20
_PASSED_PARTS = 16
# Seconds for which a buffer that was used stays, whatever nobody waits for would displace it.
_IDLE = 10.0
# Seconds after which `lend_soon` looks again: buffers come back without a word.
_LOOK_AGAIN = 0.02


class Entry:
    """Memory that is charged for, used and evicted as a whole.

    charged : bytes of the budget that come free when it goes.
    pins : how many copy from it now.
    wanted : whether a reader may come back to it, as far as is known.
    """

    __slots__ = ("charged", "pins", "wanted")

    def __init__(self) -> None:
        self.charged = 0
        self.pins = 0
        self.wanted = False

    def forget(self) -> None:
        """It has been evicted: its owner must not find it again. With the cache's lock held."""
        raise NotImplementedError


class BufferEntry(Entry):
    """An entry whose memory is the arena's, which is charged for it.

    nbytes : of the buffer.
    read : whether a reader has had some of it.
    used : when it was last read, or else made, as `time.monotonic` counts.
    """

    __slots__ = ("nbytes", "read", "used")

    def __init__(self, nbytes: int) -> None:
        super().__init__()
        self.nbytes = nbytes
        # Made for somebody who is about to come.
        self.wanted = True
        self.read = False
        self.used = time.monotonic()


class BlockCache:
    """Entries of all arrays and files of a mount.

    arena : memory for slabs.
    pool : threads that load.
    chunks : how many chunks are held.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        pool: LoaderPool,
        stats: Stats,
        spill_directory: str | None = None,
        shared: SharedMemory | None = None,
    ) -> None:
        """
        spill_directory, shared : as of `Arena`.
        """
        self.budget = budget
        self.pool = pool
        self.stats = stats
        self.lock = ranked_lock(Rank.CACHE)
        self.chunks = 0
        # Least recently used first; before these, what readers are done with.
        self.order: OrderedDict[Entry, None] = OrderedDict()
        self._passed: OrderedDict[Entry, None] = OrderedDict()
        self._passed_bytes = 0
        self._buffers: dict[BufferEntry, None] = {}
        # Those added later are asked first.
        budget.add_reclaim(self.reclaim)
        self.arena = Arena(budget, spill_directory, shared)

    def add(self, entry: Entry) -> None:
        """Hold an entry, whose memory is charged already. With the lock held."""
        self.order[entry] = None
        if isinstance(entry, BufferEntry):
            self._buffers[entry] = None

    def remove(self, entry: Entry) -> int:
        """Forget an entry; the bytes to release to the budget. With the lock held."""
        del self.order[entry]
        if entry in self._passed:
            del self._passed[entry]
            self._passed_bytes -= entry.charged
        if isinstance(entry, BufferEntry):
            del self._buffers[entry]
        entry.forget()
        return entry.charged

    def done_with(self, entry: Entry) -> None:
        """Its reader has had all of it, and others are not known: the first to go.

        With the lock held.
        """
        entry.wanted = False
        self.order.move_to_end(entry, last=False)

    def passed(self, entry: Entry) -> int:
        """The same; it goes anyway when a few others have come to this.

        The bytes to release to the budget are returned.
        """
        self.done_with(entry)
        if entry not in self._passed:
            self._passed[entry] = None
            self._passed_bytes += entry.charged
        freed = 0
        most = min(_MOST_PASSED, self.budget.total // _PASSED_PARTS)
        while self._passed_bytes > most and len(self._passed) > 1:
            oldest, _ = self._passed.popitem(last=False)
            self._passed_bytes -= oldest.charged
            if not oldest.wanted and not oldest.pins:
                freed += self.remove(oldest)
        return freed

    def release(self, freed: int) -> None:
        """Give the budget back what was removed. Without the lock."""
        if freed:
            self.budget.release(freed)

    def unpin(self, pinned: Iterable[Entry]) -> None:
        """Whoever pinned them has copied what it wanted. Without the lock."""
        idle = False
        with self.lock:
            for entry in pinned:
                entry.pins -= 1
                idle |= entry.pins == 0
        if idle:
            self.budget.wake()

    def reclaim(self, wanted: int) -> int:
        """Evict about ``wanted`` bytes for the budget, which is not told; how many it were.

        With the budget's lock held. A slab that was used a moment ago stays where the memory comes
        free by itself when other loads end: to make it again would decode all of its chunks, and
        requests for a slab that was read to its end may come late.
        """
        size = wanted + self.budget.total - self.budget.used
        idle = 0.0 if self.arena.lent + size > self.budget.total else _IDLE
        freed = 0
        while freed < wanted:
            evicted = self._evict(wanted - freed, idle)
            if evicted is None:
                break
            # What comes back to the arena comes back to it at once, unless it is still being sent.
            freed += evicted or self.arena.reclaim(wanted - freed)
        return freed

    def _evict(self, wanted: int, idle: float) -> int | None:
        """Evict chunks, or one buffer; the bytes of the budget, None where there are none.

        idle : seconds for which a buffer must not have been used.
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
        """A buffer of the arena, for which slabs go if need be; None if there is no room now.

        shared, beside, keep : as of `Arena.lend`.
        ahead : nobody waits for it yet.
        stay : slabs that do not go for it.

        Slabs go as `drop_buffers` says; for one that is made ahead, or to be kept, none that was
        used a moment ago.
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
        """As `lend`, waiting so long for others to give memory back. Blocks."""
        lent: list[NDArray[np.uint8]] = []

        def take() -> bool:
            if (memory := self.lend(size, shared=shared, beside=beside)) is not None:
                lent.append(memory)
            return memory is not None

        give_up = time.monotonic() + seconds
        while not self.budget.attempt(take, max(0.0, min(_LOOK_AGAIN, give_up - time.monotonic()))):
            if time.monotonic() >= give_up:
                return None
        return lent[0]

    def drop_buffers(self, buffers: Iterable[BufferEntry], wanted: int, idle: float) -> int:
        """Drop some of these, of about ``wanted`` bytes in all; how many it were.

        First those that readers are done with; then those that nobody has read yet, the latest
        first, because the one that is wanted last can be made again; then the least recently
        used. With the lock held.

        idle : seconds for which one that is still wanted must not have been used.
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
        """Let go of everything, whatever the budget thinks."""
        with self.lock:
            for entry in list(self.order):
                self.remove(entry)
