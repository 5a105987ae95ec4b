"""Changes the shape of an array: its metadata, and stored objects beyond the new end.

The order of steps makes it safe to be killed at any instant. Objects beyond the smaller of the two
shapes, in directions in which the array grows, are cleared before the new shape is stored. Objects
that the array loses are cleared after that. So the array always has the old or the new shape, with
all its elements. New elements are fill value, even if other writers have left objects there.
Objects that a killed process leaves beyond the end do no harm: the next growth clears them.

Each step reads an object, then checks the metadata, then changes the object on the condition that
it is as it was read. So objects stored by another host, which has grown the array meanwhile, are
not taken for leftovers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import NamedTuple

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.array.making.array_documents import ArrayDocuments
from zarrfs.array.making.beyond import Beyond, Region
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import MetadataError, StoreConflict, UnsupportedError, UsageError, ZarrfsError
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.resized import with_shape
from zarrfs.store.base import Store

# Objects that wait for a thread; the rest is not listed yet.
_AT_ONCE = 256


class ResizeConfig(NamedTuple):
    """How objects beyond the end are cleared.

    memory : bytes that this may take. Default 256 MiB.
    threads : objects that are deleted or cut at once, as far as memory allows. Default 8.
    store_fill : whether chunks of fill values only stay stored. Default False.
    cleared : called with the number of objects of one pass that are done; in the thread of
        `Resize.run`. Default: does nothing.
    """

    memory: int = 256 << 20
    threads: int = 8
    store_fill: bool = False
    cleared: Callable[[int], object] = lambda _: None


class Resized(NamedTuple):
    """The result of `Resize.run`.

    metadata : the array's metadata now.
    problems : why some objects beyond the end still exist. They do no harm to zarrfs, which clears
        them when it grows the array; other programs that grow it would show their elements.
    """

    metadata: ArrayMetadata
    problems: tuple[ZarrfsError, ...]


class Resize:
    """A change of the shape of the array at ``path`` of a store; only `run` changes anything.

    shape : elements along each axis; the number of axes stays.
    expected : the shape that the array must have; None: any.
    zarr_format : the only version to look for; None: the newest version that is found.
    old, new : shapes.

    Raises NodeNotFound if there is no such array, MetadataError if it cannot be read, UsageError
    for another number of axes or a negative extent, UnsupportedError if its chunk grid does not go
    with ``shape``, BudgetExceeded if a chunk takes more memory than there is, StoreConflict if the
    array has neither the expected nor the new shape or if consolidated metadata contradict it, and
    StoreError.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        shape: Shape,
        config: ResizeConfig | None = None,
        *,
        expected: Shape | None = None,
        zarr_format: int | None = None,
    ) -> None:
        self._store = store
        self._config = config or ResizeConfig()
        self._documents = ArrayDocuments(store, path, zarr_format)
        self._state = self._documents.state()
        self.path = path
        self.new = shape
        self.old = self._state.metadata.shape
        if len(shape) != len(self.old) or min(shape, default=0) < 0:
            raise UsageError(f"{list(shape)} is not a shape of {len(self.old)} axes")
        if expected is not None and self.old not in (expected, shape):
            raise StoreConflict(
                self._documents.key, f"has the shape {list(self.old)}, expected {list(expected)}"
            )
        self._target = self._planned(shape)
        if self.old != shape:
            # If it has, only consolidated metadata can be out of date, and `run` corrects them.
            self._documents.check_consolidated(self.old, shape)
        # Plan both before any change, so that objects that cannot be cleared are found here.
        self._before = self._beyond(self._state.metadata, self._target)
        self._after = self._beyond(self._target, self._state.metadata)
        self._lock = Lock()

    @property
    def loses_data(self) -> bool:
        """Whether the array loses elements, stored or not."""
        shrinks = any(new < old for old, new in zip(self.old, self.new, strict=True))
        return shrinks and math.prod(self.old) > 0

    def lost_objects(self) -> Iterator[tuple[str, bool]]:
        """Keys of stored objects that would lose elements, and whether they lose all of them.

        In no order. If there may be many, the store is listed. Blocks.
        """
        for stored in self._after.objects():
            yield self._after.array.key(stored), self._after.lies_outside(stored)

    def make_room(self) -> None:
        """Do the first part of `run`: clear objects where the array would grow. Blocks.

        Raises ZarrfsError.
        """
        if (problems := self._clear(self._before)) != ():
            raise problems[0]

    def run(self, *, room_made: bool = False) -> Resized:
        """Resize the array. Blocks.

        room_made : nothing is stored where the array grows, except its own elements.

        Raises ZarrfsError; the array then has its old shape and all its elements.
        """
        if not room_made:
            self.make_room()
        self._state = self._documents.put_shape(self.old, self.new)
        return Resized(self._state.metadata, self._clear(self._after))

    def _planned(self, shape: Shape) -> ArrayMetadata:
        """The metadata with the new shape."""
        key = self._documents.key
        try:
            metadata = self._documents.parse(with_shape(self._state.data, shape, key))
        except MetadataError as error:
            raise UnsupportedError(
                key, f"cannot be of shape {list(shape)}: {error.reason}"
            ) from error
        for old, new in (
            (self._state.metadata.layout.stored, metadata.layout.stored),
            (self._state.metadata.layout.read, metadata.layout.read),
        ):
            if not _same_chunks(old, new):
                raise UnsupportedError(
                    key, f"cannot be of shape {list(shape)}: its chunks would have other shapes"
                )
        return metadata

    def _beyond(self, inside: ArrayMetadata, reach: ArrayMetadata) -> Beyond:
        """Objects beyond the shape of ``inside``, up to the shape of ``reach``."""
        grid = inside.layout.stored
        counts = tuple(map(max, grid.counts, reach.layout.stored.counts))
        # On axes where ``reach`` is not larger, nothing has to be cleared.
        limits = tuple(
            extent if extent < other else _NO_LIMIT
            for extent, other in zip(inside.shape, reach.shape, strict=True)
        )
        array = Array(
            self._store,
            self.path,
            inside,
            PartCache(self._config.memory // 8),
            ArrayConfig(self._config.memory // 2),
        )
        writer = None
        if inside.layout.data_type.fixed_size:
            writer = ChunkWriter(
                array,
                store_fill=self._config.store_fill,
                largest_whole=self._config.memory // 8,
            )
        return Beyond(array, writer, Region.beyond(grid, limits, counts), self._check)

    def _clear(self, beyond: Beyond) -> tuple[ZarrfsError, ...]:
        """Clear objects; returns the errors."""
        problems: list[ZarrfsError] = []

        def clear(stored: Index) -> None:
            try:
                beyond.clear(stored)
            except ZarrfsError as error:
                problems.append(error)

        try:
            objects = beyond.objects()
            done = 0
            with ThreadPoolExecutor(self._threads()) as pool:
                while batch := list(islice(objects, _AT_ONCE)):
                    for _ in pool.map(clear, batch):
                        done += 1
                        self._config.cleared(done)
                    if len(problems) >= _AT_ONCE:
                        break
        except ZarrfsError as error:
            problems.append(error)
        return tuple(problems)

    def _threads(self) -> int:
        """How many objects may be rewritten at once."""
        layout = self._target.layout
        largest = 4 * layout.spec(layout.stored.largest_chunk).nbytes
        return max(1, min(self._config.threads, self._config.memory // (largest + 1)))

    def _check(self) -> None:
        """Raises StoreConflict if another program has resized the array meanwhile."""
        with self._lock:
            info = self._store.info(self._documents.key)
            if info is not None and info.generation == self._state.generation:
                return
            state = self._documents.state()
            if state.metadata.shape != self._state.metadata.shape:
                raise StoreConflict(
                    self._documents.key, "another program resized it at the same time"
                )
            self._state = state


_NO_LIMIT = 1 << 70


def _same_chunks(old: ChunkGrid, new: ChunkGrid) -> bool:
    """Whether the chunks that two grids over the same elements have in common are the same."""
    for one, other in zip(old.axes, new.axes, strict=True):
        last = min(one.count, other.count) - 1
        if last >= 0 and (
            (one.origin(last), one.length(last)) != (other.origin(last), other.length(last))
        ):
            return False
    return True
