"""Changes to the elements of a flat file, as steps that each change one tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.tile_copy import Bits, Bytes
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import DecodeError, InvalidElement
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.data_type import DataType
from zarrfs.views.elements.elements import Elements
from zarrfs.views.elements.window import Window, boxes
from zarrfs.views.view import Data


class Part(NamedTuple):
    """Some bytes of one element of a file, from ``start`` on."""

    element: int
    start: int
    data: Data


Step = Callable[[bool], bool]
"""Changes a tile; the argument says whether it may block. Returns whether it is done. See
`WritableArray.write`.
"""


class ElementChanges:
    """Changes elements of a writable array, and checks the new elements."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements

    @cached_property
    def window(self) -> Window:
        """The part of the array in the file, over the grid of tiles; in the file's axis order."""
        shown, tiles = self._elements.window, self.array.tiles
        if tiles.single:
            return shown
        # The shown array may be shorter than the longest that its files can contain.
        shape = shown.grid.shape
        grid = tiles.grid.resized(shape[::-1] if self._elements.reversed else shape)
        axes = grid.axes[::-1] if self._elements.reversed else grid.axes
        return Window(ChunkGrid(axes), shown.origin, shown.shape)

    @property
    def array(self) -> WritableArray:
        """The array, which must be writable."""
        array = self._elements.array
        assert isinstance(array, WritableArray)
        return array

    @property
    def checks(self) -> bool:
        """Whether `check` could raise."""
        return self._data_type.check is not None or self._data_type.canonical is not None

    def check(self, values: NDArray[Any], parts: Sequence[Part]) -> None:
        """Raises InvalidElement for values that the array's data type does not have.

        values : of `Elements.dtype`.
        parts : of data types in which each byte is valid or not by itself.
        """
        if not self.checks:
            return
        carrier = self._elements.carrier
        self._check(values.astype(carrier))
        for part in parts:
            self._check(self._in_memory(part)[0].view(carrier))

    def change(self, first: int, values: NDArray[Any]) -> None:
        """Check and set the elements from ``first`` on. Blocks. Raises InvalidElement."""
        self.check(values, [])
        for step in self.store(first, values):
            step(True)

    def store(self, first: int, values: NDArray[Any]) -> Iterator[Step]:
        """The steps that set the elements from ``first`` on.

        values : of `Elements.dtype`. Elements beyond the array are dropped.
        """
        elements, window, write = self._elements, self.window, self.array.write
        for box in boxes(window.shape, first, first + len(values)):
            start = box.position - first
            source = values[start : start + box.elements].reshape(box.shape)
            for copy in window.copies(box):
                part, where = source[copy.target], copy.source
                if elements.reversed:
                    part, where = part.T, where[::-1]
                yield partial(write, elements.index(copy), where, part, elements.carrier)

    def store_part(self, part: Part) -> Iterator[Step]:
        """The steps that set some bytes of an element."""
        elements, window, write_part = self._elements, self.window, self.array.write_part
        value, known = self._in_memory(part)
        for box in boxes(window.shape, part.element, part.element + 1):
            for copy in window.copies(box):
                where = copy.source[::-1] if elements.reversed else copy.source
                place = tuple(s.start for s in where)
                yield partial(write_part, elements.index(copy), place, value, known)

    @property
    def _data_type(self) -> DataType:
        return self._elements.array.array.layout.data_type

    def _check(self, values: NDArray[Any]) -> None:
        data_type = self._data_type
        elements = values.view(data_type.dtype)
        if data_type.check is not None:
            try:
                data_type.check(elements)
            except DecodeError as error:
                raise InvalidElement(str(error)) from error
        if data_type.canonical is None:
            return
        if data_type.canonical(elements).tobytes() != elements.tobytes():
            raise InvalidElement(
                f"a byte is not a valid {data_type.name}: its unused bits do not fit"
            )

    def _in_memory(self, part: Part) -> tuple[Bytes, Bits]:
        """The bytes of an element in the array's byte order, and which of these the part has."""
        dtype, carrier = self._elements.dtype, self._elements.carrier
        value = np.zeros((2, dtype.itemsize), np.uint8)
        stop = part.start + len(part.data)
        value[0, part.start : stop] = np.frombuffer(part.data, np.uint8)
        value[1, part.start : stop] = 1
        turned = np.ascontiguousarray(value.view(dtype).astype(carrier)).view(np.uint8)
        return turned[0], turned[1].astype(bool)
