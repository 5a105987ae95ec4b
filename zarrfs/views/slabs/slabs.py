"""Whole rows of chunks, assembled once and served from memory.

A scan of ``array.bin`` passes each chunk once for every plane in it. If a row of chunks along the
slowest axes (a *slab*) is contiguous in the file and fits into memory, it is assembled in one step:
each chunk is decoded once, copied once and not cached, and reads are slices of the slab. A single
read that crosses most of a row also has it assembled, and kept for later reads.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.read.block_cache import BlockCache, BufferEntry
from zarrfs.cache.read.flights import Flights
from zarrfs.errors import ChunkError
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs.slab_plan import SlabPlan, is_distant

log = logging.getLogger(__name__)

# Seconds until a slab that could not be assembled is tried again.
_FAILED = 10.0
# Seconds that a slab of a staged row waits for memory.
_PATIENCE = 2.0
# Nanoseconds without changes, after which slabs are worth keeping.
_QUIET_NS = 60 * 10**9
# A chunk of a slab is decoded in half of the time that loading it alone takes. But to begin a slab
# costs as much as loading so many chunks.
_SLAB_COST = 8


class Slab(BufferEntry):
    """Bytes ``start`` to ``stop`` of a file.

    state : of the array when loading began; in any other state the slab is out of date.
    check : the last one (`Freshness.checks`) before loading began.
    kept : whether it is for random reads.
    finished : whether a reader has read up to its end.
    """

    __slots__ = ("_home", "check", "data", "finished", "kept", "start", "state", "stop")

    def __init__(self, home: dict[int, Slab], load: _Load, stop: int, *, kept: bool) -> None:
        """
        home : the dictionary that has the slab by its first byte.
        """
        self.start, self.state, self.check = load
        super().__init__(stop - self.start)
        self._home = home
        self.stop = stop
        self.kept = kept
        self.finished = False
        self.data = memoryview(b"")

    @property
    def load(self) -> _Load:
        return self.start, self.state, self.check

    def forget(self) -> None:
        del self._home[self.start]


_Load = tuple[int, tuple[int, ...], int]
"""First byte of a slab that is being loaded, the array's state and last check when that began."""


