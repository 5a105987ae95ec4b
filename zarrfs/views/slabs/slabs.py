"""Whole rows of chunks, assembled once and served as they are.

A scan of ``array.bin`` passes each chunk once for every plane it holds. Where a row
of chunks along the slowest axes (a *slab*) is contiguous in the file and fits, it is
put together in one go: each chunk is decoded once, copied once and not kept, and
reads are slices of the slab. A lone read that crosses most of a row has it put together,
too, and kept for those to come.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import ChunkError
from zarrfs.memory.arena import Arena
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs.slab_grid import SMALL_SLAB, SlabGrid
from zarrfs.views.slabs.staged_rows import StagedRows

# Bytes of a slab that one read may wait for, and chunks of one that is worth a scan.
_LARGEST_KEPT = 64 << 20
_FEWEST_KEPT = 16
# Bytes of memory for slabs below which none are put together.
_LEAST = 64 << 10
# Seconds until a kept slab that could not be made is tried again.
_FAILED = 10.0
# Nanoseconds for which nobody has changed what is stored.
_QUIET_NS = 60 * 10**9

# Bytes that are made ahead of a lone reader, and in how many slabs: while one is copied out of and
# one is finished, loaders need others, and more of them where a slab is few jobs. Workers decode
# some chunks so fast that memory which is new costs as much.
_AHEAD = 128 << 20
_AHEAD_OF_WORKERS = 96 << 20
_MOST_AHEAD = 4
# Bytes of one request for a part of a stored object.
_REQUEST = 8 << 20
# Requests ahead of a reader for each that the store likes to have in flight.
_BEYOND = 2
# Bytes of the kernel's largest request.
_LARGEST_REQUEST = 1 << 20


@dataclass(slots=True, eq=False, repr=False)
class Slab:
    """Bytes ``start`` to ``stop`` of a file.

    state : of the array when it was begun; in another one it is out of date.
    data : None until they are there; then read-only.
    failed : whether some chunk of it could not be had.
    kept : whether it is for reads here and there, and stays when they pause.
    read, finished : whether somebody has read of it, and up to its end.
    used : when it was last read, or else made, as `time.monotonic` counts.
    waiting : called, in any thread, once either is decided.
    """

    start: int
    stop: int
    state: tuple[int, ...]
    data: memoryview | None = None
    failed: bool = False
    kept: bool = False
    read: bool = False
    finished: bool = False
    used: float = 0.0
    waiting: list[Callable[[], None]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether nobody works at it any more."""
        return self.data is not None or self.failed


