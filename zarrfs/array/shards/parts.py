"""Stored objects and the parts of them that are shards: read by range, in one state."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.shards.leftovers import Leftovers
from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer
from zarrfs.format.shard_index import IndexCodec, ShardIndex
from zarrfs.store.base import Blob, ByteRange, ObjectInfo, Store
from zarrfs.store.ranges import Span, merge
from zarrfs.store.write_parts import CopiesRanges, write_parts

# Bytes between two parts that cost less to read along than a second request.
_GAP = 4096
# Objects of one array whose states are known.
_MOST_KNOWN = 1 << 16


class ObjectChanged(Exception):
    """A stored object is no longer in the state that its index was read from."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class StoredPart(NamedTuple):
    """``size`` bytes from ``offset`` of the object ``key``, in the state of ``info``.

    leftovers : keeps bytes that are fetched along; None for a local store, which needs none.
    scan : whether all bytes are wanted soon.
    """

    store: Store
    key: str
    info: ObjectInfo
    offset: int
    size: int
    leftovers: Leftovers | None = None
    scan: bool = False

    @property
    def name(self) -> tuple[object, ...]:
        """Identifies the part and the state of its object."""
        return (self.key, self.info.generation, self.offset, self.size)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """The bytes at each (offset, length) relative to the part.

        Raises ObjectChanged if the object is not in the part's state any more, DecodeError if
        bytes are missing.
        """
        wanted = [ByteRange(self.offset + offset, length) for offset, length in ranges]
        leftovers = self.leftovers
        if leftovers is None:
            return [blob.data for blob in self._blobs(wanted)]
        spans = [Span(start, start + length) for start, length in wanted]
        if len(spans) > 1:
            with leftovers.fetching.held(self._state):
                return self._fetch_along(spans, leftovers)
        (kept,) = leftovers.take(self._state, spans)
        if kept is not None:
            return [kept]
        blobs = self._blobs(wanted)
        self.keep_whole(blobs)
        return [blob.data for blob in blobs]

    @property
    def _state(self) -> tuple[object, ...]:
        return (self.key, self.info.generation)

    def _fetch_along(self, spans: Sequence[Span], leftovers: Leftovers) -> list[Buffer]:
        """The bytes of spans of the object; keeps bytes that are fetched along."""
        found: list[Buffer | None] = list(leftovers.take(self._state, spans))
        missing = [span for span, data in zip(spans, found, strict=True) if data is None]
        if missing:
            size = self.info.size if self.scan else None
            with leftovers.planned(self._state, missing, size) as asked:
                blobs = self._blobs([ByteRange(start, stop - start) for start, stop in asked])
                fetched = [memoryview(blob.data) for blob in blobs]
                used = [0] * len(asked)
                firsts = [span.start for span in asked]
                for number, (start, stop) in enumerate(spans):
                    if found[number] is not None:
                        continue
                    at = bisect_right(firsts, start) - 1
                    found[number] = fetched[at][start - firsts[at] : stop - firsts[at]]
                    used[at] += stop - start
                if not self.keep_whole(blobs):
                    for first, data, count in zip(firsts, fetched, used, strict=True):
                        leftovers.keep(self._state, first, data, count)
        return [data for data in found if data is not None]

    def keep_whole(self, blobs: Sequence[Blob]) -> bool:
        """Keep all of the object for later reads; False if the service sent only parts of it."""
        whole = blobs[0].whole if blobs else None
        if whole is None or self.leftovers is None:
            return False
        used = sum(len(blob.data) for blob in blobs)
        self.leftovers.keep(self._state, 0, memoryview(whole), used)
        return True

    def _blobs(self, ranges: Sequence[ByteRange]) -> list[Blob]:
        """Bytes of the object. Raises as `read` does."""
        if (blobs := self.store.get_ranges(self.key, ranges)) is None:
            raise ObjectChanged(self.key)
        for blob, (_, length) in zip(blobs, ranges, strict=True):
            if blob.info.generation != self.info.generation:
                raise ObjectChanged(self.key)
            if len(blob.data) != length:
                raise DecodeError(f"{len(blob.data)} bytes came where {length} were asked for")
        return blobs

    def write_to(self, fd: int) -> None:
        """Write all bytes at the position of a file. Raises as `read` does, and `OSError`."""
        if not isinstance(self.store, CopiesRanges):
            write_parts(fd, self.read([(0, self.size)]))
        elif not self.store.copy_range(self.key, self.info, ByteRange(self.offset, self.size), fd):
            raise ObjectChanged(self.key)

    def inner(self, offset: int, length: int) -> StoredPart:
        """The part of this part that starts at ``offset``."""
        return StoredPart(*self[:3], self.offset + offset, length, *self[5:])


class MemoryPart(NamedTuple):
    """As `StoredPart`, for bytes in memory.

    name : None if it should not be cached.
    """

    data: memoryview
    name: tuple[object, ...] | None = None

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        return [self.data[offset : offset + length] for offset, length in ranges]

    def inner(self, offset: int, length: int) -> MemoryPart:
        name = None if self.name is None else (*self.name, offset, length)
        return MemoryPart(self.data[offset : offset + length], name)


Part: TypeAlias = StoredPart | MemoryPart
"""Bytes that contain one shard."""


def read_index(part: Part, codec: IndexCodec) -> ShardIndex:
    """The index of a shard. Raises as `StoredPart.read` does."""
    if part.size < codec.size:
        raise DecodeError(f"a shard of {part.size} bytes has no room for its index")
    offset = 0 if codec.location == "start" else part.size - codec.size
    (data,) = part.read([(offset, codec.size)])
    return codec.decode(data, part.size)


