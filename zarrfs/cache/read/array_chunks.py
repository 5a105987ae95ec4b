"""The decoded chunks of one array that are in the cache, and whether they still match the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from zarrfs.array.array import Array
from zarrfs.cache.read.block_cache import BlockCache, Entry
from zarrfs.errors import StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import contiguous as in_c_order
from zarrfs.store.base import Generation

# Bytes that a chunk takes in addition to its elements, measured.
CHUNK_OVERHEAD = 1024

_MOST_CHECKED = 4096
_starts = count(0, 1 << 32)


class NotCached(LookupError):
    """A chunk is not in the cache, or not fresh, so the bytes cannot be had without a load."""


class CachedChunk(Entry):
    """A chunk in memory.

    chunk : read-only; a copy if the given array would keep more memory alive.
    data : the bytes of the chunk in C order, if its memory has that order.
    generation : of the stored object that the chunk came from.
    checked : the last check (`Freshness.checks`) since whose begin the chunk is known to have
        matched the store; -1 if it must be checked again.
    """

    __slots__ = ("_home", "_index", "checked", "chunk", "data", "generation")

    def __init__(
        self,
        home: ArrayChunks,
        index: Index,
        chunk: Chunk,
        generation: Generation | None,
        *,
        in_order: bool = True,
    ) -> None:
        """
        in_order : whether to bring the chunk into C order, in which flat views copy fastest.
        """
        super().__init__()
        self._home = home
        self._index = index
        self.charged = CHUNK_OVERHEAD
        contiguous = chunk.flags.c_contiguous
        if any(chunk.strides) or not chunk.ndim:
            size = _base_size(chunk)
            # A view into a much larger buffer would keep all of that buffer alive.
            crowded = size > 1.125 * chunk.nbytes
            if (in_order and not contiguous) or crowded:
                # A copy, also if it is in that order already.
                chunk = chunk.copy() if contiguous else in_c_order(chunk, chunk.dtype)
                contiguous = True
                size = _base_size(chunk)
            self.charged += size
        chunk.flags.writeable = False
        self.chunk = chunk
        self.data: memoryview | None = None
        if contiguous and chunk.nbytes and not chunk.dtype.hasobject:
            self.data = chunk.reshape(-1).view(np.uint8).data
        self.generation = generation
        self.checked = 0

    def forget(self) -> None:
        self._home.forget(self._index)


class ArrayChunks:
    """The chunks of one array, by index. Thread-safe; no method blocks.

    "With the lock held" means that the caller holds the lock of the cache.
    """

    def __init__(self, cache: BlockCache) -> None:
        self._cache = cache
        self._held: dict[Index, CachedChunk] = {}

    def find(self, index: Index, not_before: int) -> CachedChunk | None:
        """A chunk that is good since the check ``not_before``, else None; as `find_all`."""
        found = self.find_all((index,), not_before)
        return None if found is None else found[0]

    def find_all(self, indices: Iterable[Index], not_before: int) -> list[CachedChunk] | None:
        """Several chunks that are good since the check ``not_before``; None if one is missing.

        The chunks stay valid. The caller should not keep them: once evicted, no budget is charged
        for them.
        """
        found = []
        held, order = self._held, self._cache.order
        with self._cache.lock:
            for index in indices:
                chunk = held.get(index)
                if chunk is None or chunk.checked < not_before:
                    return None
                order.move_to_end(chunk)
                found.append(chunk)
        self._cache.stats.hits += len(found)
        return found

    def pin(
        self, indices: Iterable[Index], not_before: int
    ) -> tuple[list[tuple[Index, CachedChunk]], list[Index]]:
        """Pin the chunks that `find` would return, and list the others. With the lock held."""
        found: list[tuple[Index, CachedChunk]] = []
        missing: list[Index] = []
        held, order = self._held, self._cache.order
        for index in indices:
            chunk = held.get(index)
            if chunk is None or chunk.checked < not_before:
                missing.append(index)
                continue
            order.move_to_end(chunk)
            chunk.pins += 1
            found.append((index, chunk))
        return found, missing

    def peek(self, index: Index) -> CachedChunk | None:
        """A chunk, no matter when it was checked; neither pinned nor marked as used."""
        return self._held.get(index)

    def count(self, indices: Iterable[Index]) -> int:
        """How many of these chunks are cached, no matter when they were checked."""
        return sum([index in self._held for index in indices])

    def confirm(self, index: Index, chunk: CachedChunk, checked: int) -> bool:
        """Pin a chunk that the store has confirmed, if it is still cached. With the lock held.

        Returns whether it is still cached. An evicted chunk must not be used: no budget is charged
        for it.
        """
        if self._held.get(index) is not chunk:
            return False
        chunk.checked = max(chunk.checked, checked)
        chunk.pins += 1
        return True

    def put(self, coming: Iterable[tuple[Index, CachedChunk]]) -> int:
        """Cache chunks, which are charged already, in place of older ones. With the lock held.

        Returns the bytes to release to the budget.
        """
        freed = 0
        for index, chunk in coming:
            if index in self._held:
                freed += self.drop([index])
            self._held[index] = chunk
            self._cache.chunks += 1
            self._cache.add(chunk)
        return freed

    def drop(self, indices: Iterable[Index] | None = None) -> int:
        """Forget chunks; None: all. Readers that are copying from a chunk can finish.

        Returns the bytes to release to the budget. With the lock held.
        """
        wanted = list(self._held) if indices is None else indices
        dropped = [self._held[index] for index in wanted if index in self._held]
        return sum(map(self._cache.remove, dropped))

    def keys(self) -> list[Index]:
        """The indices of all cached chunks. With the lock held."""
        return list(self._held)

    def forget(self, index: Index) -> None:
        """For `CachedChunk`: this chunk has been evicted. With the lock held."""
        del self._held[index]
        self._cache.chunks -= 1


def _base_size(chunk: Chunk) -> int:
    """Bytes that ``chunk`` keeps alive."""
    base: Any = chunk
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if not isinstance(base, np.ndarray):
        # A memoryview keeps the whole underlying object alive, even if it shows only a part.
        base = memoryview(base)
        base = base if base.obj is None else memoryview(base.obj)
    return int(base.nbytes)


class Freshness:
    """Remembers in which state each stored object of one array was read.

    recheck : seconds for which an answer of the store holds; infinity: for ever.
    epoch : grows whenever data that may have been handed out may be out of date, so that readers
        drop copies from an older epoch.
    foreign : how many of these steps other writers caused; it begins like the epoch.
    changed_ns : when a change was last noticed, in nanoseconds since the epoch of the clock; 0 if
        never.
    checks : how many checks have begun. A load that began in an earlier one may bring bytes that
        are older than the last check: only readers who asked before it may have them.
    not_before : chunks that were current in an earlier check than this must be checked again one by
        one.
    """

    def __init__(self, array: Array, recheck: float) -> None:
        self._array = array
        self._recheck = recheck
        self._seen: dict[Index, Generation | None] = {}
        self._checked = time.monotonic()
        self._lock = Lock()
        self._turn = Lock()
        # Differs from all epochs of an earlier object for the same array.
        self.epoch = self.foreign = next(_starts)
        self.changed_ns = 0
        self.checks = self.not_before = 0

    def saw(
        self,
        seen: Iterable[tuple[Index, Generation | None]],
        drop: Callable[[set[Index]], None],
    ) -> None:
        """Stored objects were read in these states (None: one does not exist).

        drop : called with those that were in another state before, if any. `foreign` grows only
            when it has returned: who saw the new value is served no older data.
        """
        changed: dict[Index, Generation | None] = {}
        # Unlike any state: a check, or a load that read the older state, finds a change meanwhile.
        passing: Generation = ("changing", object())
        with self._lock:
            known = self._seen
            for stored, generation in seen:
                if stored not in known:
                    if len(known) <= _MOST_CHECKED:
                        known[stored] = generation
                elif known[stored] != generation:
                    known[stored] = passing
                    changed[stored] = generation
        if changed:
            drop(set(changed))
            with self._lock:
                for stored, generation in changed.items():
                    # Others may have seen, or written, another state since.
                    if known.get(stored, passing) is passing:
                        known[stored] = generation
                self.foreign += 1
                self._note_change()

    def remembers(self, stored: Iterable[Index]) -> bool:
        """Whether `saw` would record the state of any of these objects.

        If not, `check` trusts no earlier read.
        """
        with self._lock:
            known = self._seen
            return len(known) <= _MOST_CHECKED or any(index in known for index in stored)

    def wrote(self, stored: Index, generation: Generation | None) -> None:
        """This mount has brought a stored object into this state."""
        with self._lock:
            if stored in self._seen or len(self._seen) <= _MOST_CHECKED:
                self._seen[stored] = generation
            self._note_change()

    def touched(self) -> None:
        """The data have changed in this mount and are not stored yet."""
        self.changed_ns = time.time_ns()

    def due(self) -> bool:
        """Whether `check` would ask the store."""
        return time.monotonic() - self._checked >= self._recheck

    def expire(self) -> None:
        """Trust no earlier read any more. Waits for nothing but a lock."""
        now = time.monotonic()
        self._array.forget_others()
        with self._lock:
            self._checked = now
            self._seen.clear()
            self.checks += 1
            self.not_before = self.checks
            self.foreign += 1
            self.epoch += 1

    def check(self, drop: Callable[[set[Index]], None]) -> None:
        """Bring `epoch` up to date. May block; one thread at a time checks, others wait for it.

        drop : called with the stored objects that have changed, if any. The check is over, and
            `due` is false, only when `drop` has returned: a reader that opens a file before that
            must not be served what is about to be dropped.
        """
        with self._turn:
            if self.due():
                self._check(drop)

    def _check(self, drop: Callable[[set[Index]], None]) -> None:
        now = time.monotonic()
        with self._lock:
            seen = dict(self._seen)
        if len(seen) > _MOST_CHECKED or not self._array.store.traits.near:
            # Asking the store for each object would take too long. Instead each chunk is checked
            # when it is used next, and data that were handed out count as out of date.
            self.expire()
            return
        # The states of other shards come from loads that have not ended.
        self._array.forget_others(seen)
        with self._lock:
            self.checks += 1
            # Loads that end from now on know that they began before the check.
            seen = dict(self._seen)
        changed = [stored for stored, state in seen.items() if self._state(stored) != state]
        if changed:
            self._array.forget(changed)
            drop(set(changed))
        with self._lock:
            for stored in changed:
                # A load may have seen the present state since.
                if stored in self._seen and self._seen[stored] == seen[stored]:
                    del self._seen[stored]
            if changed:
                self.foreign += 1
                self._note_change()
            self._checked = now

    def _state(self, stored: Index) -> Generation | None:
        try:
            info = self._array.stored_info(stored)
        except StoreError:
            return ("unknown", time.monotonic())
        return None if info is None else info.generation

    def _note_change(self) -> None:
        self.epoch += 1
        self.changed_ns = time.time_ns()
