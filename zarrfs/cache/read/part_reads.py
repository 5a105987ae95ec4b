"""Reads of parts of chunks that are not in memory, where that is cheaper than to load them.

A program that reads here and there needs little of each chunk, and some codecs decode that little
without the rest. A program that reads on in a chunk is served faster from memory. So a chunk is
read in parts until that has cost as much as to load it, and is loaded then: whatever a program
does, its reads cost at most twice of what would have been best.

A part costs as much as its decoded bytes, and as `_OVERHEAD` more, for the hop to a thread and for
opening a file. From a distant store it would cost a round trip, which is the price of a whole
chunk. So all chunks of such a store are loaded. So are chunks whose codec decodes more than is
wanted, if there is memory for all of the array: they stay there. With 1024 reads of 4 KiB in arrays
of 256 MiB, parts of such chunks took 0.85 to 2 times as long as loading them, parts of uncompressed
chunks of 0.6 to 2 MiB 0.6 to 0.7 times.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock

from zarrfs.array.array import Array
from zarrfs.array.part_reader import PartReader, Span
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.chunk_loads import ChunkLoads, Deliver
from zarrfs.cache.read.flights import Keep
from zarrfs.cache.read.freshness import Freshness
from zarrfs.format.chunk_grid import Index
from zarrfs.jobs.ticket import Done, Ticket

log = logging.getLogger(__name__)

DeliverPart = Callable[[Index, memoryview], None]
"""Copies from the wanted bytes of a chunk. Called in any thread; must neither block nor keep them.
"""

# Bytes of a request. The kernel asks for more where a program reads on.
_SMALL = 16 << 10
_OVERHEAD = 128 << 10
# Bytes that are decoded for a part, and copies of them that are in memory meanwhile.
_LARGEST = 1 << 20
_COPIES = 3
# Chunks whose reads are remembered.
_REMEMBERED = 1 << 14
# How many more parts must have been read than not, or else no more are tried: the chunks of the
# array are divided too coarsely, or most of them are not stored.
_LEAST_GAIN = -8


class PartReads:
    """Reads parts of the chunks of one array, or loads these. Thread-safe."""

    def __init__(
        self,
        cache: BlockCache,
        array: Array,
        parts: PartReader,
        freshness: Freshness,
        loads: ChunkLoads,
    ) -> None:
        self._cache = cache
        self._layout = layout = array.layout
        self._parts = parts
        self._freshness = freshness
        self._loads = loads
        self._array_bytes = math.prod(layout.read.shape) * layout.data_type.item_size
        self._lock = Lock()
        # For each chunk what its parts have cost, in bytes, and where the last one ended.
        self._spent: OrderedDict[Index, tuple[int, int]] = OrderedDict()
        self._gain = 0

    @classmethod
    def plan(
        cls, cache: BlockCache, array: Array, freshness: Freshness, loads: ChunkLoads
    ) -> PartReads | None:
        """None if no chunk of the array is worth it."""
        parts = array.parts
        if parts is None or parts.nbytes <= _OVERHEAD or not array.store.cheap_stat:
            return None
        return cls(cache, array, parts, freshness, loads)

    def request(
        self,
        spans: Mapping[Index, Span],
        deliver_part: DeliverPart,
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep,
    ) -> None:
        """As `ChunkLoads.request`, but some chunks may come as parts. Does not block.

        spans : what is wanted of each chunk.
        deliver_part : gets these bytes of a chunk that ``deliver`` does not get. ``deliver`` may
            get the chunk nevertheless, after that has failed.
        """
        chosen = self._choose(spans)
        if not chosen:
            self._loads.request(list(spans), deliver, done, keep=keep, ahead=False)
            return
        rest = [index for index in spans if index not in chosen]
        ticket = Ticket(2, done)
        self._cache.stats.misses += len(chosen)
        work = partial(self._work, chosen, deliver_part, deliver, ticket.part(), keep)
        self._cache.pool.submit(work)
        self._loads.request(rest, deliver, ticket.part(), keep=keep, ahead=False)

    def _choose(self, spans: Mapping[Index, Span]) -> dict[Index, Span]:
        """The chunks to read in parts this time."""
        if self._gain < _LEAST_GAIN or sum([span.length for span in spans.values()]) > _SMALL:
            return {}
        if self._parts.divided and self._array_bytes <= self._cache.budget.total:
            return {}
        missing = {i: span for i, span in spans.items() if not self._loads.expects(i)}
        chosen = {}
        with self._lock:
            for index, span in missing.items():
                spent, end = self._spent.pop(index, (0, -1))
                spent += _OVERHEAD + span.length
                # Where the last part ended, its program reads on.
                if spent > self._parts.nbytes or span.start == end:
                    continue
                self._spent[index] = spent, span.stop
                chosen[index] = span
            while len(self._spent) > _REMEMBERED:
                self._spent.popitem(last=False)
        return chosen

    def _work(
        self,
        spans: Mapping[Index, Span],
        deliver_part: DeliverPart,
        deliver: Deliver,
        done: Done,
        keep: Keep,
    ) -> None:
        """Read parts, and load the chunks where that fails. In a loader thread."""
        left = []
        for index, span in spans.items():
            try:
                if not self._read(index, span, deliver_part):
                    left.append(index)
            except Exception:
                log.exception("a part of chunk %s could not be read", list(index))
                left.append(index)
        self._loads.request(left, deliver, done, keep=keep, ahead=False)

    def _read(self, index: Index, span: Span, deliver: DeliverPart) -> bool:
        """Whether a part was read and delivered."""
        # More than half of a chunk is no part of it.
        most = min(_LARGEST, self._parts.nbytes // 2)
        cost = _COPIES * (most if self._parts.divided else span.length)
        budget = self._cache.budget
        if not budget.try_reserve(cost):
            return False
        try:
            read = self._parts.read(index, span, most)
            if read is not None:
                deliver(index, read.data)
        finally:
            budget.release(cost)
        stats = self._cache.stats
        with self._lock:
            self._gain = min(0, self._gain + (-1 if read is None else 1))
            if read is None:
                return False
            stats.parts += 1
            stats.decoded_bytes += read.decoded
            if (found := self._spent.get(index)) is not None:
                spent, end = found
                self._spent[index] = spent + read.decoded - span.length, end
        stored = self._layout.stored_index(index)
        if self._freshness.saw(stored, read.generation):
            self._loads.drop_stored({stored})
        return True
