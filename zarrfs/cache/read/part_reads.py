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
from typing import NamedTuple

from zarrfs.array.part_reader import PartRead, PartReader
from zarrfs.cache.read.chunk_loads import ChunkLoads, Deliver
from zarrfs.cache.read.flights import Done, Keep, Ticket
from zarrfs.format.chunk_grid import Index
from zarrfs.store.ranges import Span

log = logging.getLogger(__name__)

# Bytes of a request. The kernel asks for more where a program reads on.
_SMALL = 16 << 10
_OVERHEAD = 128 << 10
# Bytes that are decoded for a part, and copies of them that are in memory meanwhile.
_LARGEST = 1 << 20
_COPIES = 3
# Chunks whose reads are remembered. So many chunks have half a GiB at least, and would not stay in
# memory if they were loaded.
_REMEMBERED = 1 << 12
# After so many failures that no success has made up for, no more parts are tried: the codec divides
# the chunks too coarsely, or most of them are not stored.
_MOST_FAILURES = 8


class Wanted(NamedTuple):
    """Some bytes of several chunks.

    spans : what is wanted of each chunk.
    deliver_part : gets these bytes of a chunk that is read in part. Called in any thread; must not
        block. It may keep them as the reply if they are read-only.
    deliver : gets each other chunk, and maybe one whose part was delivered, if that has failed.
    done : called once at the end, in any thread.
    keep : whether and how chunks that are loaded should stay in memory.
    """

    spans: Mapping[Index, Span]
    deliver_part: Callable[[Index, memoryview], None]
    deliver: Deliver
    done: Done
    keep: Keep


class PartReads:
    """Reads parts of the chunks of one array, or loads these. Thread-safe."""

    def __init__(self, parts: PartReader, loads: ChunkLoads) -> None:
        self._cache = loads.cache
        self._array = loads.array
        self._parts = parts
        self._loads = loads
        layout = self._array.layout
        self._array_bytes = math.prod(layout.read.shape) * layout.data_type.item_size
        # A codec that has to decode more than half of a chunk may as well decode all of it.
        self._most = min(_LARGEST, parts.nbytes // 2)
        self._lock = Lock()
        # For each chunk what its parts have cost, in bytes, and where the last one ended.
        self._spent: OrderedDict[Index, tuple[int, int]] = OrderedDict()
        self._failures = 0

    @classmethod
    def plan(cls, loads: ChunkLoads) -> PartReads | None:
        """None if no chunk of the array is worth it."""
        parts = loads.array.parts
        if parts is None or parts.nbytes <= _OVERHEAD or not loads.array.store.traits.near:
            return None
        return cls(parts, loads)

    @property
    def pay(self) -> bool:
        """Whether any chunk should be read in parts now."""
        stays = self._array_bytes <= self._cache.budget.total
        return self._failures <= _MOST_FAILURES and not (stays and self._parts.divided)

    def request(self, wanted: Wanted) -> None:
        """Deliver parts of chunks, and load the other chunks. Does not block."""
        spans, _, deliver, done, keep = wanted
        chosen = self._choose(spans)
        rest = [index for index in spans if index not in chosen]
        ticket = Ticket(2, done)
        if chosen:
            part = ticket.part()
            work = partial(self._work, wanted._replace(spans=chosen, done=part))
            self._loads.in_thread(work, part)
        else:
            ticket.finish()
        self._loads.request(rest, deliver, ticket.part(), keep=keep, ahead=False)

    def _choose(self, spans: Mapping[Index, Span]) -> dict[Index, Span]:
        """The chunks to read in parts this time."""
        if not self.pay or sum([span.length for span in spans.values()]) > _SMALL:
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

    def _work(self, wanted: Wanted) -> None:
        """Read parts, and load the chunks where that fails. In a loader thread."""
        budget = self._cache.budget
        left = []
        for index, span in wanted.spans.items():
            cost = _COPIES * (self._most if self._parts.divided else span.length)
            cost += self._array.shard_cost
            if not budget.try_reserve(cost):
                left.append(index)
                continue
            try:
                read = self._read(index, span)
                if read is not None:
                    wanted.deliver_part(index, read.data)
            except Exception:
                log.exception("a part of chunk %s could not be read", list(index))
                read = None
            finally:
                budget.release(cost)
            self._note(index, span, read)
            if read is None:
                left.append(index)
        self._loads.request(left, wanted.deliver, wanted.done, keep=wanted.keep, ahead=False)

    def _read(self, index: Index, span: Span) -> PartRead | None:
        """A part of a chunk; None if that has to be read as a whole."""
        read = self._parts.read(index, span, self._most)
        if read is not None:
            stored = self._array.layout.stored_index(index)
            self._loads.freshness.saw([(stored, read.generation)], self._loads.drop_stored)
        return read

    def _note(self, index: Index, span: Span, read: PartRead | None) -> None:
        """Count a part, or the failure to read it."""
        stats = self._cache.stats
        with self._lock:
            if read is None:
                self._failures += 1
                return
            self._failures = max(0, self._failures - 1)
            stats.misses += 1
            stats.parts += 1
            stats.decoded_bytes += read.decoded
            if (found := self._spent.get(index)) is not None:
                spent, end = found
                self._spent[index] = spent + read.decoded - span.length, end
