"""Giving an array another shape: its metadata, and what is stored beyond the new end.

The order makes it safe to be killed at any instant. What lies beyond the smaller of two
shapes in a direction in which the array grows is cleared before the metadata say the new
shape; what it loses is cleared after. So an array is of the old shape or of the new one,
with all its elements, and elements that come are fill value, whatever somebody has left
there. What a killed process leaves beyond the end disturbs nobody: who grows the array
next clears it.

Each object is read first, then the metadata are looked at, then it is changed under the
condition that it is as it was read. So what another host, which has grown the array
meanwhile, has stored there is not taken for leftovers.
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
from zarrfs.format.metadata.editing.resized import with_shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Store

# Objects that are waiting for a thread; the rest is not even listed yet.
_AT_ONCE = 256


class ResizeConfig(NamedTuple):
    """How objects beyond the end are cleared.

    memory : bytes that this may take. Default 256 MiB.
    threads : objects that are deleted or cut at once, as far as memory allows. Default 8.
    store_fill : whether chunks of nothing but fill values stay stored. Default False.
    cleared : told how many objects of one pass are done; from the thread of `Resize.run`.
        Default: nobody is told.
    """

    memory: int = 256 << 20
    threads: int = 8
    store_fill: bool = False
    cleared: Callable[[int], object] = lambda _: None


class Resized(NamedTuple):
    """What has been done.

    metadata : the array's, as they are now.
    problems : why some objects beyond the end are still there. They do no harm; who
        grows the array with zarrfs clears them, others would see what they hold.
    """

    metadata: ArrayMetadata
    problems: tuple[ZarrfsError, ...]


class Resize:
    """Another shape for the array at ``path`` of a store; nothing is changed before `run`.

    shape : elements along each axis; the number of axes stays.
    expected : the shape that the array is thought to have; None: any.
    zarr_format : the only version to look for; None takes the newest that is there.

    old, new : shapes.

    Raises NodeNotFound where there is no such array, MetadataError where it cannot be
    read, UsageError for another number of axes or a negative extent, UnsupportedError
    where its chunk grid does not go with ``shape``, BudgetExceeded where a chunk takes
    more memory than there is, StoreConflict where the array has neither the expected nor
    the new shape or where consolidated metadata contradict it, and StoreError.
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
            raise UsageError(f"{list(shape)} is no shape of {len(self.old)} axes")
        if expected is not None and self.old not in (expected, shape):
            raise StoreConflict(
                self._documents.key, f"has the shape {list(self.old)}, expected {list(expected)}"
            )
        self._target = self._planned(shape)
        if self.old != shape:
            # Where it is, only consolidated metadata can be behind, which is put right.
            self._documents.check_consolidated(self.old, shape)
        # Both before anything is changed, so that what cannot be cleared is found here.
        self._before = self._beyond(self._state.metadata, self._target)
        self._after = self._beyond(self._target, self._state.metadata)
        self._lock = Lock()

    @property
    def loses_data(self) -> bool:
        """Whether elements of the array are given up, stored or not."""
        shrinks = any(new < old for old, new in zip(self.old, self.new, strict=True))
        return shrinks and math.prod(self.old) > 0

    def lost_objects(self) -> Iterator[tuple[str, bool]]:
        """Keys of stored objects that would lose something, and whether they lose all.

        In no order. Where many may be, the store is listed. Blocks.
        """
        for stored in self._after.objects():
            yield self._key(stored), self._after.lies_outside(stored)

    def make_room(self) -> None:
        """Do the first part of `run`: clear what lies where the array would grow. Blocks.

        Raises ZarrfsError.
        """
        if (problems := self._clear(self._before)) != ():
            raise problems[0]

    def run(self, *, room_made: bool = False) -> Resized:
        """Resize the array. Blocks.

        room_made : nothing lies where the array grows but its elements.

        Raises ZarrfsError; the array then has its old shape and all its elements.
        """
        if not room_made:
            self.make_room()
        self._state = self._documents.put_shape(self.old, self.new)
        return Resized(self._state.metadata, self._clear(self._after))

    def _planned(self, shape: Shape) -> ArrayMetadata:
        """What the metadata will say."""
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
        """What lies beyond the one shape, as far as the other reaches."""
        grid = inside.layout.stored
        counts = tuple(map(max, grid.counts, reach.layout.stored.counts))
        # Where the other does not reach further, nothing is to be cleared.
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
        """Why what could not be cleared."""
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
        """How many objects may be taken apart and put together at once."""
        layout = self._target.layout
        largest = 4 * layout.spec(layout.stored.largest_chunk).nbytes
        return max(1, min(self._config.threads, self._config.memory // (largest + 1)))

    def _check(self) -> None:
        """Raises StoreConflict where somebody else has resized the array meanwhile."""
        with self._lock:
            info = self._store.info(self._documents.key)
            if info is not None and info.generation == self._state.generation:
                return
            state = self._documents.state()
            if state.metadata.shape != self._state.metadata.shape:
                raise StoreConflict(
                    self._documents.key, "was resized by somebody else at the same time"
                )
            self._state = state

    def _key(self, stored: Index) -> str:
        key = self._target.chunk_keys.key(stored)
        return f"{self.path}/{key}" if self.path else key


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
