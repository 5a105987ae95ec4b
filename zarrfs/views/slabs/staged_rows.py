"""Rows of chunks that memory has no room for, assembled once in a scratch file.

A scan in file order returns to each chunk for every plane in it. If a row of chunks is larger than
memory, its chunks are decoded in *stripes*, blocks of some MiB. So each chunk is decoded once,
whatever its shape, and only when a read needs its stripe.

The scratch file contains stripe after stripe. The scan reads *pieces*, boxes of some MiB that are
contiguous in the array's file. Therefore the part of a piece in a stripe is contiguous, too.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import Block
from zarrfs.array.block_reader import scratch
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.cache.read.flights import Done, Flights, Keep, Ticket
from zarrfs.errors import ChunkError
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import contiguous, copy_elements, in_sequence
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Box, boxes
from zarrfs.views.slabs.slab_grid import SlabGrid
from zarrfs.views.slabs.stripe_grid import Part, StripeGrid

# Bytes of a stripe, and how many are decoded at once: one is decoded while another is written.
_STRIPE = 16 << 20
_AT_ONCE = 2
# Slabs for which there is always memory in addition to the stripes.
_SLABS = 4
# Rows in the file, the most that the disk has room for: the one that is read and the next. If rows
# are small, requests that overtake each other need more of them.
_ROWS = (4, 2)
# Times that a stripe is decoded again because a check for changes began meanwhile.
_AGAIN = 3
# Seconds that a stripe waits for memory.
_PATIENCE = 2.0
# Bytes that are written at once. For a longer write the kernel looks for pages as long: writes of
# 2 MiB took up to twice the processor time, and five times as long.
_WRITTEN = 128 << 10
# Bytes of one part that are read at most at once, before they are copied to their places.
_READ = 256 << 10


@dataclass(slots=True, eq=False, repr=False)
class _Stripe:
    """
    block : its chunks; the targets of its runs are places in the row.
    place : of its first byte in the file.
    check : the last one (`Freshness.checks`) before it was decoded; None: it is not being decoded.
    again : how often it was decoded again.
    done : whether the file contains it, as in the state of its row. Only then may it be read, as it
        is not written any more.
    """

    block: Block
    place: int
    check: int | None = None
    again: int = 0
    done: bool = False


@dataclass(slots=True, eq=False, repr=False)
class _Row:
    """
    box : in the window.
    place : of its first byte in the file.
    state : of the array when the row was begun; in any other state the row is out of date.
    users : number of reads that wait for some of its stripes.
    """

    box: Box
    place: int
    state: tuple[int, ...]
    grid: StripeGrid
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
        self._file = file
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
        self._due: deque[tuple[_Stripe, bool]] = deque()
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
            begin = np.subtract(piece.start, row.box.start).tolist()
            parts = list(row.grid.parts(begin, piece.shape))
            # A stripe that is complete stays so.
            wanted = [s for part in parts if not (s := row.stripes[part.stripe]).done]
            ticket = Ticket(len(wanted) + 1, partial(self._take, row, piece, parts, memory, done))
        except Exception:
            self._leave(row)
            raise
        for stripe in wanted:
            self._want(stripe, ticket, ahead=ahead)
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
        # If the file's axis order is not the array's, blocks may divide shards.
        layout = None if elements.reversed else elements.array.array.layout
        blocks = list(block.jobs(layout, self._most_chunks))
        grid = StripeGrid(len(box.shape), blocks)
        places = (place + grid.begins * self._item).tolist()
        return _Row(box, place, state, grid, list(map(_Stripe, blocks, places)))

    def _want(self, stripe: _Stripe, ticket: Ticket, *, ahead: bool) -> None:
        """Have a stripe decoded; ``ticket`` gets the result."""
        with self._lock:
            if not stripe.done:
                if self._flights.join(stripe, ticket):
                    self._due.append((stripe, ahead))
                elif stripe.check not in (None, self._elements.array.freshness.checks):
                    # The stripe may be older than the check, and its reader began after that.
                    self._flights.repeat([stripe])
                return
        ticket.finish()

    def _decode_due(self, failed: ChunkError | None = None) -> None:
        """Decode the stripes that are due, as many at once as there is memory for.

        failed : the reason why none of them can be decoded.
        """
        array = self._elements.array
        while True:
            with self._lock:
                if not self._due or (failed is None and self._busy >= max(1, self._at_once)):
                    return
                self._busy += 1
                stripe, ahead = self._due.popleft()
                stripe.check = array.freshness.checks
            try:
                if failed is not None:
                    raise failed
                decode = self._decode if self._at_once else self._decode_alone
                decode(stripe, ahead=ahead)
            except Exception as failure:  # noqa: BLE001 - the waiters must get an error
                self._end(stripe, array.failure(failure), ahead=ahead)

    def _decode(self, stripe: _Stripe, *, ahead: bool) -> None:
        elements = self._elements
        shape = stripe.block.part.shape
        memory = self._cache.lend_soon(
            math.prod(shape) * self._item,
            shared=elements.array.shares_memory,
            seconds=_PATIENCE,
            beside=elements.array.largest_load,
        )
        if memory is None:
            raise ChunkError(elements.array.array.path, "memory is short")
        target = memory.view(elements.dtype).reshape(shape)

        def done(error: ChunkError | None) -> None:
            try:
                if error is None:
                    self._write(stripe, target)
            except Exception as failure:  # noqa: BLE001 - the waiters must get an error
                error = elements.array.failure(failure)
            self._finish(stripe, error, ahead=ahead)

        elements.scan_block(stripe.block.moved(target), done, ahead=ahead)

    def _decode_alone(self, stripe: _Stripe, *, ahead: bool) -> None:
        """As `_decode`, for a stripe of one chunk that the arena has no room for."""
        elements = self._elements
        runs = [along[0] for along in stripe.block.runs]
        source = tuple([run.source for run in runs])

        def deliver(delivery: Delivery) -> None:
            for _, found in delivery:
                chunk = found.view(elements.carrier)
                self._write(stripe, (chunk.T if elements.reversed else chunk)[source])

        index = tuple([run.chunk for run in runs])
        index = index[::-1] if elements.reversed else index
        done = partial(self._finish, stripe, ahead=ahead)
        elements.array.request([index], deliver, done, keep=Keep.NO, ahead=ahead)

    def _finish(self, stripe: _Stripe, error: ChunkError | None, *, ahead: bool) -> None:
        self._end(stripe, error, ahead=ahead)
        # In another job: here each stripe would be decoded in a call nested in the one before.
        self._elements.array.in_thread(self._decode_due, self._decode_due, ahead=ahead)

    def _write(self, stripe: _Stripe, elements: Chunk) -> None:
        """Write the elements of a stripe, in its shape. Blocks. Raises OSError."""
        step = max(1, _WRITTEN // self._item)
        for first in range(0, elements.size, step):
            some = in_sequence(elements, first, min(first + step, elements.size))
            data = contiguous(some, self._elements.dtype).view(np.uint8).data
            self._file.write(stripe.place + first * self._item, data)

    def _end(self, stripe: _Stripe, error: ChunkError | None, *, ahead: bool) -> None:
        with self._lock:
            if stripe.check is None:
                return  # it has failed already
            self._busy -= 1
            array, check, stripe.check = self._elements.array, stripe.check, None
            if error is None and check != array.freshness.checks:
                # The stripe may be older than the check, and readers that began after it may wait.
                error = ChunkError(array.array.path, "is checked for changes too often")
                if stripe.again < _AGAIN:
                    stripe.again += 1
                    self._flights.repeat([stripe])
            waiting = self._flights.end(stripe)
            if waiting is None:
                self._due.append((stripe, ahead))
                return
            stripe.done = error is None
        for ticket in waiting:
            ticket.finish(error=error)

    def _take(
        self,
        row: _Row,
        piece: Box,
        parts: Sequence[Part],
        memory: NDArray[np.uint8],
        done: Done,
        error: ChunkError | None,
    ) -> None:
        """All stripes are complete, or one failed: read the piece into ``memory``."""
        elements = self._elements
        try:
            if error is None:
                target = elements.box_target(memory.view(elements.dtype), piece.position, piece)
                for _, place, where in parts:
                    self._read_part(row.place + place * self._item, target[where])
        except Exception as failure:  # noqa: BLE001 - the waiting reader must get an error
            error = elements.array.failure(failure)
        self._leave(row)
        done(error)

    def _read_part(self, place: int, target: Chunk) -> None:
        """Read one part, from a byte of the file on. Blocks. Raises OSError."""
        if target.flags.c_contiguous:
            self._file.read(place, target.reshape(-1).view(np.uint8).data)
            return
        while len(target) == 1:
            target = target[0]
        if target.nbytes > _READ:
            # In halves: nobody has reserved memory for another copy of the whole part.
            half = target[: len(target) // 2]
            self._read_part(place, half)
            self._read_part(place + half.nbytes, target[len(half) :])
            return
        memory = scratch(target.nbytes)
        self._file.read(place, memory)
        copy_elements(np.frombuffer(memory, target.dtype).reshape(target.shape), target)
