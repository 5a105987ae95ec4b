"""Rows of chunks that memory has no room for, assembled once in a scratch file.

A scan in file order returns to each chunk for every plane in it. If a row of chunks is larger than
memory, its chunks are decoded in *stripes*, blocks of some MiB. So each chunk is decoded once,
whatever its shape, and only when a read needs its stripe.

The scan reads *pieces*, boxes of some MiB that are contiguous in the array's file. The scratch file
contains piece after piece, and within each piece its part of the first stripe, then its part of the
second stripe and so on. A part is contiguous in the memory of its stripe. So the number of writes
depends on the number of stripes and pieces, and not on how short the rows of a chunk are.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import Block
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.cache.read.flights import Done, Flights, Keep, Ticket
from zarrfs.errors import ChunkError
from zarrfs.format.codec import Chunk
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Box, boxes
from zarrfs.views.slabs.row_file import RowFile, RowPlace
from zarrfs.views.slabs.slab_grid import SlabGrid
from zarrfs.views.slabs.stripe_grid import Strip, StripeGrid

# Bytes of a stripe, and how many are decoded at once: one is decoded while another is written.
_STRIPE = 16 << 20
_AT_ONCE = 2
# Slabs for which there is always memory in addition to the stripes.
_SLABS = 4
# Rows in the file, the most that the disk has room for: the one that is read and the next. If rows
# are small, requests that overtake each other need more of them.
_ROWS = (4, 2)
# Seconds that a stripe waits for memory.
_PATIENCE = 2.0
# Seconds until a stripe that could not be decoded is tried again.
_FAILED = 10.0
# Times that a stripe is decoded again because a check for changes began meanwhile.
_AGAIN = 3


@dataclass(slots=True, eq=False, repr=False)
class _Stripe:
    """
    block : its chunks; the targets of its runs are places in the row.
    number : of the stripe in its row.
    check : the last one (`Freshness.checks`) before it was decoded.
    again : how often it was decoded again.
    error, failed : why it could not be decoded, and when (`time.monotonic`).
    """

    block: Block
    number: int
    check: int = 0
    again: int = 0
    done: bool = False
    error: ChunkError | None = None
    failed: float = 0.0


@dataclass(slots=True, eq=False, repr=False)
class _Row:
    """
    place : where it lies.
    state : of the array when the row was begun; in any other state the row is out of date.
    users : number of reads that wait for some of its stripes.
    """

    place: RowPlace
    state: tuple[int, ...]
    stripes: list[_Stripe]
    users: int = 0


class StagedRows:
    """The rows of one flat file.

    decoding : the most bytes of the arena that stripes take while they are decoded; 0 if each
        stripe is one chunk, in the memory that loading it takes anyway.

    Shared state, under the lock: ``_rows`` by first element, least recently used first, with their
    stripes and users; ``_flights``, the stripes that reads wait for or that are loaded ahead, of
    which those in ``_due`` are not being decoded yet; ``_busy``, how many are being decoded;
    ``_read``, whether there are readers. A row takes the place of another one in the file only when
    the other has no users. Rows are no entries of the cache: they take disk space, and no memory
    that the cache could reclaim.

    To decode stripes of the next row while a lone reader read one took 0.85 to 1.11 of the time
    over 13 arrays, with a median of 0.97: reading takes both processors already.
    """

    def __init__(
        self, elements: Elements, cache: BlockCache, grid: SlabGrid, file: ScratchFile, rows: int
    ) -> None:
        """
        grid : its slabs are pieces of rows.
        rows : how many the file has room for.
        """
        self._elements = elements
        self._cache = cache
        arena = cache.arena
        self._rows_grid = grid._replace(piece=0)
        self._cut, self._thick = grid.cut, grid.thick
        self._file = RowFile(file, elements.dtype)
        self._item = elements.dtype.itemsize
        self._places = [number * grid.row * self._item for number in range(rows)]
        chunk = max(1, math.prod(elements.window.grid.largest_chunk) * self._item)
        # In addition to a few slabs that are lent out.
        slabs = _SLABS * grid.piece * self._item
        room = arena.lendable(elements.array.largest_load) - slabs
        most = min(_STRIPE, room // _AT_ONCE)
        count = self._most_chunks = max(1, most // chunk)
        self._at_once = min(_AT_ONCE, max(0, room) // (count * chunk))
        # A slab that has no memory while stripes are decoded is read chunk by chunk.
        memory = elements.array.scan_memory
        total = cache.budget.total - slabs
        while (
            self._at_once > 1
            and self._at_once * count * chunk + memory(count, self._at_once) > total
        ):
            self._at_once -= 1
        self.decoding = self._at_once * self._most_chunks * chunk
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._flights: Flights[_Stripe, Ticket] = Flights()
        self._due: deque[tuple[_Row, _Stripe, bool]] = deque()
        self._busy = 0
        self._read = False
        self._lock = ranked_lock(Rank.STAGED_ROWS)

    @classmethod
    def plan(cls, elements: Elements, cache: BlockCache, grid: SlabGrid) -> StagedRows | None:
        """The rows of a file; None if the disk has no room for them."""
        item = elements.dtype.itemsize
        if (directory := cache.arena.spill_directory) is None:
            return None
        file = ScratchFile(directory)
        for rows in _ROWS:
            if file.has_room(rows * grid.row * item):
                return cls(elements, cache, grid, file, rows)
        return None

    def fill(
        self, memory: NDArray[np.uint8], first: int, last: int, done: Done, *, ahead: bool
    ) -> None:
        """Get elements ``first`` to ``last`` (exclusive), one piece; then ``done``, in any thread.

        ahead : no reader waits for them yet.
        """
        row = self._enter(first)
        if row is None:
            done(ChunkError(self._elements.array.array.path, "rows of chunks are being read"))
            return
        try:
            (piece,) = boxes(self._elements.window.shape, first, last)
            begin = np.subtract(piece.start, row.place.box.start).tolist()
            crossed, strips = row.place.grid.crossed(begin, piece.shape)
            # A stripe that is complete stays so.
            wanted = [row.stripes[number] for number in crossed if not row.stripes[number].done]
            take = partial(self._take, row, piece, strips, memory, done)
            ticket = Ticket(len(wanted) + 1, take)
        except Exception:
            self._leave(row)
            raise
        for stripe in wanted:
            self._want(row, stripe, ticket, ahead=ahead)
        self._decode_due()
        ticket.finish()

    def enter(self) -> None:
        """There are readers: rows stay in the file."""
        with self._lock:
            self._read = True

    def clear(self) -> None:
        """There are no readers any more: free the space in the file."""
        with self._lock:
            self._read = False
            self._clear()

    def _clear(self) -> None:
        """Free the space of rows without users, if there are no readers. With the lock held."""
        if self._read:
            return
        for start in [start for start, row in self._rows.items() if not row.users]:
            del self._rows[start]
        if not self._rows:
            self._file.clear()

    def _enter(self, first: int) -> _Row | None:
        """The row with an element, with one more user; None if the file has no place for it."""
        start, stop = self._rows_grid.slab_at(first)
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

    def _leave(self, row: _Row) -> None:
        """A row has one user less."""
        with self._lock:
            row.users -= 1
            self._clear()

    def _place(self, outdated: _Row | None) -> int | None:
        """A place for another row, that of ``outdated`` if given. With the lock held."""
        if outdated is not None:
            return None if outdated.users else outdated.place.start
        if len(self._rows) < len(self._places):
            taken = {row.place.start for row in self._rows.values()}
            return next(place for place in self._places if place not in taken)
        for start, row in self._rows.items():
            if not row.users:
                del self._rows[start]
                return row.place.start
        return None

    def _plan_row(self, start: int, stop: int, place: int, state: tuple[int, ...]) -> _Row:
        elements = self._elements
        window = elements.window
        (box,) = boxes(window.shape, start, stop)
        whole = np.broadcast_to(np.zeros((), elements.dtype), box.shape)
        block = Block(tuple(window.runs(box)), whole, elements.carrier)
        # If the file's axis order is not the array's, blocks may divide shards.
        layout = None if elements.reversed else elements.array.array.layout
        blocks = list(block.jobs(layout, self._most_chunks))
        low = np.array([[runs[0].target.start for runs in part.runs] for part in blocks], np.int64)
        high = np.array([[runs[-1].target.stop for runs in part.runs] for part in blocks], np.int64)
        rank = len(box.shape)
        stripes = [_Stripe(part, number) for number, part in enumerate(blocks)]
        grid = StripeGrid(
            box.shape, self._cut, self._thick, low.reshape(-1, rank), high.reshape(-1, rank)
        )
        return _Row(RowPlace(box, place, grid), state, stripes)

    def _want(self, row: _Row, stripe: _Stripe, ticket: Ticket, *, ahead: bool) -> None:
        """Have a stripe decoded; ``ticket`` gets the result."""
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
                if not self._due or self._busy >= max(1, self._at_once):
                    return
                self._busy += 1
                row, stripe, ahead = self._due.popleft()
                stripe.check = self._elements.array.freshness.checks
            decode = self._decode if self._at_once else self._decode_alone
            try:
                decode(row, stripe, ahead=ahead)
            except Exception as failure:  # noqa: BLE001 - the waiters must get an error
                self._end(stripe, self._elements.array.failure(failure))

    def _fail_due(self, error: ChunkError) -> None:
        """Stripes cannot be decoded: those that are due have failed."""
        while True:
            with self._lock:
                if not self._due:
                    return
                self._busy += 1
                _, stripe, _ = self._due.popleft()
            self._end(stripe, error)

    def _decode(self, row: _Row, stripe: _Stripe, *, ahead: bool) -> None:
        elements = self._elements
        shape = [runs[-1].target.stop - runs[0].target.start for runs in stripe.block.runs]
        memory = self._cache.lend_soon(
            math.prod(shape) * self._item,
            shared=elements.array.shares_memory,
            seconds=_PATIENCE,
            beside=elements.array.largest_load,
        )
        if memory is None:
            self._end(stripe, ChunkError(elements.array.array.path, "memory is short"))
            return

        target = memory.view(elements.dtype).reshape(shape)

        def done(error: ChunkError | None) -> None:
            self._finish(row, stripe, error or self._write(row, stripe, target), ahead=ahead)

        elements.scan_block(stripe.block.moved(target), done, ahead=ahead)

    def _decode_alone(self, row: _Row, stripe: _Stripe, *, ahead: bool) -> None:
        """As `_decode`, for a stripe of one chunk that the arena has no room for."""
        elements = self._elements
        runs = [along[0] for along in stripe.block.runs]
        source = tuple([run.source for run in runs])
        errors: list[ChunkError | None] = []

        def deliver(delivery: Delivery) -> None:
            for _, found in delivery:
                chunk = found.view(elements.carrier)
                chunk = (chunk.T if elements.reversed else chunk)[source]
                errors.append(self._write(row, stripe, chunk))

        def done(error: ChunkError | None) -> None:
            error = next(filter(None, [error, *errors]), None)
            self._finish(row, stripe, error, ahead=ahead)

        index = tuple([run.chunk for run in runs])
        index = index[::-1] if elements.reversed else index
        elements.array.request([index], deliver, done, keep=Keep.NO, ahead=ahead)

    def _finish(self, row: _Row, stripe: _Stripe, error: ChunkError | None, *, ahead: bool) -> None:
        array = self._elements.array
        if error is None and row.state == array.state and stripe.check != array.freshness.checks:
            # The stripe may be older than the check, and slabs that began after it may wait for it.
            if again := stripe.again < _AGAIN:
                stripe.again += 1
                with self._lock:
                    self._busy -= 1
                    self._due.appendleft((row, stripe, ahead))
            error = ChunkError(array.array.path, "is checked for changes too often")
        else:
            again = False
        if not again:
            self._end(stripe, error)
        # In another job: here each stripe would be decoded in a call nested in the one before.
        self._elements.array.in_thread(self._decode_due, self._fail_due, ahead=ahead)

    def _write(self, row: _Row, stripe: _Stripe, elements: Chunk) -> ChunkError | None:
        """Write the parts of a stripe to their pieces; returns the error, if any. Blocks."""
        path = self._elements.array.array.path
        try:
            self._file.write(row.place, stripe.number, elements)
        except OSError as failure:
            return ChunkError(path, f"decoded chunks cannot be kept: {failure.strerror}")
        except Exception as failure:  # noqa: BLE001 - the waiters must get an error
            return self._elements.array.failure(failure)
        return None

    def _end(self, stripe: _Stripe, error: ChunkError | None) -> None:
        with self._lock:
            if stripe not in self._flights:
                return  # it has failed already
            self._busy -= 1
            stripe.done = error is None
            stripe.error, stripe.failed = error, time.monotonic()
            waiting = self._flights.end(stripe) or []
        for ticket in waiting:
            ticket.finish(error=error)

    def _take(
        self,
        row: _Row,
        piece: Box,
        strips: Sequence[Strip],
        memory: NDArray[np.uint8],
        done: Done,
        error: ChunkError | None,
    ) -> None:
        """All stripes are complete, or one failed: read the piece into ``memory``."""
        if error is None:
            try:
                elements = self._elements
                target = elements.box_target(memory.view(elements.dtype), piece.position, piece)
                self._file.read(row.place, piece, strips, target)
            except OSError as failure:
                reason = f"decoded chunks are gone: {failure.strerror}"
                error = ChunkError(self._elements.array.array.path, reason)
            except Exception as failure:  # noqa: BLE001 - the waiting reader must get an error
                error = self._elements.array.failure(failure)
        self._leave(row)
        done(error)
