"""Rows of chunks that memory has no room for, put together once in a file.

A scan in file order comes back to each chunk for every plane in it. Where a row of chunks is
larger than memory, its chunks are decoded in *stripes*, blocks of some MiB, of which each plane's
part is written to its place in the file. So each chunk is decoded once, whatever its shape, and
only when something of its stripe is asked for.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import Block
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.flights import Flights
from zarrfs.errors import ChunkError
from zarrfs.jobs.ticket import Done, Ticket
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Box, boxes
from zarrfs.views.slabs.slab_grid import SlabGrid

# Bytes of a stripe, and how many are decoded at once: while one is written, another is decoded.
_STRIPE = 16 << 20
_AT_ONCE = 2
# Bytes below which a call to write them costs more than they do.
_SHORT_RUN = 4096
# Rows in the file, the most that the disk has room for: the one that is read and the next; where
# rows are small, requests that overtake each other are of more of them.
_ROWS = (4, 2)
# Seconds that a stripe waits for memory.
_PATIENCE = 2.0
# Seconds until a stripe that could not be decoded is tried again.
_FAILED = 10.0


@dataclass(slots=True, eq=False, repr=False)
class _Stripe:
    """
    block : its chunks; the targets of its runs are places in the row.
    error, failed : why it could not be had, and when, as `time.monotonic` counts.
    """

    block: Block
    done: bool = False
    error: ChunkError | None = None
    failed: float = 0.0

    def overlaps(self, box: Box, origin: Sequence[int]) -> bool:
        """Whether it holds part of a box of the window, in which the row begins at ``origin``."""
        return all(
            runs[0].target.start < start - first + length and start - first < runs[-1].target.stop
            for runs, start, length, first in zip(
                self.block.runs, box.start, box.shape, origin, strict=True
            )
        )


@dataclass(slots=True, eq=False, repr=False)
class _Row:
    """
    box : the row in the window.
    place : of its first byte in the file.
    state : of the array when it was begun; in another one it is out of date.
    users : reads that wait for some of its stripes.
    """

    box: Box
    place: int
    state: tuple[int, ...]
    stripes: list[_Stripe]
    users: int = 0
    strides: list[int] = field(default_factory=list)


class StagedRows:
    """The rows of one flat file.

    decoding : the most bytes of the arena that stripes take while they are decoded.

    Shared state, under the lock: ``_rows`` by first element, least recently used first, with
    their stripes and users; ``_flights``, stripes that somebody wants, of which those in ``_due``
    wait to be decoded; ``_busy``, how many are. A row's place in the file is another row's only
    when nobody uses it. Rows are no entries of the cache: they take disk, and no memory that it
    could reclaim.
    """

    def __init__(
        self, elements: Elements, cache: BlockCache, grid: SlabGrid, file: ScratchFile, rows: int
    ) -> None:
        """
        grid : its slabs are the rows.
        rows : how many the file has room for.
        """
        self._elements = elements
        self._cache = cache
        self._grid = grid
        self._file = file
        self._item = elements.dtype.itemsize
        self._places = [number * grid.row * self._item for number in range(rows)]
        chunk = math.prod(elements.window.grid.largest_chunk) * self._item
        self._most_chunks = max(1, min(_STRIPE, cache.arena.largest // 4) // max(1, chunk))
        self.decoding = _AT_ONCE * self._most_chunks * chunk
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._flights: Flights[_Stripe, Ticket] = Flights()
        self._due: deque[tuple[_Row, _Stripe, bool]] = deque()
        self._busy = 0
        self._lock = ranked_lock(Rank.STAGED_ROWS)

    @classmethod
    def plan(cls, elements: Elements, cache: BlockCache, grid: SlabGrid) -> StagedRows | None:
        """None where there is no disk for them, or a chunk is too large to be put together."""
        item = elements.dtype.itemsize
        chunk = math.prod(elements.window.grid.largest_chunk) * item
        arena = cache.arena
        if arena.spill_directory is None or chunk > arena.largest_alone // 2:
            return None
        file = ScratchFile(arena.spill_directory)
        for rows in _ROWS:
            if file.has_room(rows * grid.row * item):
                return cls(elements, cache, grid, file, rows)
        return None

    def fill(
        self, memory: NDArray[np.uint8], first: int, last: int, done: Done, *, ahead: bool
    ) -> None:
        """Elements ``first`` to ``last`` (exclusive) of one row; then ``done``, in any thread.

        ahead : nobody waits for them yet.
        """
        row = self._enter(first)
        if row is None:
            done(ChunkError(self._elements.array.array.path, "rows of chunks are being read"))
            return
        shape = self._elements.window.shape
        parts = list(boxes(shape, first, last))
        wanted = [
            stripe
            for stripe in row.stripes
            if any(stripe.overlaps(part, row.box.start) for part in parts)
        ]
        place = row.place + (first - row.box.position) * self._item
        ticket = Ticket(len(wanted) + 1, partial(self._take, row, place, memory, done))
        for stripe in wanted:
            self._want(row, stripe, ticket, ahead=ahead)
        self._decode_due()
        ticket.finish()

    def clear(self) -> None:
        """Nobody reads any more: give the space back."""
        with self._lock:
            for start in [start for start, row in self._rows.items() if not row.users]:
                del self._rows[start]
            if not self._rows:
                self._file.clear()

    def _enter(self, first: int) -> _Row | None:
        """The row that holds an element, in use; None where there is no place for it."""
        start, stop = self._grid.slab_at(first)
        state = self._elements.array.state
        with self._lock:
            row = self._rows.get(start)
            if row is None or row.state != state:
                if (place := self._place(row)) is None:
                    return None
                row = self._rows[start] = self._plan_row(start, stop, place, state)
            self._rows.move_to_end(start)
            row.users += 1
            return row

    def _place(self, outdated: _Row | None) -> int | None:
        """Where another row can be, in place of ``outdated`` if given; with the lock held."""
        if outdated is not None:
            return None if outdated.users else outdated.place
        if len(self._rows) < len(self._places):
            taken = {row.place for row in self._rows.values()}
            return next(place for place in self._places if place not in taken)
        for start, row in self._rows.items():
            if not row.users:
                del self._rows[start]
                return row.place
        return None

    def _plan_row(self, start: int, stop: int, place: int, state: tuple[int, ...]) -> _Row:
        elements = self._elements
        window = elements.window
        (box,) = boxes(window.shape, start, stop)
        whole = np.broadcast_to(np.zeros((), elements.dtype), box.shape)
        block = Block(tuple(window.runs(box)), whole, elements.carrier)
        # Axes in another order than the array's are cut in the order of the file.
        layout = None if elements.reversed else elements.array.array.layout
        stripes = [_Stripe(part) for part in block.jobs(layout, self._most_chunks)]
        strides = [self._item * math.prod(box.shape[axis + 1 :]) for axis in range(len(box.shape))]
        return _Row(box, place, state, stripes, strides=strides)

    def _want(self, row: _Row, stripe: _Stripe, ticket: Ticket, *, ahead: bool) -> None:
        """Have a stripe decoded, and ``ticket`` told when it is."""
        with self._lock:
            failed = stripe.error is not None and time.monotonic() < stripe.failed + _FAILED
            if not stripe.done and not failed:
                if self._flights.join(stripe, ticket):
                    self._due.append((row, stripe, ahead))
                return
        ticket.finish(error=stripe.error)

    def _decode_due(self) -> None:
        while True:
            with self._lock:
                if not self._due or self._busy >= _AT_ONCE:
                    return
                self._busy += 1
                row, stripe, ahead = self._due.popleft()
            self._decode(row, stripe, ahead=ahead)

    def _decode(self, row: _Row, stripe: _Stripe, *, ahead: bool) -> None:
        elements = self._elements
        shape = [runs[-1].target.stop - runs[0].target.start for runs in stripe.block.runs]
        memory = self._cache.lend_soon(
            math.prod(shape) * self._item, shared=elements.array.decodes_apart, seconds=_PATIENCE
        )
        if memory is None:
            self._end(stripe, ChunkError(elements.array.array.path, "memory is short"))
            return

        def done(error: ChunkError | None) -> None:
            if error is None:
                try:
                    self._write(row, stripe, memory)
                except OSError as failure:
                    reason = f"decoded chunks cannot be kept: {failure.strerror}"
                    error = ChunkError(elements.array.array.path, reason)
            self._end(stripe, error)
            # Not from here, where each stripe would be decoded within the one before it.
            elements.array.run(self._decode_due, ahead=ahead)

        target = memory.view(elements.dtype).reshape(shape)
        try:
            elements.scan_block(stripe.block.moved(target), done, ahead=ahead)
        except Exception as failure:  # noqa: BLE001 - whoever waits for the stripe must be told
            self._end(stripe, ChunkError(elements.array.array.path, f"failed: {failure!r}"))

    def _write(self, row: _Row, stripe: _Stripe, memory: NDArray[np.uint8]) -> None:
        """Bring the parts of a stripe that lie together in the row to their places. Blocks."""
        spans = [range(runs[0].target.start, runs[-1].target.stop) for runs in stripe.block.runs]
        whole = len(spans)
        while whole and len(spans[whole - 1]) == row.box.shape[whole - 1]:
            whole -= 1
        # Of the innermost axis that is not whole, what there is lies together.
        outer = max(0, whole - 1)
        first = row.place + (spans[outer].start * row.strides[outer] if spans else 0)
        size = len(memory) // max(1, math.prod(map(len, spans[:outer])))
        if size < _SHORT_RUN and outer:
            shape = [*map(len, spans[:outer]), size]
            start = first + sum(
                s.start * n for s, n in zip(spans[:outer], row.strides, strict=False)
            )
            self._file.write_strided(start, memory.reshape(shape), row.strides[:outer])
            return
        for number, index in enumerate(product(*spans[:outer])):
            offset = first + sum(map(int.__mul__, index, row.strides))
            self._file.write(offset, memory.data[number * size : (number + 1) * size])

    def _end(self, stripe: _Stripe, error: ChunkError | None) -> None:
        with self._lock:
            self._busy -= 1
            stripe.done = error is None
            stripe.error, stripe.failed = error, time.monotonic()
            waiting = self._flights.end(stripe) or []
        for ticket in waiting:
            ticket.finish(error=error)

    def _take(
        self,
        row: _Row,
        place: int,
        memory: NDArray[np.uint8],
        done: Done,
        error: ChunkError | None,
    ) -> None:
        """All stripes are there, or one failed: read what was asked for."""
        if error is None:
            try:
                self._file.read(place, memory.data)
            except OSError as failure:
                reason = f"decoded chunks are gone: {failure.strerror}"
                error = ChunkError(self._elements.array.array.path, reason)
        with self._lock:
            row.users -= 1
        done(error)
