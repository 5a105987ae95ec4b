"""Decoded chunks of many arrays, charged to one budget; the least recently used go first.

A chunk that somebody copies from is pinned, and not evicted. The lock is taken inside
the budget's when that wants memory back, so the budget is never called with it held.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from zarrfs.cache.stats import Stats
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.memory.budget import MemoryBudget
from zarrfs.store.base import Generation

ENTRY_OVERHEAD = 1024

# Bytes of chunks that stay although the kernel has them, and parts of the budget of which they
# may take one: readers of anything else may come by where somebody copies file after file.
_MOST_PASSED = 8 << 20
_PASSED_PARTS = 16

Key = tuple[int, Index]
"""The number of an array and the index of a chunk in it."""


class Group:
    """Entries whose chunks lie in one piece of memory, and go when all of them do.

    charged : bytes of the budget, also for those that have gone.
    """

    __slots__ = ("charged", "entries")

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.charged = 0


class Entry:
    """A chunk, pinned by whoever made it.

    chunk : read-only; a copy where the one given would keep more memory alive.
    data : its bytes in C order, if it has them so.
    generation : of the stored object that it came from.
    charged : bytes of the budget.
    used : whether anybody but one reader of its own file made use of it.
    checked : when it was known to be what is stored, as `time.monotonic` counts.
    """

    __slots__ = ("charged", "checked", "chunk", "data", "generation", "group", "pins", "used")

    def __init__(
        self, chunk: Chunk, generation: Generation | None, group: Group | None = None
    ) -> None:
        """
        group : of chunks that all lie in the same memory; None: this one is alone.
        """
        self.charged = ENTRY_OVERHEAD
        self.group = Group() if group is None else group
        contiguous = chunk.flags.c_contiguous
        if any(chunk.strides) or not chunk.ndim:
            # Flat views copy fastest from C order, and a view into something much larger
            # would keep all of that alive.
            size = chunk.nbytes if group is not None else _base_size(chunk)
            if not contiguous or size > 1.125 * chunk.nbytes:
                chunk = np.array(chunk, order="C")
                contiguous = True
                size = _base_size(chunk)
            self.charged += size
        chunk.flags.writeable = False
        self.chunk = chunk
        self.data: memoryview | None = None
        if contiguous and chunk.nbytes and not chunk.dtype.hasobject:
            self.data = chunk.reshape(-1).view(np.uint8).data
        self.generation = generation
        self.checked = time.monotonic()
        self.pins = 1
        self.used = False


class DecodedChunks:
    """What is held; safe for any number of threads, and none of it blocks."""

    def __init__(self, budget: MemoryBudget, stats: Stats) -> None:
        self._budget = budget
        self._stats = stats
        self._entries: dict[Key, Entry] = {}
        # In order of use, oldest first.
        self._groups: OrderedDict[Group, None] = OrderedDict()
        # Those of which the whole file was read, oldest first; some may have gone since.
        self._passed: deque[Group] = deque()
        self._passed_bytes = 0
        self._most_passed = min(_MOST_PASSED, budget.total // _PASSED_PARTS)
        self._lock = Lock()
        budget.add_reclaim(self.evict)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, not_before: float) -> Chunk | None:
        """A chunk that was checked at ``not_before`` or later.

        It stays valid, but should not be kept, because it may be evicted and is then
        charged to nobody.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.checked < not_before:
                return None
            self._groups.move_to_end(entry.group)
            entry.used = True
        self._stats.hits += 1
        return entry.chunk

    def get_bytes(self, key: Key, not_before: float) -> memoryview | None:
        """The same, as bytes in C order, for a reader of the chunk's own file."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.checked < not_before:
                return None
            self._groups.move_to_end(entry.group)
        self._stats.hits += 1
        return entry.data

    def passed(self, key: Key) -> None:
        """A chunk was loaded for its own file, and the kernel has all of that by now.

        Whoever reads the file again is not seen here. So unless somebody else made use of the
        chunk, it is the first to go, and goes anyway when a few others have come to this.
        """
        freed = 0
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.used or len(entry.group.entries) > 1:
                return
            self._groups.move_to_end(entry.group, last=False)
            self._passed.append(entry.group)
            self._passed_bytes += entry.group.charged
            while self._passed_bytes > self._most_passed and len(self._passed) > 1:
                oldest = self._passed.popleft()
                self._passed_bytes -= oldest.charged
                for old, held in list(oldest.entries.items()):
                    if not held.used and not held.pins:
                        freed += self._forget(old)
        if freed:
            self._budget.release(freed)

    def get_all(
        self, number: int, indices: Sequence[Index], not_before: float
    ) -> list[Chunk] | None:
        """The same for several chunks of an array; None if one is missing."""
        found = []
        entries, groups = self._entries, self._groups
        with self._lock:
            for index in indices:
                key = (number, index)
                entry = entries.get(key)
                if entry is None or entry.checked < not_before:
                    return None
                groups.move_to_end(entry.group)
                entry.used = True
                found.append(entry.chunk)
        self._stats.hits += len(found)
        return found

    def holds_any(self, number: int, indices: Iterable[Index]) -> bool:
        """Whether any of these chunks of an array is held, however old."""
        return not self._entries.keys().isdisjoint((number, index) for index in indices)

    def count_held(self, number: int, indices: Iterable[Index]) -> int:
        """How many of these chunks of an array are held, however old."""
        return sum([(number, index) in self._entries for index in indices])

    def get_row(
        self, number: int, index: Index, last: Sequence[int], not_before: float
    ) -> list[memoryview] | None:
        """The same for several chunks of an array, as bytes in C order.

        index, last : what their indices begin with, and the last part of each.

        None also where one takes less memory than that.
        """
        found = []
        entries, groups = self._entries, self._groups
        with self._lock:
            for column in last:
                key = (number, (*index, column))
                entry = entries.get(key)
                if entry is None or entry.checked < not_before or entry.data is None:
                    return None
                groups.move_to_end(entry.group)
                entry.used = True
                found.append(entry.data)
        self._stats.hits += len(found)
        return found

    def pin(
        self, number: int, indices: Iterable[Index], not_before: float
    ) -> tuple[list[tuple[Index, Entry]], list[Index]]:
        """Pin those of some chunks of an array that `get` would find; also which it would not.

        See `unpin`.
        """
        found: list[tuple[Index, Entry]] = []
        missing: list[Index] = []
        entries, groups = self._entries, self._groups
        with self._lock:
            for index in indices:
                key = (number, index)
                entry = entries.get(key)
                if entry is None or entry.checked < not_before:
                    missing.append(index)
                    continue
                groups.move_to_end(entry.group)
                entry.used = True
                entry.pins += 1
                found.append((index, entry))
        return found, missing

    def peek(self, key: Key) -> Entry | None:
        """A chunk whenever it was checked, without a pin."""
        return self._entries.get(key)

    def confirm(self, key: Key, entry: Entry, checked: float) -> bool:
        """Pin what is still there, and was found to be what is stored.

        Whether it is there: the bytes of what was evicted are nobody's.
        """
        with self._lock:
            if self._entries.get(key) is not entry:
                return False
            entry.checked = checked
            entry.used = True
            entry.pins += 1
        return True

    def unpin(self, pinned: Iterable[Entry]) -> None:
        """Whoever pinned them has what it wanted."""
        idle = False
        with self._lock:
            for entry in pinned:
                entry.pins -= 1
                idle |= entry.pins == 0
        if idle:
            self._budget.wake()

    def put(self, coming: Iterable[tuple[Key, Entry]]) -> None:
        """Hold chunks, charged for already, in place of those that there were."""
        freed = 0
        with self._lock:
            for key, entry in coming:
                freed += self._forget(key)
                self._entries[key] = entry
                group = entry.group
                group.entries[key] = entry
                group.charged += entry.charged
                self._groups[group] = None
        if freed:
            self._budget.release(freed)

    def keys(self, number: int) -> list[Key]:
        """Of all chunks of an array."""
        with self._lock:
            return [key for key in self._entries if key[0] == number]

    def drop(self, keys: Iterable[Key]) -> None:
        """Forget chunks; whoever copies from one right now still can."""
        with self._lock:
            freed = sum([self._forget(key) for key in keys])
        if freed:
            self._budget.release(freed)

    def evict(self, wanted: int) -> int:
        """Forget about ``wanted`` bytes for the budget, which is not told; how many it were."""
        freed = 0
        with self._lock:
            oldest = []
            for group in self._groups:
                if freed >= wanted:
                    break
                if not any(entry.pins for entry in group.entries.values()):
                    freed += group.charged
                    oldest.append(group)
            for group in oldest:
                del self._groups[group]
                for key in group.entries:
                    del self._entries[key]
                # They refer to it, too.
                group.entries.clear()
        return freed

    def _forget(self, key: Key) -> int:
        """Forget a chunk, if it is there; the bytes that this frees. With the lock held."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return 0
        group = entry.group
        del group.entries[key]
        if group.entries:
            return 0
        del self._groups[group]
        return group.charged

    def clear(self) -> None:
        """Let go of every chunk, whatever the budget thinks."""
        with self._lock:
            self._entries.clear()
            self._passed.clear()
            for group in self._groups:
                group.entries.clear()
            self._groups.clear()


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
