"""Elements of fixed size one after another: ``array.bin`` and each chunk and shard file."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.writable_array import WritableArray
from zarrfs.errors import ChunkError, ZarrfsError
from zarrfs.views.elements import Elements
from zarrfs.views.fragments import Fragments
from zarrfs.views.view import Answer, Data


class FlatView:
    """The bytes of `Elements`; a read need not begin or end where an element does."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.item_size = elements.dtype.itemsize
        self.size = elements.count * self.item_size
        self._fragments = Fragments(self.item_size)
        self._lock = Lock()

    @property
    def unsettled(self) -> bool:
        """Whether parts of elements were written whose rest is still to come."""
        return bool(self._fragments)

    def read_now(self, offset: int, size: int) -> Data | None:
        first, last = self._span(offset, size)
        if self._fragments and self._fragments.touches(first, last):
            return None
        elements = self.elements.get(first, last)
        return None if elements is None else self._cut(elements, first, offset, size)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        first, last = self._span(offset, size)
        if self._fragments and self._fragments.touches(first, last):
            assert isinstance(self.elements.array, WritableArray)
            self.elements.array.work(partial(self._read_settled, offset, size, answer))
            return

        def cut(elements: NDArray[Any] | ChunkError) -> None:
            if isinstance(elements, ChunkError):
                answer(elements)
            else:
                answer(self._cut(elements, first, offset, size))

        self.elements.fetch(first, last, cut)

    def write_now(self, offset: int, data: Data) -> bool:
        # Whoever has the lock may be waiting for the store.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._write(offset, memoryview(data), wait=False)
        finally:
            self._lock.release()

    def write(self, offset: int, data: Data) -> None:
        with self._lock:
            self._write(offset, memoryview(data), wait=True)

    def settle(self) -> None:
        with self._lock:
            if not self._fragments:
                return
            old = {}
            for element in self._fragments.elements:
                old[element] = self.elements.wait_for(element, element + 1).tobytes()
            for element, whole in self._fragments.over(old):
                self._set(element, whole, wait=True)
            self._fragments.clear()

    def close(self) -> None:
        pass

    def _write(self, offset: int, data: memoryview, *, wait: bool) -> bool:
        """Whole elements go to the array at once, parts of elements when they are whole."""
        item = self.item_size
        first, into = divmod(offset, item)
        head = min(-offset % item, len(data))
        tail = (len(data) - head) % item
        body = data[head : len(data) - tail]
        first_whole = first + bool(into)
        last_whole = first_whole + len(body) // item
        if body and not self._set(first_whole, body, wait=wait):
            return False
        self._fragments.forget(first_whole, last_whole)
        for element, start, part in (
            (first, into, data[:head]),
            (last_whole, 0, data[len(data) - tail :]),
        ):
            if not part:
                continue
            whole = self._fragments.add(element, start, part)
            if whole is not None and not self._set(element, whole, wait=wait):
                # It is still known byte by byte, so this can be done again.
                return False
            if whole is not None:
                self._fragments.forget(element, element + 1)
        return True

    def _set(self, first: int, data: Data, *, wait: bool) -> bool:
        values = np.frombuffer(data, self.elements.dtype)
        return self.elements.store(first, values, wait=wait)

    def _read_settled(self, offset: int, size: int, answer: Answer) -> None:
        try:
            self.settle()
        except ChunkError as error:
            answer(error)
        except ZarrfsError as error:
            answer(ChunkError(self.elements.array.array.path, str(error)))
        else:
            self.read(offset, size, answer)

    def _span(self, offset: int, size: int) -> tuple[int, int]:
        """First and last (exclusive) element that a read touches."""
        stop = min(offset + size, self.size)
        first = min(offset, stop) // self.item_size
        return first, max(first, -(-stop // self.item_size))

    def _cut(self, elements: NDArray[Any], first: int, offset: int, size: int) -> Data:
        start = first * self.item_size
        stop = min(offset + size, self.size)
        return elements.view(np.uint8).data[max(0, offset - start) : max(0, stop - start)]
