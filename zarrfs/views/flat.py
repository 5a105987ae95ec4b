"""Elements of fixed size one after another: ``array.bin`` and each chunk and shard file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.read.array_chunks import NotCached
from zarrfs.views.elements.contiguous import ContiguousChunks
from zarrfs.views.elements.element_changes import ElementChanges, Part, Step
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs.sequential_writes import SequentialWrites
from zarrfs.views.view import Answer, Data, RemainingWrite, converting

# Tiles that the event loop changes for one write, at some 50 µs each, and chunks that it copies
# from for one read, at up to 30 µs. Larger requests are handled in a thread.
_MOST_STEPS = 64
_MOST_CHUNKS = 512


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
            if self._crosses_many(first, last):
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
        if self._crosses_many(first, last):
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

    def _crosses_many(self, first: int, last: int) -> bool:
        """Whether the elements are in too many chunks for the event loop to list."""
        if (last - first) // self.elements.mean_piece < _MOST_CHUNKS:
            return False
        return self.elements.count_chunks(first, last) > _MOST_CHUNKS

    def _cut(self, elements: NDArray[Any], first: int, offset: int, size: int) -> Data:
        start = first * self.item_size
        stop = min(offset + size, self.size)
        return elements.view(np.uint8).data[max(0, offset - start) : max(0, stop - start)]


def _finish(step: Step, steps: Iterator[Step]) -> None:
    for left in chain((step,), steps):
        left(True)
