"""Files of a header, the elements, and a trailer."""

from __future__ import annotations

import numpy as np

from zarrfs.views.body_view import BodyView
from zarrfs.views.tiles.computed import Computed, Table
from zarrfs.views.tiles.gathered import SectionedView, WholeFile
from zarrfs.views.view import Data, RemainingWrite, WritableView


class FramedView(SectionedView):
    """A file of ``header``, ``gap`` zeros, ``body`` and ``trailer``."""

    def __init__(
        self,
        header: bytes,
        body: WritableView,
        trailer: bytes = b"",
        marks: range = range(0),
        gap: int = 0,
    ) -> None:
        """``marks`` : as in `SectionedView`."""
        self._body = WholeFile(len(header) + gap, body)
        stop = self._body.stop
        frame = Computed([Table.of_bytes(0, header), Table.of_bytes(stop, trailer)])
        super().__init__(frame, [self._body], stop + len(trailer), writable=True, marks=marks)

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        start, stop = self._body.start, self._body.stop
        found = self._body.view.chunk_range_at(offset - start) if start <= offset < stop else None
        return found and (found[0] + start, found[1] + start)

    def peek(self, start: int, stop: int) -> Data | None:
        begin = self._body.start
        if not begin <= start <= stop <= self._body.stop:
            return None
        return self._body.view.peek(start - begin, stop - begin)


class FlippedView(BodyView):
    """``body`` with the most significant bit of each element inverted.

    place : of the byte with that bit in each element.
    """

    def __init__(self, body: WritableView, item_size: int, place: int) -> None:
        super().__init__(body, body.size)
        self._item_size = item_size
        self._place = place

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        return self._body.write(offset, self._flip(offset, data))

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        return self._body.chunk_range_at(offset)

    def peek(self, start: int, stop: int) -> Data | None:
        data = self._body.peek(start, stop)
        return None if data is None else self._flip(start, data)

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        return offset, offset + size

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        return self._flip(offset, inside)

    def _flip(self, offset: int, data: Data) -> Data:
        octets = np.frombuffer(data, np.uint8).copy()
        octets[(self._place - offset) % self._item_size :: self._item_size] ^= 0x80
        return octets.data
