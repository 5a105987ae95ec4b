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
from zarrfs.views.window import Box, Copy, Window, boxes


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

    @property
    def window(self) -> Window:
        """What part of the array the file is, in the file's axis order."""
        return self._window

    def index(self, copy: Copy) -> Index:
        """The chunk to copy from, as the array counts."""
        return copy.chunk[::-1] if self._reversed else copy.chunk

    def copy(self, chunk: Chunk, copy: Copy, target: Chunk) -> None:
        """Carry out a copy into the memory of its box."""
        target[copy.target] = (chunk.T if self._reversed else chunk)[copy.source]

    def box_target(self, elements: Chunk, first: int, box: Box) -> Chunk:
        """The memory of a box, in its shape; fill value where no chunk reaches.

        elements : memory of elements of the file, ``first`` on.
        """
        start = box.position - first
        target = elements[start : start + box.elements].reshape(box.shape)
        if self._window.overhangs(box):
            target[...] = self._fill
        return target

    def read_now(self, offset: int, size: int) -> Data | None:
        plan = _Plan(self, offset, size)
        for box in plan.boxes:
            target = self.box_target(plan.elements, plan.first, box)
            for copy in self._window.copies(box):
                chunk = self._array.get(self.index(copy))
                if chunk is None:
                    return None
                self.copy(chunk, copy, target)
        return plan.result()

    def read(self, offset: int, size: int, answer: Answer) -> None:
        plan = _Plan(self, offset, size)
        copies: dict[Index, list[tuple[Chunk, Copy]]] = defaultdict(list)
        for box in plan.boxes:
            target = self.box_target(plan.elements, plan.first, box)
            for copy in self._window.copies(box):
                copies[self.index(copy)].append((target, copy))

        def deliver(index: Index, chunk: Chunk) -> None:
            for target, copy in copies[index]:
                self.copy(chunk, copy, target)

        def done(error: ChunkError | None) -> None:
            answer(plan.result() if error is None else error)

        self._array.request(list(copies), deliver, done)

    def close(self) -> None:
        pass


class _Plan:
    """One read: memory for whole elements, of which the bytes asked for are a part."""

    __slots__ = ("_skip", "_stop", "boxes", "elements", "first")

    def __init__(self, view: FlatView, offset: int, size: int) -> None:
        item = view.dtype.itemsize
        stop = min(offset + size, view.size)
        self.first = offset // item
        last = max(self.first, -(-stop // item))
        self._skip = offset - self.first * item
        self._stop = stop - self.first * item
        self.elements = np.empty(last - self.first, view.dtype)
        self.boxes = list(boxes(view.window.shape, self.first, last))

    def result(self) -> Data:
        return self.elements.view(np.uint8).data[self._skip : self._stop]
