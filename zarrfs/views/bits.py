"""Bits that tell which elements of a file are missing ones, and zeros in their place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zarrfs.errors import NotPermitted
from zarrfs.views.body_view import BodyView
from zarrfs.views.elements.elements import Elements
from zarrfs.views.view import Data, RemainingWrite, WritableView

# Elements that are decoded at once.
_COUNTED = 1 << 19


class Bits(NamedTuple):
    """Where bits lie in a file: from ``start`` on, one for each element that is not ``other``."""

    start: int
    other: bytes


class Zeroed(NamedTuple):
    """Elements from ``start`` on, with zeros for those that are ``other``."""

    start: int
    other: bytes


def count_equal(elements: Elements, other: bytes) -> int:
    """How many elements have the bytes ``other``. Blocks. Raises ChunkError."""
    found = 0
    for first in range(0, elements.count, _COUNTED):
        some = elements.wait_for(first, min(first + _COUNTED, elements.count))
        found += int((some.view(f"V{len(other)}") == np.void(other)).sum())
    return found


class BitsView(BodyView):
    """The lowest bit of the first byte tells whether the first element of ``body`` is not
    ``other``.
    """

    def __init__(self, body: WritableView, other: bytes) -> None:
        super().__init__(body, -(-body.size // (8 * len(other))))
        self._other = np.frombuffer(other, np.uint8)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        raise NotPermitted("bits follow from the elements")

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        each = 8 * len(self._other)
        return offset * each, min((offset + size) * each, self._body.size)

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        elements = np.frombuffer(inside, np.uint8).reshape(-1, len(self._other))
        return np.packbits((elements != self._other).any(axis=1), bitorder="little").data


class ZeroedView(BodyView):
    """``body`` with zeros for elements that are ``other``."""

    def __init__(self, body: WritableView, other: bytes) -> None:
        super().__init__(body, body.size)
        self._other = np.frombuffer(other, np.uint8)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        raise NotPermitted("some of the elements are not those of the array")

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        item = len(self._other)
        return offset // item * item, -(-(offset + size) // item) * item

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        elements = np.frombuffer(inside, np.uint8).reshape(-1, len(self._other)).copy()
        elements[(elements == self._other).all(axis=1)] = 0
        into = offset % len(self._other)
        return elements.reshape(-1)[into : into + size].data