class Slabs:
    """The slabs of one flat file, shared by all of its readers.

    complete : the complete slabs by first byte.
    least_kept : bytes of a read below which `worth_keeping` is False.

    Shared state, under the lock of the cache: ``complete``;
    ``_flights``, the slabs being loaded; ``_failed``, the slabs that could not be loaded in a state
    of the array, and when. Memory returns to the arena when a slab is dropped and the last reply
    made from it has been sent.
    """

    def __init__(self, elements: Elements, cache: BlockCache) -> None:
        self._elements = elements
        self.freshness = elements.array.freshness
        self._item = elements.dtype.itemsize
        self._cache = cache
        self._arena = cache.arena
        self._plan = plan = SlabPlan.of(elements, cache)
        self._grid, self._staged, self._kept_grid = plan.grid, plan.staged, plan.kept
        self.complete: dict[int, Slab] = {}
        self.least_kept = math.inf
        if plan.kept is not None:
            # Bytes of a chunk that are contiguous in the file.
            piece = (elements.window.grid.largest_chunk or (1,))[-1] * self._item
            # Half of the chunks, and what a slab costs. A read may cross two chunks in part.
            self.least_kept = (-(-plan.kept.chunks // 2) + _SLAB_COST - 2) * piece
        self._flights: Flights[_Load, Callable[[], None]] = Flights()
        self._failed: dict[_Load, float] = {}
        self._readers = 0

    @property
    def possible(self) -> bool:
        """Whether this file has slabs that fit."""
        return self._grid is not None

    @property
    def state(self) -> tuple[int, ...]:
        """The state of the array; a slab from another one is out of date."""
        return self._elements.array.state

    @property
    def distant(self) -> bool:
        """Whether loads wait for a store more than for a processor."""
        return is_distant(self._elements)

    @property
    def ahead(self) -> int:
        """How many slabs to load ahead of a reader, so that there is room for all readers.

        For a remote store, enough for as many requests as it should have in flight.
        """
        plan = self._plan
        wanted = plan.ahead
        in_flight = self._elements.array.array.store.traits.in_flight
        if in_flight > 1 and self._staged is None:
            wanted = max(wanted, math.ceil(in_flight / plan.requests))
        return max(0, min(wanted, plan.room // max(1, self._readers) - 1))

    def enter(self) -> None:
        """One more reader streams: it needs room for its slab and those loaded ahead."""
        self._readers += 1
        if self._staged is not None:
            self._staged.enter()

    def leave(self) -> None:
        """One reader less; after the last one all slabs that readers streamed are dropped."""
        self._readers -= 1
        if self._readers:
            return
        with self._cache.lock:
            for slab in self._passing():
                self._cache.remove(slab)
        if self._staged is not None:
            self._staged.clear()

    def drop(self) -> None:
        """Drop all slabs: nobody will read the file through this object again."""
        with self._cache.lock:
            for slab in list(self.complete.values()):
                self._cache.remove(slab)
        if self._staged is not None:
            self._staged.clear()

    def read_to(self, slab: Slab, end: int) -> None:
        """A reader that scans has read the bytes of a slab up to ``end``."""
        slab.finished |= end == slab.stop
        if slab.finished and not slab.kept:
            with self._cache.lock:
                if self.complete.get(slab.start) is slab:
                    self._cache.done_with(slab)

    def worth_keeping(self, offset: int, size: int) -> bool:
        """Whether a random read should load a slab that is then kept.

        It should if the read crosses so many chunks that scanning the whole slab is faster, and if
        the slab is likely to stay valid for a while.
        """
        grid = self._kept_grid
        if grid is None or size < self.least_kept:
            return False
        if time.time_ns() - self.freshness.changed_ns < _QUIET_NS:
            return False
        first, last = offset // self._item, -(-(offset + size) // self._item)
        return 2 * (self._elements.count_chunks(first, last) - _SLAB_COST) >= grid.chunks

    def needed(self, offset: int, size: int) -> bool:
        """Whether a read that may begin a scan should be served from slabs at once.

        It should if it crosses most chunks of a row that memory has no room for: otherwise each
        following read would decode all of them again.
        """
        if self._staged is None or self._grid is None:
            return False
        first, last = offset // self._item, -(-(offset + size) // self._item)
        return 2 * self._elements.count_chunks(first, last) >= self._grid.chunks

    def peek(self, offset: int, size: int) -> memoryview | None:
        """Bytes of one complete slab; None if no such slab is in memory."""
        slab = self.ready(offset) if size > 0 else None
        if slab is None or offset + size > slab.stop:
            return None
        return slab.data[offset - slab.start : offset + size - slab.start]

    def end(self, offset: int) -> int:
        """The end of the slab that contains a byte."""
        assert self._grid is not None
        return self._grid.slab_at(offset // self._item)[1] * self._item

    def ready(self, offset: int) -> Slab | None:
        """The slab that contains a byte, if it is complete and current."""
        with self._cache.lock:
            slab = self._find(offset)
            if slab is None:
                return None
            self._cache.order.move_to_end(slab)
            slab.wanted = slab.read = True
            slab.used = time.monotonic()
            return slab

    def fetch(self, offset: int, then: Callable[[], None] | None, *, keep: bool = False) -> bool:
        """Load the slab that contains a byte; returns False if that is not possible now.

        keep : it is for random reads; see `worth_keeping`.
        then : called in any thread when the slab is loaded or has failed; possibly at once. Must
            not raise.
        """
        grid = self._kept_grid if keep else self._grid
        assert grid is not None
        first, last = grid.slab_at(offset // self._item)
        load = first * self._item, self.state, self.freshness.checks
        with self._cache.lock:
            found = self._find(offset) is not None
            if not found:
                if time.monotonic() - self._failed.get(load, -math.inf) < _FAILED:
                    return False
                if not keep and not self._room_for_one(needed=then is not None) and then is None:
                    return False
                # From now on no other thread starts the same load.
                first_asked = self._flights.join(load, then)
        if found:
            if then is not None:
                then()
            return True
        if not first_asked:
            return True
        slab = Slab(self.complete, load, last * self._item, kept=keep)
        try:
            return self._make(slab, then)
        except Exception:
            self._over(slab, failed=True, but=then)
            raise

    def _find(self, offset: int) -> Slab | None:
        """The current slab that contains a byte. With the lock held."""
        # There may be many kept slabs.
        for grid in (self._grid, self._kept_grid):
            if grid is None:
                continue
            slab = self.complete.get(grid.slab_at(offset // self._item)[0] * self._item)
            if slab is not None and slab.start <= offset < slab.stop:
                if slab.state == self.state:
                    return slab
                self._cache.remove(slab)
        return None

    def _make(self, slab: Slab, asked: Callable[[], None] | None) -> bool:
        """Begin to fill a slab; returns False if there is no memory for it now.

        asked : the function of the waiting reader; the return value says whether it will be called.
        """
        array = self._elements.array
        stay: list[Slab] = []
        if self._staged is None and not slab.kept:
            # Loading an earlier, unfinished slab again would decode all of its chunks again.
            with self._cache.lock:
                stay = [s for s in self._passing() if not s.finished and s.start < slab.start]
        memory = self._cache.lend(
            slab.nbytes,
            shared=array.shares_memory,
            beside=array.largest_load,
            keep=slab.kept,
            ahead=asked is None,
            stay=stay,
        )
        if memory is None:
            return self._make_later(slab, asked)
        # Planning many chunks takes too long for the event loop.
        self._in_thread(lambda: self._fill(slab, memory), slab, ahead=asked is None)
        return True

    def _in_thread(self, work: Callable[[], None], slab: Slab, *, ahead: bool) -> None:
        array = self._elements.array
        array.in_thread(work, lambda _: self._over(slab, failed=True), ahead=ahead)

    def _make_later(self, slab: Slab, asked: Callable[[], None] | None) -> bool:
        """As `_make`, if there is no memory now."""
        self._over(slab, but=asked)
        if asked is None:
            return False
        with self._cache.lock:
            # Memory comes back when another slab has been loaded and read.
            if self._flights.join_any(asked):
                return True
            if self._staged is None:
                return False
            self._flights.join(slab.load, asked)
        # Memory comes back when replies have been sent. Without a slab, this read would decode most
        # chunks of a row again.
        self._in_thread(partial(self._fill_soon, slab), slab, ahead=False)
        return True

    def _fill_soon(self, slab: Slab) -> None:
        """Fill a slab once there is memory for it. Blocks."""
        array = self._elements.array
        memory = self._cache.lend_soon(
            slab.nbytes,
            shared=array.shares_memory,
            beside=array.largest_load,
            seconds=_PATIENCE,
        )
        if memory is not None:
            self._fill(slab, memory)
            return
        self._over(slab, failed=True)

    def _fill(self, slab: Slab, memory: NDArray[np.uint8]) -> None:
        def done(error: ChunkError | None) -> None:
            if error is None:
                slab.data = memory.data.toreadonly()
            self._over(slab, failed=error is not None)

        first, last = slab.start // self._item, slab.stop // self._item
        with self._cache.lock:
            ahead = not self._flights.awaited(slab.load)

        def fill() -> None:
            if self._staged is not None:
                self._staged.fill(memory, first, last, done, ahead=ahead)
            else:
                elements = memory.view(self._elements.dtype)
                self._elements.scan(elements, first, last, done, ahead=ahead)

        # Requests to a distant store need not wait for pages.
        if self.distant:
            fill()
        # Huge pages are for memory that is used again and again; allocating them takes time.
        if not slab.kept:
            self._arena.back(memory)
        if not self.distant:
            fill()

    def _over(
        self, slab: Slab, *, failed: bool = False, but: Callable[[], None] | None = None
    ) -> None:
        """A load has ended, with or without a slab: call the functions of its waiters, but one."""
        for call in self._end(slab, failed=failed):
            if call is not but:
                try:
                    call()
                except Exception:  # the others must be called, too
                    log.exception("a reader of a slab could not go on")

    def _end(self, slab: Slab, *, failed: bool) -> list[Callable[[], None]]:
        load = slab.load
        with self._cache.lock:
            if slab.data and slab.check == self.freshness.checks:
                if (old := self.complete.get(slab.start)) is not None:
                    self._cache.remove(old)
                slab.used = time.monotonic()
                self.complete[slab.start] = slab
                self._cache.add(slab)
            elif failed:
                self._failed = {
                    other: since
                    for other, since in self._failed.items()
                    if time.monotonic() - since < _FAILED
                }
                self._failed[load] = time.monotonic()
            return self._flights.end(load) or []

    def _passing(self) -> list[Slab]:
        """The slabs that were loaded for streaming readers."""
        return [slab for slab in self.complete.values() if not slab.kept]

    def _room_for_one(self, *, needed: bool) -> bool:
        """Drop slabs for another one; returns False if that would cost more than it gains.

        The next slab reuses the memory of a slab that was read, even if new memory is available.
        With the lock held.

        needed : a reader waits for it.
        """
        most = min(max(self._plan.room, self._readers), (1 + self.ahead) * self._readers)
        passing = self._passing()
        excess = len(passing) + len(self._flights) + 1 - most
        if excess <= 0:
            return True
        size = max([slab.nbytes for slab in passing], default=1)
        wanted = excess * size
        return self._cache.drop_buffers(passing, wanted, 0.0 if needed else math.inf) >= wanted
