"""Finds stored objects that reach beyond a shape, and deletes them or cuts them at it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.errors import ChunkError, StoreConflict, StoreListingUnsupported
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.chunk_layout import DefaultKeys, V2Keys
from zarrfs.format.codec import Chunk

_TRIES = 8
# Up to so many objects are checked one by one; if there may be more, the store is listed.
_PROBED_LOCAL = 1024
_PROBED_REMOTE = 128


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Region:
    """The indices of a grid that have at least one coordinate of ``first`` or more.

    first : for each axis; equal to ``counts`` on axes to ignore.
    """

    counts: Shape
    first: Shape

    @classmethod
    def beyond(cls, grid: ChunkGrid, inside: Shape, counts: Shape) -> Region:
        """Chunks with elements outside the shape ``inside``; ``grid`` is the grid of that shape."""
        first = []
        for axis, extent, count in zip(grid.axes, inside, counts, strict=True):
            last = axis.count - 1
            straddles = last >= 0 and axis.origin(last) + axis.length(last) > extent
            first.append(min(count, last if straddles else last + 1))
        return cls(counts, tuple(first))

    @property
    def size(self) -> int:
        return math.prod(self.counts) - math.prod(self.first)

    def __contains__(self, index: Index) -> bool:
        inside = all(i < count for i, count in zip(index, self.counts, strict=True))
        return inside and any(i >= f for i, f in zip(index, self.first, strict=True))

    def may_hold(self, leading: Index) -> bool:
        """Whether the region has an index that begins with ``leading``."""
        known = len(leading)
        if any(i >= count for i, count in zip(leading, self.counts, strict=False)):
            return False
        if any(i >= f for i, f in zip(leading, self.first, strict=False)):
            return True
        return any(
            f < count for f, count in zip(self.first[known:], self.counts[known:], strict=True)
        )

    def __iter__(self) -> Iterator[Index]:
        for axis, (first, count) in enumerate(zip(self.first, self.counts, strict=True)):
            if first < count:
                before = [range(f) for f in self.first[:axis]]
                behind = [range(c) for c in self.counts[axis + 1 :]]
                yield from _product([*before, range(first, count), *behind])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beyond:
    """The stored objects of an array that reach outside its shape.

    array : of that shape, whatever is stored.
    writer : None if elements have no fixed size: objects with a part inside the array are then not
        changed.
    region : the objects to look at, of the grid of stored objects.
    guard : called after an object was read and before it is changed; raises if it must not be
        changed any more.
    """

    array: Array
    writer: ChunkWriter | None
    region: Region
    guard: Callable[[], None]

    def objects(self) -> Iterator[Index]:
        """The objects that are stored, in no order."""
        if not self.region.size:
            return
        store = self.array.store
        if self.region.size <= (_PROBED_LOCAL if store.traits.near else _PROBED_REMOTE):
            yield from self._probed()
            return
        rank = len(self.region.counts)
        keys = self.array.metadata.chunk_keys
        try:
            for key in self._listed("", "/" in keys.key((0,) * rank)):
                index = keys.index(key, rank)
                if index is not None and index in self.region:
                    yield index
        except StoreListingUnsupported:
            yield from self._probed()

    def lies_outside(self, stored: Index) -> bool:
        """Whether no part of an object lies inside the array's shape."""
        return not self.array.layout.stored.contains(stored)

    def clear(self, stored: Index) -> None:
        """Delete an object, or set its elements outside the shape to fill value. Blocks.

        Raises StoreError, and ChunkError if elements that must stay cannot be read.
        """
        for _ in range(_TRIES):
            try:
                if self.lies_outside(stored):
                    self._delete(stored)
                else:
                    self._cut(stored)
            except StoreConflict:
                self.guard()
                self.array.forget([stored])
                continue
            return
        raise StoreConflict(self.array.key(stored), "other writers keep changing it")

    def _probed(self) -> Iterator[Index]:
        return (index for index in self.region if self.array.stored_info(index) is not None)

    def _listed(self, directory: str, deep: bool) -> Iterator[str]:
        """Keys below the array that may be those of chunks, relative to it."""
        path = "/".join(filter(None, (self.array.path, directory)))
        for name in self.array.store.list_dir(path):
            key = f"{directory}/{name}" if directory else name
            if not name.endswith("/"):
                yield key
            elif deep and self._may_hold(key[:-1].split("/")):
                yield from self._listed(key[:-1], deep)

    def _may_hold(self, parts: list[str]) -> bool:
        """Whether a directory can have chunks of the region below it."""
        keys = self.array.metadata.chunk_keys
        if not all(part == "c" or (part.isascii() and part.isdigit()) for part in parts):
            return False
        if isinstance(keys, DefaultKeys):
            parts = parts[1:]
        elif not isinstance(keys, V2Keys):
            return True
        return len(parts) <= len(self.region.counts) and (
            "c" not in parts and self.region.may_hold(tuple(map(int, parts)))
        )

    def _delete(self, stored: Index) -> None:
        info = self.array.stored_info(stored)
        if info is None:
            return
        self.guard()
        self.array.store.delete(self.array.key(stored), expected=info.generation)

    def _cut(self, stored: Index) -> None:
        if (writer := self.writer) is None:
            return
        changes: dict[Index, Chunk | None] = {}
        generation = None
        read = self.array.layout.read
        for result in self.array.read_chunks(list(self._straddling(stored))):
            inside = read.contains(result.index)
            if result.chunk is None and inside:
                assert result.error is not None
                raise result.error
            if not self._is_clean(writer, result):
                # The writer sets elements beyond the shape to fill value.
                changes[result.index] = result.chunk if inside else None
                generation = result.generation
        if not changes:
            return
        if generation is None:
            raise ChunkError(self.array.key(stored), "cannot be read")
        self.guard()
        writer.write(stored, changes, generation)

    def _straddling(self, stored: Index) -> Iterable[Index]:
        """The read chunks of an object that reach beyond the shape."""
        layout = self.array.layout
        if not layout.sharded:
            return (stored,)
        inner = layout.levels[-1].inner_shape
        start = tuple(o // n for o, n in zip(layout.stored.origin(stored), inner, strict=True))
        shape = layout.stored.chunk_shape(stored)
        counts = tuple(length // n for length, n in zip(shape, inner, strict=True))
        extents = layout.stored.shape
        first = tuple(
            max(0, min(count, extent // n - s))
            for count, extent, n, s in zip(counts, extents, inner, start, strict=True)
        )
        within = Region(counts, first)
        return (tuple(s + i for s, i in zip(start, index, strict=True)) for index in within)

    def _is_clean(self, writer: ChunkWriter, result: ChunkResult) -> bool:
        """Whether a chunk has the exact bits of the fill value outside the shape."""
        chunk = result.chunk
        if chunk is None:
            return False
        if chunk.size and not any(chunk.strides):
            return True  # not stored
        axes = zip(self.array.layout.read.axes, result.index, chunk.shape, strict=True)
        valid = [max(0, min(n, axis.extent - axis.origin(i))) for axis, i, n in axes]
        return all(
            writer.is_fill(chunk[(slice(None),) * axis + (slice(length, None),)])
            for axis, length in enumerate(valid)
        )


def _product(ranges: Sequence[range]) -> Iterator[Index]:
    """As `itertools.product`, which would keep every number of every range in memory."""
    if not ranges:
        yield ()
        return
    for i in ranges[0]:
        for rest in _product(ranges[1:]):
            yield (i, *rest)
