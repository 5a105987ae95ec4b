"""The elements of a window, in file order, copied from the chunks that contain them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import Block
from zarrfs.cache.read.array_chunks import NotCached
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.cache.read.flights import Done, Keep
from zarrfs.cache.read.part_reads import Wanted
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import plain_type
from zarrfs.format.data_type import DataType
from zarrfs.views.elements.portions import MOST_CHUNKS, one_after_another, portions
from zarrfs.views.elements.rows import CutReply, Cuts, Rows, as_reply, cut
from zarrfs.views.elements.window import Box, ChunkRow, Copy, Slices, Window, boxes
from zarrfs.views.view import Answer, Data

# A chunk is not brought into order for a read of at most one in so many of its bytes, as bringing a
# byte into order costs as much for the read as for the chunk.
_SMALL_PART = 8
# Pieces that are cut from chunks as they come. A box of NumPy costs a few times as much as a piece,
# but holds all pieces of a chunk: with four pieces in each of 16 chunks, reads took 10 % longer.
_FEW_PIECES = 16
MOST_NOW = 512
"""Chunks from which the event loop copies for one read, at up to 30 µs each."""


class FlatConfig(NamedTuple):
    """The layout of elements: their byte order, and which axis is fastest."""

    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"


class Elements:
    """Elements of a window of an array, numbered in file order.

    dtype : of the memory that elements are copied into. It carries their bytes in the file's byte
        order and need not be their own data type.
    carrier : the data type through which elements are copied from and to chunks.
    window : the part of the array, in the file's axis order.
    reversed : whether the first axis of the array is fastest in the file.
    only : the chunk whose bytes in C order are those of the file; None if there is no such chunk.
    """

    def __init__(self, array: CachedArray, window: Window, config: FlatConfig) -> None:
        """``window`` is in the array's own axis order, also if ``config.order`` is ``F``."""
        self.array = array
        self._given = window, config
        self.reversed = config.order == "F"
        self.window = window = window.transposed if self.reversed else window
        layout = array.array.layout
        self.carrier, self.dtype = _carriers(layout.data_type, config.byteorder)
        as_in_memory = not self.reversed and self.carrier == self.dtype
        self._rows = None
        self.only: Index | None = None
        if as_in_memory and layout.data_type.fixed_size:
            if Rows.fits(window):
                self._rows = Rows(window, self.dtype.itemsize, array.get_data)
            self.only = window.only_chunk

    def box(self, start: Index, shape: Shape) -> Elements:
        """The elements of a box of the window, ``start`` and ``shape`` relative to the window."""
        window, config = self._given
        if self.reversed:
            start, shape = start[::-1], shape[::-1]
        origin = tuple(o + s for o, s in zip(window.origin, start, strict=True))
        return Elements(self.array, Window(window.grid, origin, shape), config)

    @property
    def count(self) -> int:
        return self.window.elements

    @cached_property
    def _fill(self) -> NDArray[Any]:
        layout = self.array.array.layout
        return layout.data_type.element(layout.fill).view(self.carrier)

    def get_bytes(self, start: int, stop: int) -> Data | None:
        """The bytes from ``start`` to ``stop`` (exclusive, not equal) of chunks in memory.

        None if `get` may have them, or is faster, as for many pieces. Raises NotCached.
        """
        if self.only is not None:
            only = self.array.get_data((self.only,))
            return None if only is None else only[0][start:stop]
        if self._rows is None or (cuts := self._rows.cuts(start, stop)) is None:
            return None
        indices, parts = list(cuts.chunks), cuts.parts
        if (data := self.array.get_data(indices)) is not None:
            found: list[Data] = [data[number][first:last] for number, first, last in parts]
        elif len(parts) > _FEW_PIECES:
            return None
        elif (chunks := self.array.get_all(indices)) is not None:
            found = [
                as_reply(cut(chunks[number], first, last), chunks[number].nbytes)
                for number, first, last in parts
            ]
        else:
            raise NotCached
        return found[0] if len(found) == 1 else b"".join(found)

    def fetch_bytes(self, start: int, stop: int, answer: Answer) -> bool:
        """As `fetch`, for bytes in few pieces, which are cut from the bytes of each chunk.

        Returns False, and does nothing, for other bytes.
        """
        cuts = self._cuts(start, stop)
        if cuts is None:
            return False
        reply = CutReply(cuts, answer)
        keep = self._keep(reply.size, len(cuts.chunks))
        # The file of a chunk is mostly read as a whole.
        if self._rows is not None and (parts := self.array.part_reads) is not None:
            parts.request(Wanted(reply.spans, reply.deliver_part, reply.deliver, reply.done, keep))
        else:
            self.array.request(reply.indices, reply.deliver, reply.done, keep=keep)
        return True

    def _keep(self, size: int, chunks: int) -> Keep:
        """How chunks stay in memory of which a read wants ``size`` bytes."""
        if self._rows is None or size * _SMALL_PART > chunks * self._rows.chunk_bytes:
            return Keep.IN_ORDER
        return Keep.AS_STORED

    def _cuts(self, start: int, stop: int) -> Cuts | None:
        if start >= stop:
            return None
        if self.only is not None:
            return Cuts({self.only: 0}, [(0, start, stop)])
        return None if self._rows is None else self._rows.cuts(start, stop, _FEW_PIECES)

    def get(self, first: int, last: int) -> NDArray[Any] | None:
        """Elements ``first`` to ``last`` (exclusive); None if that blocks. Raises NotCached."""
        if first < last and self.only is not None and self.array.get(self.only) is None:
            return None  # before memory is allocated for them
        if self.crosses(first, last, MOST_CHUNKS):
            return None
        elements = np.empty(last - first, self.dtype)
        return elements if self._copy_all(elements, first, last) else None

    def fetch(
        self, first: int, last: int, answer: Callable[[NDArray[Any] | ChunkError], None]
    ) -> None:
        """Get elements and call ``answer`` once, in any thread. Does not block."""
        elements = np.empty(last - first, self.dtype)
        self.fill(elements, first, last, lambda error: answer(elements if error is None else error))

    def wait_for(self, first: int, last: int) -> NDArray[Any]:
        """Elements ``first`` to ``last`` (exclusive). Blocks.

        A loader thread must not call it for chunks that only this thread could load. Raises
        ChunkError.
        """
        with suppress(NotCached):
            if (elements := self.get(first, last)) is not None:
                return elements
        result: Future[NDArray[Any] | ChunkError] = Future()
        self.fetch(first, last, result.set_result)
        if isinstance(found := result.result(), ChunkError):
            raise found
        return found

    def fill(self, elements: NDArray[Any], first: int, last: int, done: Done) -> None:
        """Copy elements into ``elements``. Does not block."""
        if self.crosses(first, last, MOST_CHUNKS):
            self._fill_in_portions(elements, first, last, done)
        else:
            self._fill_at_once(elements, first, last, done)

    def crosses(self, first: int, last: int, most: int) -> bool:
        """Whether elements are in more than ``most`` chunks, without a step for each chunk."""
        few = (last - first) // self.window.mean_piece <= most
        return not few and self.count_chunks(first, last) > most

    def _fill_at_once(self, elements: NDArray[Any], first: int, last: int, done: Done) -> None:
        """As `fill`, of few chunks."""
        if self.crosses(first, last, MOST_NOW):
            with suppress(NotCached):
                if self._copy_all(elements, first, last):
                    done(None)
                    return
        wanted: dict[Index, list[tuple[Slices, Chunk]]] = defaultdict(list)
        for box in boxes(self.window.shape, first, last):
            memory = self.box_target(elements, first, box)
            for copy in self.window.copies(box):
                where: tuple[Any, ...] = (*copy.target, ...)  # a view without axes, too
                wanted[self.index(copy)].append((copy.source, memory[where]))

        def deliver(delivery: Delivery) -> None:
            for index, chunk in delivery:
                for source, target in wanted[index]:
                    target[...] = self._in_file_order(chunk)[source]

        keep = self._keep(elements.nbytes, len(wanted))
        self.array.request(list(wanted), deliver, done, keep=keep)

    def _fill_in_portions(
        self, elements: NDArray[Any], first: int, last: int, done: Done, again: int = 2
    ) -> None:
        """As `fill`, for very many chunks, of which none is cached.

        again : how often, if they change meanwhile.
        """
        freshness = self.array.freshness
        foreign = freshness.foreign

        def over(error: ChunkError | None) -> None:
            if error is None and again and freshness.foreign != foreign:
                self._fill_in_portions(elements, first, last, done, again - 1)
            else:
                done(error)

        portions = (
            partial(self.scan, elements[start - first : stop - first], start, stop)
            for box in boxes(self.window.shape, first, last)
            for start, stop in ((box.position, box.position + box.elements),)
        )
        one_after_another(portions, over, partial(self.array.in_thread, ahead=False))

    def scan(
        self,
        elements: NDArray[Any],
        first: int,
        last: int,
        done: Done,
        *,
        ahead: bool = False,
    ) -> None:
        """As `fill`, for a reader that needs each chunk only once: no chunk is cached.

        first, last : together one box of the window.
        ahead : no reader waits for them yet.
        """
        (box,) = boxes(self.window.shape, first, last)
        target = self.box_target(elements, first, box)
        parts = (
            partial(self.scan_block, Block(runs, target, self.carrier), ahead=ahead)
            for runs in portions(self.window, box, self._units)
        )
        if self.window.count_chunks(box) <= MOST_CHUNKS:
            next(parts)(done)
        else:
            one_after_another(parts, done, partial(self.array.in_thread, ahead=ahead))

    @property
    def _units(self) -> Shape:
        """Chunks of a shard along each axis of the file."""
        layout = self.array.array.layout
        units = layout.members or (1,) * len(layout.read.axes)
        return units[::-1] if self.reversed else units

    def scan_block(self, block: Block, done: Done, *, ahead: bool) -> None:
        """As `scan`, for a block whose axes are in the order of the file."""
        if self.reversed:
            block = replace(block, runs=block.runs[::-1], target=block.target.T)
        self.array.scan(block, done, ahead=ahead)

    def count_chunks(self, first: int, last: int) -> int:
        """About how many chunks contain elements ``first`` to ``last`` (exclusive), unlisted."""
        return sum(map(self.window.count_chunks, boxes(self.window.shape, first, last)))

    def index(self, copy: Copy) -> Index:
        """The chunk to copy from, by its index in the array."""
        return copy.chunk[::-1] if self.reversed else copy.chunk

    def _chunk_rows(self, elements: NDArray[Any], first: int, last: int) -> Iterator[ChunkRow]:
        """The chunks that contain elements of the file; ``elements`` is their memory."""
        for box in boxes(self.window.shape, first, last):
            target = self.box_target(elements, first, box)
            yield from self.window.chunk_rows(box, target)

    def _indices(self, row: ChunkRow) -> list[Index]:
        """The chunks of a row, by their indices in the array."""
        return [index[::-1] for index in row.indices] if self.reversed else row.indices

    def _copy_all(self, elements: NDArray[Any], first: int, last: int) -> bool:
        """Copy all elements if all of their chunks are cached, in one state. Raises NotCached.

        To copy chunks one by one takes several times as long.
        """
        foreign = self.array.freshness.foreign
        copied = all(map(self._copy_cached, self._chunk_rows(elements, first, last)))
        # Several boxes may have needed the same chunk.
        return copied and foreign == self.array.freshness.foreign

    def _copy_cached(self, row: ChunkRow) -> bool:
        """Copy the chunks of a row if all of them are cached. Raises NotCached."""
        if self._rows is not None and self._rows.copy(row):
            return True
        chunks = self.array.get_all(self._indices(row))
        if chunks is None:
            return False
        self._copy(row, chunks)
        return True

    def _in_file_order(self, chunk: Chunk) -> Chunk:
        chunk = chunk if chunk.dtype == self.carrier else chunk.view(self.carrier)
        return chunk.T if self.reversed else chunk

    def _copy(self, row: ChunkRow, chunks: Sequence[Chunk]) -> None:
        """Copy the chunks of a row to their memory."""
        chunks = [self._in_file_order(chunk) for chunk in chunks]
        if not row.runs:
            row.target[...] = chunks[0]
            return
        pairs = zip(chunks, row.runs, strict=True)
        pieces = [chunk[(*row.source, run.source)] for chunk, run in pairs]
        if len(pieces) == 1:
            row.target[...] = pieces[0]
        else:
            np.concatenate(pieces, axis=-1, out=row.target)

    def box_target(self, elements: NDArray[Any], first: int, box: Box) -> Chunk:
        """The memory of a box, in its shape, with fill value where no chunk reaches.

        elements : memory of elements of the file, from ``first`` on.
        """
        start = box.position - first
        target = elements[start : start + box.elements].reshape(box.shape)
        if self.window.overhangs(box):
            target[...] = self._fill
        return target


def _carriers(
    data_type: DataType, byteorder: Literal["little", "big"]
) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Data types for chunks and files such that assignment copies every bit.

    numpy copies plain numbers fastest, and swaps their bytes if the byte orders differ.
    """
    dtype = data_type.dtype
    if not data_type.fixed_size:
        return dtype, dtype
    stored = data_type.stored_dtype(big_endian=byteorder == "big")
    if stored != dtype:
        return stored.newbyteorder("<"), stored
    return (plain := plain_type(dtype.itemsize)), plain
