"""Bits that tell which elements of a file are missing ones, and zeros in their place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import NotPermitted
from zarrfs.views.body_view import BodyView
from zarrfs.views.elements.elements import Elements
from zarrfs.views.view import Data, RemainingWrite, WritableView

# Elements that are decoded at once.
_COUNTED = 1 << 19


class Masked(NamedTuple):
    """Elements in a file from ``start`` on, of which those that are ``other`` are missing ones.

    other : the 1, 2, 4 or 8 bytes of an element.
    zeroed : whether the file has zeros for missing ones; else it has a bit for each element.
    """

    start: int
    other: bytes
    zeroed: bool


def count_equal(elements: Elements, other: bytes) -> int:
    """How many elements have the bytes ``other``. Blocks. Raises ChunkError."""
    found = 0
    for first in range(0, elements.count, _COUNTED):
        some = elements.wait_for(first, min(first + _COUNTED, elements.count))
        found += int(np.count_nonzero(_equal(some, other)))
    return found


def _equal(elements: NDArray[Any], other: bytes) -> NDArray[np.bool_]:
    """Which elements are ``other``. They may also be given as bytes."""
    # The event loop compares up to 8 million for one request: numpy is fast with integers alone.
    unsigned = f"u{len(other)}"
    found: NDArray[np.bool_] = elements.view(unsigned) == np.frombuffer(other, unsigned)
    return found


class BitsView(BodyView):
    """The lowest bit of the first byte tells whether the first element of ``body`` is not
    ``other``.
    """

    def __init__(self, body: WritableView, other: bytes) -> None:
        super().__init__(body, -(-body.size // (8 * len(other))))
        self._other = other

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        raise NotPermitted("bits follow from the elements")

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        each = 8 * len(self._other)
        return offset * each, min((offset + size) * each, self._body.size)

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        equal = _equal(np.frombuffer(inside, np.uint8), self._other)
        return np.packbits(~equal, bitorder="little").data


class ZeroedView(BodyView):
    """``body`` with zeros for elements that are ``other``."""

    def __init__(self, body: WritableView, other: bytes) -> None:
        super().__init__(body, body.size)
        self._other = other

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        raise NotPermitted("some of the elements are not those of the array")

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        item = len(self._other)
        return offset // item * item, -(-(offset + size) // item) * item

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        elements = np.frombuffer(inside, f"u{len(self._other)}").copy()
        elements[_equal(elements, self._other)] = 0
        into = offset % len(self._other)
        return elements.view(np.uint8)[into : into + size].data