class ReadPlan(NamedTuple):
    """How bytes at many places of a part are read.

    ranges : what to read; neighbouring places are in one range.
    places : for each place the number of its range, and its start and stop in that range; None for
        no bytes.
    """

    ranges: Sequence[ByteRange]
    places: Sequence[tuple[int, int, int] | None]

    def read(self, part: Part) -> Iterator[Buffer | None]:
        """The bytes at each place. Raises as `StoredPart.read` does, before it returns."""
        read = part.read(self.ranges) if self.ranges else []
        ranges = [memoryview(data) for data in read]
        return (
            None if place is None else ranges[place[0]][place[1] : place[2]]
            for place in self.places
        )


def plan_few(places: Sequence[tuple[int, int] | None]) -> ReadPlan:
    """
    places : by offset and length; None for nothing.
    """
    if len(places) == 1 and (only := places[0]) is not None:
        return ReadPlan([ByteRange(*only)], [(0, 0, only[1])])
    spans = [Span(place[0], place[0] + place[1]) for place in places if place is not None]
    merged = merge(spans, max_gap=_GAP, max_length=sys.maxsize)
    starts = [span.start for span in merged]
    found: list[tuple[int, int, int] | None] = []
    for place in places:
        if place is None:
            found.append(None)
            continue
        offset, length = place
        number = bisect_right(starts, offset) - 1
        within = offset - starts[number]
        found.append((number, within, within + length))
    return ReadPlan([ByteRange(start, stop - start) for start, stop in merged], found)


def plan_scattered(offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> ReadPlan:
    """As `plan_few`, for many places; length 0 gives no bytes."""
    wanted = np.flatnonzero(lengths)
    if not len(wanted):
        return ReadPlan([], [None] * len(lengths))
    order = wanted[np.argsort(offsets[wanted], kind="stable")]
    starts = offsets[order]
    # Entries may share bytes, so that one may end before an earlier one does.
    reached = np.maximum.accumulate(starts + lengths[order])
    first = np.concatenate(([True], starts[1:] > reached[:-1] + _GAP))
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(order)) - 1
    bases = starts[heads]
    ranges = list(map(ByteRange, bases.tolist(), (reached[tails] - bases).tolist()))
    within = starts - np.repeat(bases, tails - heads + 1)
    places = np.empty((3, len(lengths)), np.int64)
    places[:, order] = np.cumsum(first) - 1, within, within + lengths[order]
    found: list[tuple[int, int, int] | None] = list(zip(*places.tolist(), strict=True))
    if len(wanted) < len(lengths):
        for slot in np.flatnonzero(lengths == 0).tolist():
            found[slot] = None
    return ReadPlan(ranges, found)


class PartCache:
    """Shard indexes and decoded wrappings; the least recently used one is dropped first.

    capacity : bytes. A larger item is not kept.
    leftovers : no more than the other items leave.
    size : bytes of all items, without leftovers; changes under the lock.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._items: OrderedDict[tuple[object, ...], tuple[ShardIndex | memoryview, int]]
        self._items = OrderedDict()
        self.size = 0
        self._lock = Lock()
        self.leftovers = Leftovers(lambda: self.capacity - self.size)

    def get(self, name: tuple[object, ...] | None) -> ShardIndex | memoryview | None:
        if name is None:
            return None
        with self._lock:
            if (item := self._items.get(name)) is None:
                return None
            self._items.move_to_end(name)
            return item[0]

    def put(self, name: tuple[object, ...] | None, item: ShardIndex | memoryview) -> None:
        if name is None or item.nbytes > self.capacity:
            return
        with self._lock:
            if name in self._items:
                return
            self._items[name] = item, item.nbytes
            self.size += item.nbytes
            self._cut(self.capacity)
        if self.leftovers.size:
            self.leftovers.shrink()

    def resize(self, capacity: int) -> None:
        """Change the capacity, in bytes."""
        with self._lock:
            self.capacity = capacity
            self._cut(capacity)
        self.leftovers.shrink()

    def clear(self) -> None:
        """Drop all indexes and wrappings, but not leftovers, which a scan needs soon."""
        with self._lock:
            self._cut(0)

    def _cut(self, size: int) -> None:
        """Drop the least recently used items beyond ``size`` bytes. With the lock held."""
        while self.size > size:
            _, (_, freed) = self._items.popitem(last=False)
            self.size -= freed


class KnownObjects:
    """The states in which objects were last seen; forgets the oldest of too many.

    forgotten : how often a caller had anything forgotten.
    """

    def __init__(self) -> None:
        self._infos: OrderedDict[str, ObjectInfo] = OrderedDict()
        self._lock = Lock()
        self.forgotten = 0

    def get(self, key: str) -> ObjectInfo | None:
        return self._infos.get(key)

    def remember(self, key: str, info: ObjectInfo, forgotten: int) -> None:
        """Remember a state that was requested when ``forgotten`` had this value.

        Otherwise a call of `forget` since then may have meant this very state.
        """
        with self._lock:
            if forgotten != self.forgotten:
                return
            self._infos[key] = info
            if len(self._infos) > _MOST_KNOWN:
                self._infos.popitem(last=False)

    def forget(self, key: str) -> None:
        with self._lock:
            self.forgotten += 1
            self._infos.pop(key, None)

    def keep(self, keys: Collection[str]) -> None:
        """Forget all other objects."""
        with self._lock:
            self.forgotten += 1
            for key in self._infos.keys() - keys:
                del self._infos[key]