class Slabs:
    """The slabs of one flat file, shared by all who read it.

    Shared state, under the lock: ``_slabs`` by first byte in order of use, and each
    slab's ``waiting``. Memory goes back to the arena when a slab is dropped here and
    the last reply made of it has been sent.
    """

    def __init__(self, elements: Elements, arena: Arena) -> None:
        self._elements = elements
        self._item = elements.dtype.itemsize
        self._arena = arena
        # Bytes of a chunk that lie together in the file.
        self._piece = (elements.window.grid.largest_chunk or (1,))[-1] * self._item
        self._grid, self._staged = self._plan()
        self._kept_grid = self._plan_kept()
        # How many fit, and how many of them are made ahead of a lone reader.
        self._room, self._ahead, self._requests = 2, 1, 1.0
        if self._grid is not None and elements.count:
            first, last = self._grid.slab_at(0)
            size = (last - first) * self._item
            lendable = arena.lendable(elements.array.largest_load)
            self._room = max(1, min(2 * arena.largest, lendable) // size)
            ahead = _AHEAD_OF_WORKERS if elements.array.shares_memory else _AHEAD
            wanted, room = max(1, min(ahead // size, _MOST_AHEAD)), self._room
            if self._staged is not None:
                # Those that two requests cross: the kernel asks for the next one beside the first.
                wanted = 2 * (1 + -(-_LARGEST_REQUEST // size)) - 1
                room = max(1, (lendable - self._staged.decoding) // size)
            self._ahead = max(0, min(wanted, room - 1))
            self._requests = size / min(self._stored_bytes(), _REQUEST)
        self._slabs: OrderedDict[int, Slab] = OrderedDict()
        self._lock = Lock()
        self._readers = 0
        arena.add_borrower(self)

    def _plan(self) -> tuple[SlabGrid | None, StagedRows | None]:
        """Whole rows of chunks, as far as two of them fit; else parts of one, out of a file."""
        elements, arena = self._elements, self._arena
        # A slab is filled while others are lent out.
        lendable = arena.lendable(elements.array.largest_load)
        largest = min(arena.largest, lendable // 2)
        whole = SlabGrid.plan(elements.window, self._item, largest)
        row = SlabGrid.plan_row(elements.window)
        if whole is not None or row is None or not row.row or largest < _LEAST:
            return whole, None
        row = row.in_pieces(max(1, min(SMALL_SLAB, largest // 8) // self._item))
        staged = StagedRows.plan(elements, arena, row)
        if staged is None:
            return SlabGrid.plan(elements.window, self._item, lendable), None
        return row, staged

    def _plan_kept(self) -> SlabGrid | None:
        """Slabs of one row of chunks each, where it may pay to keep them.

        A chunk at a time is as good where chunks are few or threads decode them, and where some
        may be written to: slabs hold for one state of all of the array. Nothing is fetched
        unasked where requests cost money.
        """
        elements, array = self._elements, self._elements.array
        if self._grid is None or self._staged is not None or not elements.count:
            return None
        if not array.shares_memory or not array.array.store.cheap_stat:
            return None
        if isinstance(array, WritableArray) or array.largest_load > self._arena.never_lent:
            return None
        grid = self._grid._replace(rows=1)
        first, last = grid.slab_at(0)
        small = (last - first) * self._item <= _LARGEST_KEPT
        return grid if small and grid.chunks >= _FEWEST_KEPT else None

    def _stored_bytes(self) -> int:
        """Decoded bytes of a stored object."""
        layout = self._elements.array.array.layout
        return max(1, layout.spec(layout.stored.largest_chunk).nbytes)

    @property
    def possible(self) -> bool:
        """Whether this file has slabs that fit."""
        return self._grid is not None

    @property
    def ahead(self) -> int:
        """How many slabs to have made ahead of a reader, so that there is room for all readers.

        Of a store that is a round trip away, twice as many requests as it likes to have in flight:
        it finds out whether more of them are faster only where more wait.
        """
        wanted = self._ahead
        in_flight = self._elements.array.array.store.requests_at_once
        if in_flight > 1 and self._staged is None:
            wanted = max(wanted, math.ceil(_BEYOND * in_flight / self._requests))
        return max(0, min(wanted, self._room // max(1, self._readers) - 1))

    def enter(self) -> None:
        """One more reader streams: room for the slab it reads and those ahead of it."""
        self._readers += 1

    def leave(self) -> None:
        """One reader less; what it had is dropped."""
        self._readers -= 1
        self._trim()
        if self._staged is not None and not self._readers:
            self._staged.clear()

    def give_back(self) -> None:
        """Drop every slab that is complete."""
        with self._lock:
            for start in [slab.start for slab in self._slabs.values() if slab.data is not None]:
                del self._slabs[start]

    def recall(self, wanted: int, idle: float) -> int:
        """Drop slabs that are kept, least recently used first; see `Borrower.recall`."""
        freed = 0
        before = time.monotonic() - idle
        with self._lock:
            for slab in list(self._slabs.values()):
                if freed < wanted and slab.kept and slab.over and slab.used <= before:
                    freed += slab.stop - slab.start
                    del self._slabs[slab.start]
        return freed

    def worth_keeping(self, offset: int, size: int) -> bool:
        """Whether a read here and there should have a slab made which is then kept.

        It should where it crosses so many chunks that they are had sooner by scanning all of
        the slab, and where what is kept stays right for a while.
        """
        grid = self._kept_grid
        if grid is None or 2 * (size // self._piece + 2) < grid.chunks:
            return False
        if time.time_ns() - self._elements.array.freshness.changed_ns < _QUIET_NS:
            return False
        first, last = offset // self._item, -(-(offset + size) // self._item)
        return 2 * self._elements.count_chunks(first, last) >= grid.chunks

    def needed(self, offset: int, size: int) -> bool:
        """Whether a read that may begin a scan should be served from slabs at once.

        It should where it crosses most chunks of a row that memory has no room for: each read
        that follows would decode all of them again.
        """
        if self._staged is None or self._grid is None:
            return False
        first, last = offset // self._item, -(-(offset + size) // self._item)
        return 2 * self._elements.count_chunks(first, last) >= self._grid.chunks

    def at_hand(self, offset: int, size: int) -> memoryview | None:
        """Bytes of one complete slab, if there is such."""
        if not self._slabs or size <= 0:
            return None
        slab = self.ready(offset)
        if slab is None or slab.data is None or offset + size > slab.stop:
            return None
        return slab.data[offset - slab.start : offset + size - slab.start]

    def end(self, offset: int) -> int:
        """Where the slab that holds a byte ends."""
        assert self._grid is not None
        return self._grid.slab_at(offset // self._item)[1] * self._item

    def ready(self, offset: int) -> Slab | None:
        """The slab that holds a byte, if it is complete and current."""
        with self._lock:
            slab = self._find(offset)
            if slab is None or slab.data is None:
                return None
            self._slabs.move_to_end(slab.start)
            slab.read = True
            slab.used = time.monotonic()
            return slab

    def fetch(self, offset: int, then: Callable[[], None] | None, *, keep: bool = False) -> bool:
        """Have the slab that holds a byte made; False where that cannot be done now.

        keep : it is for reads here and there; see `worth_keeping`.
        then : called in any thread as soon as it is made or has failed, maybe at once.
        """
        grid = self._kept_grid if keep else self._grid
        assert grid is not None
        array = self._elements.array
        asked, made = then, False
        with self._lock:
            slab = self._find(offset)
            if slab is None:
                if not keep and not self._room_for_one(needed=then is not None) and then is None:
                    return False
                # There from now on, so that nobody else makes it, too.
                first, last = grid.slab_at(offset // self._item)
                slab = Slab(first * self._item, last * self._item, array.state, kept=keep)
                self._slabs[slab.start] = slab
                made = True
            if slab.failed:
                return False
            if slab.data is None and then is not None:
                slab.waiting.append(then)
                then = None
        if made:
            return self._make(slab, asked)
        if then is not None:
            then()
        return True

    def _find(self, offset: int) -> Slab | None:
        # There may be many that are kept.
        for grid in (self._grid, self._kept_grid):
            if grid is None:
                continue
            slab = self._slabs.get(grid.slab_at(offset // self._item)[0] * self._item)
            if slab is not None and slab.start <= offset < slab.stop:
                again = slab.kept and slab.failed and time.monotonic() - slab.used > _FAILED
                if slab.state == self._elements.array.state and not again:
                    return slab
                del self._slabs[slab.start]
        return None

    def _make(self, slab: Slab, asked: Callable[[], None] | None) -> bool:
        """Begin to fill a slab; False where there is no memory for it now.

        asked : who wants it, and is told by what this returns.
        """
        array = self._elements.array
        size = slab.stop - slab.start
        memory = self._lend(size, slab, needed=asked is not None)
        if memory is None:
            with self._lock:
                if self._slabs.get(slab.start) is slab:
                    del self._slabs[slab.start]
                slab.failed = True
                waiting, slab.waiting = slab.waiting, []
                busy = next((other for other in self._slabs.values() if not other.over), None)
                if busy is not None and asked is not None:
                    # There is memory again when that one has been made, and read.
                    busy.waiting.append(asked)
            for call in waiting:
                if call is not asked:
                    call()
            return busy is not None
        # Planning many chunks takes long, too long for the event loop.
        array.run(lambda: self._fill(slab, memory), ahead=asked is None)
        return True

    def _lend(self, size: int, slab: Slab, *, needed: bool) -> NDArray[np.uint8] | None:
        """Memory for a slab; one that is needed goes before those that are further ahead."""
        array = self._elements.array
        while True:
            memory = self._arena.lend(
                size, shared=array.shares_memory, keep=slab.kept, beside=array.largest_load
            )
            if memory is not None or not needed:
                return memory
            with self._lock:
                others = [one for one in self._slabs.values() if one.over and not one.kept]
                if self._staged is None:
                    # To make one again that is behind would decode all of its chunks again.
                    others = [one for one in others if one.finished or one.start > slab.start]
                if not others:
                    return None
                del self._slabs[max(others, key=lambda one: (one.finished, one.start)).start]

    def _fill(self, slab: Slab, memory: NDArray[np.uint8]) -> None:
        # Huge pages are for memory that is used again and again, and take their time.
        if not slab.kept:
            self._arena.back(memory)

        def done(error: ChunkError | None) -> None:
            with self._lock:
                slab.failed = error is not None
                slab.used = time.monotonic()
                if error is None:
                    slab.data = memory.data.toreadonly()
                waiting, slab.waiting = slab.waiting, []
            for call in waiting:
                call()

        first, last, ahead = slab.start // self._item, slab.stop // self._item, not slab.waiting
        if self._staged is not None:
            self._staged.fill(memory, first, last, done, ahead=ahead)
            return
        self._elements.scan(
            memory.view(self._elements.dtype), first, last, done, ahead=ahead, new_memory=slab.kept
        )

    def _room_for_one(self, *, needed: bool) -> bool:
        """Drop slabs for another one; False where that would cost more than it is good for.

        For whoever has the lock.

        needed : somebody waits for it.
        """
        # What somebody has read to its end goes first, and nothing else for what is made
        # ahead. Of the others, what is wanted last has to be made again.
        return self._drop(
            self._most - 1,
            lambda slab: (not slab.finished, slab.read, slab.used if slab.read else -slab.used),
            needed,
        )

    def _trim(self) -> None:
        """Drop what is beyond the slabs of all readers, least recently used first."""
        with self._lock:
            # What nobody has read yet was made ahead and is about to be.
            self._drop(self._most, lambda slab: (not slab.finished, not slab.read, 0.0), True)

    @property
    def _most(self) -> int:
        """Slabs that there may be for those who stream."""
        return min(max(self._room, self._readers), (1 + self.ahead) * self._readers)

    def _drop(
        self, most: int, order: Callable[[Slab], tuple[bool, bool, float]], anything: bool
    ) -> bool:
        """Drop slabs of those who stream; whether no more than ``most`` are left."""
        passing = [slab for slab in self._slabs.values() if not slab.kept]
        excess = len(passing) - most
        for slab in sorted((slab for slab in passing if slab.over), key=order):
            if excess <= 0 or not (anything or slab.finished):
                break
            del self._slabs[slab.start]
            excess -= 1
        return excess <= 0
