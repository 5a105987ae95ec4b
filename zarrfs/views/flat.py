"""Elements of an array one after another: ``array.bin`` and each chunk and shard file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zarrfs.cache.chunk_cache import CachedArray
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import ChunkGrid, Index
from zarrfs.format.codec import Chunk
from zarrfs.views.view import Answer, Data
from zarrfs.views.window import Box, Slices, Window, boxes


@dataclass(frozen=True, slots=True)
class FlatConfig:
    """How elements are laid out: their byte order, and which axis is fastest."""

    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"


class FlatView:
    """A window of an array as a flat file."""

    def __init__(self, array: CachedArray, window: Window, config: FlatConfig) -> None:
        """``window`` is in the array's own axis order, whatever ``config.order`` says."""
        self._array = array
        self._reversed = config.order == "F"
        if self._reversed:
            window = Window(
                ChunkGrid(window.grid.axes[::-1]), window.origin[::-1], window.shape[::-1]
            )
        self._window = window
        layout = array.array.layout
        self._dtype = layout.data_type.stored_dtype(big_endian=config.byteorder == "big")
        self._item = self._dtype.itemsize
        self._fill = layout.data_type.element(layout.fill)
        self.size = window.elements * self._item

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements in the file, byte order included."""
        return self._dtype

    def read_now(self, offset: int, size: int) -> Data | None:
        plan = _Plan(self, offset, size)
        for box in plan.boxes:
            target = plan.target(box)
            for copy in self._window.copies(box):
                chunk = self._array.get(copy.chunk[::-1] if self._reversed else copy.chunk)
                if chunk is None:
                    return None
                target[copy.target] = (chunk.T if self._reversed else chunk)[copy.source]
        return plan.result()

    def read(self, offset: int, size: int, answer: Answer) -> None:
        plan = _Plan(self, offset, size)
        wanted: dict[Index, list[tuple[Chunk, Slices, Slices]]] = defaultdict(list)
        for box in plan.boxes:
            target = plan.target(box)
            for copy in self._window.copies(box):
                index = copy.chunk[::-1] if self._reversed else copy.chunk
                wanted[index].append((target, copy.target, copy.source))

        def deliver(index: Index, chunk: Chunk) -> None:
            source = chunk.T if self._reversed else chunk
            for target, where, what in wanted[index]:
                target[where] = source[what]

        def done(error: ChunkError | None) -> None:
            answer(plan.result() if error is None else error)

        self._array.request(list(wanted), deliver, done)


class _Plan:
    """One read: memory for whole elements, of which the bytes asked for are a part."""

    __slots__ = ("_buffer", "_first", "_skip", "_stop", "_view", "boxes")

    def __init__(self, view: FlatView, offset: int, size: int) -> None:
        item = view._item
        stop = max(offset, min(offset + size, view.size))
        self._view = view
        self._first = offset // item
        self._skip = offset - self._first * item
        self._stop = stop - self._first * item
        last = -(-stop // item)
        self._buffer = np.empty(last - self._first if stop > offset else 0, view._dtype)
        self.boxes = list(
            boxes(view._window.shape, self._first, last if stop > offset else self._first)
        )

    def target(self, box: Box) -> Chunk:
        """The memory of a box, in the box's shape; fill value where no chunk reaches."""
        start = box.position - self._first
        target = self._buffer[start : start + box.elements].reshape(box.shape)
        if self._view._window.overhangs(box):
            target[...] = self._view._fill
        return target

    def result(self) -> Data:
        return self._buffer.view(np.uint8).data[self._skip : self._stop]
