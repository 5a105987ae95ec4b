"""Copies boxes of one array: elements are decoded, converted and encoded, or chunks passed on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial, reduce
from operator import xor
from os import cpu_count
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject, Replaced, one_by_one
from zarrfs.array.shards.parts import PartCache
from zarrfs.cache.caches import Caches
from zarrfs.errors import BudgetExceeded, ChunkError, StoreError
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.copying.array_copy import ArrayCopy, Copied, CopyTask
from zarrfs.library.copying.casting import cast
from zarrfs.library.copying.passing import Passing
from zarrfs.library.copying.plan import BoxPlan, plan_boxes
from zarrfs.library.transfer.tiles import Tile
from zarrfs.store.base import ANY, Store
from zarrfs.threads import ThreadPool, share
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Box, Window

# Boxes that are copied at once: one is stored while another one is read.
AT_ONCE = 2
# Parts of the memory: two for each box with what is encoded of it, and two for decoding.
_PARTS = 2 * AT_ONCE + 2
_USEFUL = 32 << 20
# Bytes and number of objects that are encoded and then stored together. They take half of a part
# at most, unless a single object takes more.
_BATCH_BYTES, _BATCH_OBJECTS = 64 << 20, 256
# Bytes of an element of variable length, about.
_VARIABLE = 64


class DamagedCopy(ChunkError):
    """An object that was read back differs from its source."""


class BoxCopy:
    """Copies boxes from one array to another. Thread-safe.

    plan : the boxes.
    passing : hands on chunks as they are encoded; None where the arrays are encoded differently.
    """

    def __init__(
        self, caches: Caches, source: Store, metadata: ArrayMetadata, target: Store, copy: ArrayCopy
    ) -> None:
        """
        caches, source, metadata : of the source.

        Raises BudgetExceeded if a chunk of either array is too large for the memory, StoreConflict
        if the source has changed.
        """
        copy.check(metadata)
        self._region = region = copy.region
        self._verify = copy.verify
        new = copy.metadata
        self._layout = new.layout
        self._cached = caches.open(copy.path, metadata)
        self._source = self._cached.array
        memory = copy.options.memory_bytes
        parts = PartCache(max(memory // 16, 1 << 20))
        self._target = Array(target, copy.target_path, new, parts, ArrayConfig(memory))
        self._helpers = ThreadPool(cpu_count() or 1)
        self._each = partial(share, self._helpers, cpu_count() or 1)
        self._writer = ChunkWriter(self._target, store_fill=False, largest_whole=0, each=self._each)
        self._alone = ChunkWriter(self._target, store_fill=False, largest_whole=0, each=one_by_one)
        self._fixed = self._layout.data_type.fixed_size
        self._item = max(
            1,
            *(a.layout.data_type.item_size for a in (self._source, self._target)),
            0 if self._fixed else _VARIABLE,
        )
        stored = self._layout.stored
        size = max(1, math.prod(stored.largest_chunk) * self._item)
        part = memory // _PARTS
        group_bytes = max(size, min(_BATCH_BYTES, part // 2))
        room = max(part, 2 * part - group_bytes)
        self._most = max(1, room // self._item)
        self._group = min(group_bytes // size, _BATCH_OBJECTS)
        # Memory of boxes, used again, since the kernel clears new memory.
        self._unused: list[NDArray[np.uint8]] = []
        window = Window(stored, (0,) * len(stored.axes), region.shape)
        self.plan = self._plan(stored, window)
        self._streams = not self.plan.fits
        if self._streams and not self._layout.sharded:
            raise BudgetExceeded(
                f"a chunk of {size} bytes is to be made, there is room for {part}: "
                f"raise --memory to {size * _PARTS >> 20 or 1}M or more"
            )
        self._room = memory // 2
        self.passing = Passing.plan(self._source, self._writer, region, room)

    def _plan(self, grid: ChunkGrid, window: Window) -> BoxPlan:
        return plan_boxes(
            self._source.layout.read,
            self._region.origin,
            grid,
            window=window,
            most=self._most,
            useful=_USEFUL // self._item,
        )

    def close(self) -> None:
        self._helpers.close()

    def copy(self, tile: Tile) -> Copied:
        """Copy one box of ``plan``. May be called again, with the same result.

        Raises ChunkError if a source chunk cannot be had, InexactCast, StoreError, DamagedCopy.
        """
        indices = list(self._indices(tile))
        passing = self.passing if self.passing is not None and self.passing.takes(tile) else None
        memory = box = None
        if passing is None and not self._streams:
            most = math.prod(self.plan.tiles.lengths)
            memory = self._unused.pop() if self._unused else self._memory(most)
            box = self._read(tile, memory)
        checksum = stored = 0
        for first in range(0, len(indices), self._group):
            group = indices[first : first + self._group]
            if passing is not None:
                objects = passing.encoded(group)
            else:
                objects = self._all_encoded(group, tile, box)
            for result in self._writer.store(objects):
                if isinstance(result, StoreError):
                    raise result
            stored += len(objects)
            if self._verify and passing is not None:
                checksum ^= reduce(xor, map(self._same_bytes, objects), 0)
            elif self._verify:
                for index in group:
                    checksum ^= self._read_back(index, tile, box)
            del objects  # before the next ones are encoded
        if memory is not None:
            self._unused.append(memory)
        return Copied(self.nbytes(tile), len(indices), stored, checksum)

    def _all_encoded(
        self, group: Sequence[Index], tile: Tile, box: NDArray[Any] | None
    ) -> list[EncodedObject]:
        """The objects of a group that are not fill values alone."""
        objects: list[EncodedObject | None] = [None] * len(group)

        def encode(number: int) -> None:
            index = group[number]
            objects[number] = (
                self._streamed(index) if box is None else self._encoded(tile, box, index)
            )

        self._each(encode, len(group))
        return [one for one in objects if one is not None and one.parts is not None]

    def perform(self, task: CopyTask) -> Copied:
        return reduce(Copied.plus, map(self.copy, task.tiles), Copied())

    @property
    def source_objects(self) -> int:
        """Objects of the source that hold what is copied, at most."""
        if 0 in self._region.shape:
            return 0
        stored = self._source.layout.stored
        return math.prod(map(len, stored.ranges_in(self._region.origin, self._region.shape)))

    @property
    def nbytes_in_all(self) -> int:
        """Bytes of all elements, decoded."""
        shape = self._region.shape
        return self.nbytes(Tile((0,) * len(shape), shape))

    @property
    def nbytes_of_boxes(self) -> int:
        """Bytes of the elements of a box, at least 1."""
        lengths = self.plan.tiles.lengths
        return max(1, self.nbytes(Tile(lengths, lengths)))

    def nbytes(self, tile: Tile) -> int:
        """Bytes of the elements of a box, decoded; about, if their length varies."""
        item = self._source.layout.data_type.item_size if self._fixed else _VARIABLE
        return tile.elements * item

    def _indices(self, tile: Tile) -> Iterator[Index]:
        return self._layout.stored.chunks_in(tile.start, tile.shape)

    def _tile_of(self, index: Index) -> Tile:
        return _chunk_tile(self._layout.stored, index)

    # --- reading ----------------------------------------------------------------

    def _memory(self, elements: int) -> NDArray[np.uint8]:
        return np.empty(elements * (self._item if self._fixed else 0), np.uint8)

    def _read(self, tile: Tile, memory: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        """The elements of a box of the destination, in its data type.

        memory : at least as much as the box takes in the source's data type, which may be used.
        """
        origin = tuple(o + s for o, s in zip(self._region.origin, tile.start, strict=True))
        layout = self._source.layout
        if layout.data_type.fixed_size:
            window = Window(layout.read, origin, tile.shape)
            elements = Elements(self._cached, window, FlatConfig())
            memory = self._memory(tile.elements) if memory is None else memory
            flat = memory[: tile.elements * elements.dtype.itemsize].view(elements.dtype)
            error: Future[ChunkError | None] = Future()
            read = elements.fill if self.plan.decoded > 1 else elements.scan
            read(flat, 0, tile.elements, error.set_result)
            if (failed := error.result()) is not None:
                raise failed
            box = flat.view(layout.data_type.dtype).reshape(tile.shape)
        else:
            box = self._read_objects(origin, tile.shape)
        return cast(box, self._layout.data_type.dtype, "the element", origin)

    def _read_objects(self, origin: Index, shape: Shape) -> NDArray[Any]:
        """Elements of variable length."""
        layout = self._source.layout
        box = np.empty(shape, layout.data_type.dtype)
        copies = Window(layout.read, origin, shape).copies(Box((0,) * len(shape), shape, 0))
        by_chunk = {copy.chunk: copy for copy in copies}
        for result in self._source.read_chunks(list(by_chunk)):
            if result.chunk is None:
                assert result.error is not None
                raise result.error
            _, source, target = by_chunk[result.index]
            box[target] = result.chunk[source]
        return box

    # --- writing ----------------------------------------------------------------

    def _encoded(self, tile: Tile, box: NDArray[Any], stored: Index) -> EncodedObject:
        """A stored object of the elements in ``box``, which are those of ``tile``."""
        if not self._layout.sharded:
            return self._writer.encode(stored, {stored: self._chunk(box, tile, stored)}, ANY)
        chunks = list(self._inner(self._tile_of(stored)))
        size = self._writer.batch_size

        def batch(first: int) -> Replaced:
            some = chunks[first : first + size]
            return Replaced({index: self._chunk(box, tile, index) for index in some})

        batches = [partial(batch, first) for first in range(0, len(chunks), size)]
        return self._writer.encode_shard(stored, batches, ANY, whole=True)

    def _streamed(self, stored: Index) -> EncodedObject:
        """A shard larger than the memory for a box: read in parts, and encoded part by part."""

        def batch(tile: Tile) -> Replaced:
            box = self._read(tile)
            return Replaced({index: self._chunk(box, tile, index) for index in self._inner(tile)})

        batches = [partial(batch, tile) for tile in self._parts_of(stored)]
        found = self._alone.encode_shard(stored, batches, ANY, whole=True)
        size = sum(map(len, found.parts or ()))
        if size > self._room:
            raise BudgetExceeded(
                f"{found.key}: a shard of {size} encoded bytes, there is room for {self._room}: "
                "raise --memory"
            )
        return found

    def _parts_of(self, stored: Index) -> Iterator[Tile]:
        """A shard in boxes that fit in memory."""
        whole = self._tile_of(stored)
        window = Window(self._layout.read, whole.start, whole.shape)
        plan = self._plan(self._layout.read, window)
        if not plan.fits:
            raise BudgetExceeded("an inner chunk of a shard does not fit in --memory: raise it")
        for start, shape in plan.tiles:
            yield Tile(tuple(o + s for o, s in zip(whole.start, start, strict=True)), shape)

    def _inner(self, tile: Tile) -> Iterator[Index]:
        """The read chunks in a box."""
        return self._layout.read.chunks_in(tile.start, tile.shape)

    def _chunk(self, box: NDArray[Any], tile: Tile, index: Index) -> NDArray[Any]:
        """A read chunk of the destination, whole."""
        grid = self._layout.read
        part = box[_slices(_chunk_tile(grid, index), tile.start)]
        shape = grid.chunk_shape(index)
        if part.shape == shape:
            return np.ascontiguousarray(part).reshape(shape)
        whole = self._layout.spec(shape).filled()
        whole[tuple(slice(n) for n in part.shape)] = part
        return whole

    def _same_bytes(self, one: EncodedObject) -> int:
        wanted = size = 0
        # Once, since parts may be read when they are reached.
        for part in one.parts or ():
            wanted, size = google_crc32c.extend(wanted, bytes(part)), size + len(part)
        blob = self._target.store.get(one.key, limit=size)
        found = None if blob is None else _crc(blob.data)
        if found != wanted:
            raise DamagedCopy(one.key, "differs from its source when it is read back")
        return wanted

    def _read_back(self, stored: Index, tile: Tile, box: NDArray[Any] | None) -> int:
        """Decode a stored object again, and compare it with its source.

        box : the elements of ``tile``, in which the object lies; None: they are read again.
        """
        self._target.forget([stored])
        checksum = 0
        for part in [self._tile_of(stored)] if box is not None else self._parts_of(stored):
            wanted = self._read(part) if box is None else box[_slices(part, tile.start)]
            found = np.empty(wanted.shape, wanted.dtype)
            for result in self._target.read_chunks(list(self._inner(part))):
                if result.chunk is None:
                    assert result.error is not None
                    reason = f"cannot be read back: {result.error.reason}"
                    raise DamagedCopy(result.error.key, reason)
                where = _slices(_chunk_tile(self._layout.read, result.index), part.start)
                inside = found[where]
                inside[...] = result.chunk[tuple(slice(n) for n in inside.shape)]
            if _checksum(found) != (value := _checksum(wanted)):
                reason = "differs from its source when it is read back"
                raise DamagedCopy(self._target.key(stored), reason)
            checksum ^= value
        return checksum


def _slices(tile: Tile, start: Index) -> tuple[Any, ...]:
    """Where a box lies in another one that begins at ``start``."""
    where = zip(tile.start, tile.shape, start, strict=True)
    # The ellipsis keeps the part of a box without axes an array.
    return (*(slice(o - s, o - s + n) for o, n, s in where), ...)


def _chunk_tile(grid: ChunkGrid, index: Index) -> Tile:
    return Tile(grid.origin(index), grid.valid_shape(index))


def _checksum(values: NDArray[Any]) -> int:
    if values.dtype.hasobject:
        return _crc(repr(values.tolist()).encode())
    return _crc(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _crc(data: Any) -> int:
    return int(google_crc32c.value(bytes(data)))
