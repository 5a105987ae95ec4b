"""Elements of fixed size one after another: ``array.bin`` and each chunk and shard file.

`FlatView` has them for all readers; `StreamView` is one reader, and reads ahead of it if it scans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.read.array_chunks import NotCached
from zarrfs.errors import ChunkError, UncountedError
from zarrfs.views.elements.contiguous import ContiguousChunks
from zarrfs.views.elements.element_changes import ElementChanges, Part, Step
from zarrfs.views.elements.elements import MOST_NOW, Elements
from zarrfs.views.slabs.expectation import Expectation
from zarrfs.views.slabs.sequential_writes import SequentialWrites
from zarrfs.views.slabs.slabs import Slab, Slabs
from zarrfs.views.view import Answer, Data, RemainingWrite, converting

# Tiles that the event loop changes for one write, at some 50 µs each. Larger requests are handled
# in a thread.
_MOST_STEPS = 64

# A reader counts as scanning after this many sequential bytes, that is, at least two requests: the
# kernel reads as much around one page of a mapping that a program touches. The kernel keeps several
# requests in flight, which may arrive out of order, except for the first ones.
_BELIEVED = 1 << 20
# Most readers that begin at the start of the file continue: two requests of 128 KiB are enough,
# which is as far as the kernel reads ahead of files that root has not mounted. To answer reading
# around a fault with an error would be 15 % faster, but readers with O_DIRECT would see it.
_BELIEVED_AT_START = 256 << 10
_DISORDER = 8 << 20
_EARLY_DISORDER = 1 << 20
# Times that a read begins anew because the array has changed, or was checked for changes.
_TRIES = 5


class FlatView:
    """The bytes of `Elements`; a read or write may begin and end within an element."""

    def __init__(self, elements: Elements, *, gathers: bool = True) -> None:
        """``gathers`` : whether writes in file order are gathered; see `SequentialWrites`."""
        self.elements = elements
        self.item_size = elements.dtype.itemsize
        self.size = elements.count * self.item_size
        self._changes = ElementChanges(elements)
        self._sequential = SequentialWrites.plan(elements, self._changes) if gathers else None

    @cached_property
    def _contiguous(self) -> ContiguousChunks | None:
        return ContiguousChunks.plan(self.elements.window, self.item_size)

    def read_now(self, offset: int, size: int) -> Data | None:
        stop = min(offset + size, self.size)
        try:
            if offset < stop and (data := self.elements.get_bytes(offset, stop)) is not None:
                return data
            first, last = self._span(offset, size)
            if self.elements.crosses(first, last, MOST_NOW):
                return None
            elements = self.elements.get(first, last)
        except NotCached:
            return None
        return None if elements is None else self._cut(elements, first, offset, size)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        if self.elements.fetch_bytes(offset, min(offset + size, self.size), answer):
            return
        first, last = self._span(offset, size)
        cut = converting(answer, partial(self._cut, first=first, offset=offset, size=size))
        if self.elements.crosses(first, last, MOST_NOW):
            self.elements.array.in_thread(partial(self.elements.fetch, first, last, cut), cut)
        else:
            self.elements.fetch(first, last, cut)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        data = memoryview(data)
        sequential = self._sequential
        if sequential is not None and sequential.follows(offset, len(data)):
            done = sequential.write(offset, data, wait=False)
            return partial(self._gather, offset + done, data[done:]) if done < len(data) else None
        steps = self._steps(offset, data)
        for number, step in enumerate(steps):
            if number >= _MOST_STEPS or not step(False):
                return partial(_finish, step, steps)
        return None

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        return None if self._contiguous is None else self._contiguous.span(offset)

    def peek(self, start: int, stop: int) -> Data | None:
        try:
            return self.elements.get_bytes(start, stop)
        except NotCached:
            return None

    def close(self) -> None:
        pass

    def _gather(self, offset: int, data: memoryview) -> None:
        assert self._sequential is not None
        done = self._sequential.write(offset, data, wait=True)
        for step in self._steps(offset + done, data[done:]):
            step(True)

    def _steps(self, offset: int, data: memoryview) -> Iterator[Step]:
        """Steps that change whole elements together, and other elements byte by byte."""
        item = self.item_size
        first, into = divmod(offset, item)
        head = min(-offset % item, len(data))
        tail = (len(data) - head) % item
        body = np.frombuffer(data[head : len(data) - tail], self.elements.dtype)
        first_whole = first + bool(into)
        parts = [
            part
            for part in (
                Part(first, into, data[:head]),
                Part(first_whole + len(body), 0, data[len(data) - tail :]),
            )
            if part.data
        ]
        changes = self._changes
        changes.check(body, parts)
        yield from changes.store(first_whole, body)
        for part in parts:
            yield from changes.store_part(part)

    def _span(self, offset: int, size: int) -> tuple[int, int]:
        """First and last (exclusive) element that a read touches."""
        stop = min(offset + size, self.size)
        first = min(offset, stop) // self.item_size
        return first, max(first, -(-stop // self.item_size))

    def _cut(self, elements: NDArray[Any], first: int, offset: int, size: int) -> Data:
        start = first * self.item_size
        stop = min(offset + size, self.size)
        return elements.view(np.uint8).data[max(0, offset - start) : max(0, stop - start)]


def _finish(step: Step, steps: Iterator[Step]) -> None:
    for left in chain((step,), steps):
        left(True)


class StreamView:
    """One reader of a flat file: finds out whether it scans, and loads ahead of it if so.

    Only the event loop calls the methods, except for `from_slabs` and `take`, which any thread may
    call. These find slabs under the lock of the cache, and two threads that want a slab at the same
    time join one load. A thread may ask for a slab ahead after the reader has stopped. If no other
    reader scans, there is no room for that slab, and it is not loaded.
    """

    def __init__(self, view: FlatView, slabs: Slabs) -> None:
        self.view = view
        self.slabs = slabs
        self._end = 0
        self._run = 0
        self._from_start = False
        self._scans = False
        self._reading = -1
        self._begun = False
        self._expected = Expectation()
        self._array = view.elements.array
        self._state = self._array.state
        self.size = view.size

    def read_now(self, offset: int, size: int) -> Data | None:
        self._watch(offset, size)
        if not self._scans:
            kept = None
            if self.slabs.complete:
                kept = self.slabs.peek(offset, min(size, self.size - offset))
            return self.view.read_now(offset, size) if kept is None else kept
        return self.from_slabs(offset, size)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        keep = False
        if not self._scans and size >= self.slabs.least_kept:
            keep = self.slabs.worth_keeping(offset, min(size, self.size - offset))
        if self._scans or keep:
            stop = min(offset + size, self.size)
            _Wait(self, offset, stop, answer, keep, position=offset)()
        else:
            self.view.read(offset, size, answer)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        return self.view.write(offset, data)

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        # Scanned bytes go through the kernel's page cache in any case.
        return None if self._scans else self.view.chunk_range_at(offset)

    def peek(self, start: int, stop: int) -> Data | None:
        return self.view.peek(start, stop)

    def close(self) -> None:
        self._stop()

    def _watch(self, offset: int, size: int) -> None:
        disorder = _DISORDER if self._scans else _EARLY_DISORDER
        if self._end - disorder <= offset <= self._end + disorder and self._end:
            self._run += size
            self._end = max(self._end, offset + size)
            follows = True
        else:
            self._run = size
            self._end = offset + size
            self._expected.times = 1
            self._stop()
            follows = self._from_start = offset == 0
        if (state := self._array.state) != self._state:
            self._state = state
            self._disturbed(size)
        if not follows or self._scans or not self.slabs.possible:
            return
        believed = min(_BELIEVED, _BELIEVED_AT_START) if self._from_start else _BELIEVED
        times = self._expected.times
        if self._run >= believed * times or (
            times == 1 and self.slabs.needed(offset, min(size, self.size - offset))
        ):
            self._scans = True
            self.slabs.enter()

    def _disturbed(self, size: int) -> None:
        """The array has changed since the request before this one, which is of ``size`` bytes."""
        if self._scans:
            self._expected.disappointed()
            self._stop()
        self._run = size

    def _stop(self) -> None:
        if self._scans:
            self._scans = False
            self._reading = -1
            self._begun = False
            self.slabs.leave()

    def from_slabs(self, offset: int, size: int) -> Data | None:
        """Bytes of complete slabs; None if one is missing. Starts to load the next slabs."""
        stop = min(offset + size, self.size)
        parts: list[memoryview] = []
        freshness = self.slabs.freshness
        foreign = freshness.foreign
        while offset < stop:
            slab = self.slabs.ready(offset)
            if slab is None:
                return None
            parts.append(self.take(slab, offset, stop))
            offset += len(parts[-1])
        if len(parts) == 1:
            return parts[0]
        # A chunk may lie in several slabs.
        return b"".join(parts) if foreign == freshness.foreign else None

    def take(self, slab: Slab, offset: int, stop: int) -> memoryview:
        """Bytes of a complete slab, up to ``stop`` or its end. Starts to load the next slabs."""
        end = min(stop, slab.stop)
        self.slabs.read_to(slab, end)
        if end == slab.stop:
            self._expected.times = 1
        if self._scans and slab.start != self._reading:
            self._reading = slab.start
            self._fetch_ahead(slab.stop)
        return slab.data[offset - slab.start : end - slab.start]

    def waits_for(self, position: int) -> None:
        """If a read waits for the first slab of a scan, at ``position``, load the next ones, too.

        The link to a distant store would otherwise be idle until that slab is there. Slabs of a
        local store compete for the processors, so the first one is loaded alone. Later slabs load
        when the reader enters one, which keeps them within the room that there is.
        """
        if self._scans and not self._begun and self._reading == -1 and self.slabs.distant:
            self._begun = True
            self._fetch_ahead(self.slabs.end(position))

    def _fetch_ahead(self, position: int) -> None:
        """Start to load the slabs from ``position`` on."""
        for _ in range(self.slabs.ahead):
            if position >= self.size or not self.slabs.fetch(position, None):
                return
            position = self.slabs.end(position)


@dataclass(slots=True, eq=False, repr=False)
class _Wait:
    """A read that waits for slabs.

    The read copies slab by slab, so that only one slab has to be in memory at a time. A chunk may
    lie in several slabs: if the array changes meanwhile, the read begins anew, and after some tries
    goes on chunk by chunk.

    An object and not a closure, which would refer to itself: the reply would then keep the memory
    of its slab until a garbage collection.
    """

    stream: StreamView
    offset: int
    stop: int
    answer: Answer
    keep: bool
    position: int
    tries: int = _TRIES
    foreign: int = 0
    # The array's state and last check when the slab was asked for that the read waits for.
    asked: tuple[tuple[int, ...], int] | None = None
    # The bytes copied so far; allocated when the first slab ends before the request does.
    held: memoryview | None = None

    def __call__(self) -> None:
        """Continue; called in any thread whenever a slab has been loaded, or has failed."""
        try:
            self._go_on()
        except Exception as error:  # noqa: BLE001 - the reader must get an answer
            self.answer(UncountedError.of("a scan", error))

    def _go_on(self) -> None:
        stream, stop, freshness = self.stream, self.stop, self.stream.slabs.freshness
        while (position := self.position) < stop:
            if position == self.offset:
                self.foreign = freshness.foreign
            now = stream.slabs.state, freshness.checks
            slab = stream.slabs.ready(position)
            # While programs write, no slab may ever be that of the present state.
            in_vain = slab is None and self.asked not in (None, now)
            if in_vain or self.foreign != freshness.foreign:
                self.position, self.held, self.asked = self.offset, None, None
                self.tries -= 1
                if self.tries < 0:
                    break
                continue
            if slab is None:
                self.asked = now
                if stream.slabs.fetch(position, self, keep=self.keep):
                    stream.waits_for(position)
                    return
                break
            self.asked = None
            data = stream.take(slab, position, stop)
            if len(data) == stop - self.offset:
                self.answer(data)
                return
            if self.held is None:
                # Not cleared first, as a bytearray would be.
                self.held = np.empty(stop - self.offset, np.uint8).data
            begun = position - self.offset
            self.held[begun : begun + len(data)] = data
            self.position += len(data)
            # The memory of this slab may be needed for the next one.
            del slab, data
        if self.held is None:
            self._read_chunks()
        elif self.position == stop:
            self.answer(self.held)
        else:
            # A chunk is bad or memory is short: read the rest chunk by chunk.
            stream.view.read(self.position, stop - self.position, self._join)

    def _join(self, rest: Data | ChunkError) -> None:
        """Answer with the bytes copied so far, followed by the rest."""
        if isinstance(rest, ChunkError):
            self.answer(rest)
        elif self.foreign != self.stream.slabs.freshness.foreign:
            self._read_chunks()
        else:
            assert self.held is not None
            head = self.held[: self.position - self.offset]
            self.answer(b"".join((head, rest)))

    def _read_chunks(self) -> None:
        """Read all of it chunk by chunk, each in one state."""
        self.stream.view.read(self.offset, self.stop - self.offset, self.answer)
