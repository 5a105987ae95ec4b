"""Whole rows of chunks, assembled once and served as they are.

A scan of ``array.bin`` passes each chunk once for every plane it holds. Where a row
of chunks along the slowest axes (a *slab*) is contiguous in the file and fits, it is
put together in one go: each chunk is decoded once, copied once and not kept, and
reads are slices of the slab.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.arena import Arena
from zarrfs.cache.spill import Spill
from zarrfs.errors import ChunkError
from zarrfs.views.elements import Elements
from zarrfs.views.slab_grid import SMALL_SLAB, SlabGrid


@dataclass(slots=True)
class Slab:
    """Bytes ``start`` to ``stop`` of a file.

    state : of the array when it was begun; in another one it is out of date.
    data : None until they are there; then read-only.
    failed : whether some chunk of it could not be had.
    read : whether somebody has read of it.
    waiting : called, in any thread, once either is decided.
    """

    start: int
    stop: int
    state: tuple[int, ...]
    data: memoryview | None = None
    failed: bool = False
    read: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)


class Slabs:
    """The slabs of one flat file, shared by all who read it.

    Shared state, under the lock: ``_slabs`` by first byte in order of use, and each
    slab's ``waiting``. Memory goes back to the arena when a slab is dropped here and
    the last reply made of it has been sent.

    ahead : how many slabs to have made ahead of a reader.
    """

    def __init__(self, elements: Elements, arena: Arena) -> None:
        self._elements = elements
        self._item = elements.dtype.itemsize
        self._arena = arena
        self._grid = None
        # A slab is filled while others are lent out.
        if elements.array.largest_load <= arena.kept_back:
            self._grid = SlabGrid.plan(elements.window, self._item, arena.largest)
        self._spill: Spill | None = None
        if self._grid is None and not elements.reversed:
            self._plan_spill()
        self.ahead = 1
        if self._grid is not None and elements.count:
            first, last = self._grid.slab_at(0)
            # While one is copied out of and one is finished, loaders need a third.
            self.ahead += 3 * (last - first) * self._item <= 2 * arena.largest
        self._slabs: OrderedDict[int, Slab] = OrderedDict()
        self._lock = Lock()
        self._readers = 0
        arena.add_borrower(self)

    def _plan_spill(self) -> None:
        """Where one row of chunks is more than all memory: parts of it, and a file for the rest."""
        elements, arena = self._elements, self._arena
        window = elements.window
        if arena.spill_directory is None or elements.array.largest_load > arena.kept_back:
            return
        # Of a small slab each chunk is read in small parts.
        thin = SlabGrid.plan_thin(window, self._item, min(arena.largest, SMALL_SLAB))
        if thin is None or thin.row * self._item <= arena.kept_back:
            return
        self._grid = thin
        chunks = math.prod(axis.count for axis in window.grid.axes[thin.axis + 1 :])
        largest = math.prod(window.grid.largest_chunk) * self._item
        self._spill = Spill(arena.spill_directory, 2 * chunks, largest)

    @property
    def possible(self) -> bool:
        """Whether this file has slabs that fit."""
        return self._grid is not None

    def enter(self) -> None:
        """One more reader streams: room for the slab it reads and those ahead of it."""
        self._readers += 1

    def leave(self) -> None:
        """One reader less; what it had is dropped."""
        self._readers -= 1
        self._trim(0)
        if self._spill is not None and not self._readers:
            self._spill.clear()

    def give_back(self) -> None:
        """Drop every slab that is complete."""
        with self._lock:
            for start in [slab.start for slab in self._slabs.values() if slab.data is not None]:
                del self._slabs[start]

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
            return slab

    def fetch(self, offset: int, then: Callable[[], None] | None) -> bool:
        """Have the slab that holds a byte made; False where that cannot be done now.

        then : called in any thread as soon as it is made or has failed, maybe at once.
        """
        with self._lock:
            slab = self._find(offset)
            if slab is not None:
                if slab.failed:
                    return False
                if slab.data is None:
                    if then is not None:
                        slab.waiting.append(then)
                    return True
        if slab is None:
            return self._make(offset, then)
        if then is not None:
            then()
        return True

    def _find(self, offset: int) -> Slab | None:
        for slab in self._slabs.values():
            if slab.start <= offset < slab.stop:
                if slab.state == self._elements.array.state:
                    return slab
                del self._slabs[slab.start]
                return None
        return None

    def _make(self, offset: int, then: Callable[[], None] | None) -> bool:
        assert self._grid is not None
        first, last = self._grid.slab_at(offset // self._item)
        self._trim(1)
        size = (last - first) * self._item
        memory = self._arena.lend(size, shared=self._elements.array.decodes_apart)
        if memory is None:
            return False
        slab = Slab(first * self._item, last * self._item, self._elements.array.state)
        if then is not None:
            slab.waiting.append(then)
        with self._lock:
            self._slabs[slab.start] = slab
        # Planning many chunks takes long, too long for the event loop.
        self._elements.array.run(lambda: self._fill(slab, memory), ahead=then is None)
        return True

    def _fill(self, slab: Slab, memory: NDArray[np.uint8]) -> None:
        self._arena.back(memory)

        def done(error: ChunkError | None) -> None:
            with self._lock:
                slab.failed = error is not None
                if error is None:
                    slab.data = memory.data.toreadonly()
                waiting, slab.waiting = slab.waiting, []
            for call in waiting:
                call()

        self._elements.scan(
            memory.view(self._elements.dtype),
            slab.start // self._item,
            slab.stop // self._item,
            done,
            ahead=not slab.waiting,
            spill=self._spill,
        )

    def _trim(self, coming: int) -> None:
        """Drop what is beyond the slabs of each reader, least recently used first.

        What nobody has read yet was made ahead and is about to be.
        """
        with self._lock:
            done = [s for s in self._slabs.values() if s.data is not None or s.failed]
            done.sort(key=lambda slab: not slab.read)
            kept = (1 + self.ahead) * self._readers
            for slab in done[: max(0, len(self._slabs) + coming - kept)]:
                del self._slabs[slab.start]
