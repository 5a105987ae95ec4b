"""Files of a header, the elements, and a trailer."""

from __future__ import annotations

import numpy as np

from zarrfs.errors import NotPermitted
from zarrfs.views.body_view import BodyView
from zarrfs.views.tiles.computed import Computed, Table
from zarrfs.views.view import Data, RemainingWrite, WritableView


class FramedView(BodyView):
    """A file of ``header``, ``gap`` zeros, ``body`` and ``trailer``.

    Header and trailer follow from the metadata of the array. A program may write the same bytes
    again, as some do before they write elements; other bytes are refused.

    marks : bytes of the header that programs change while they have the file open. Writes to them
        are ignored.
    """

    def __init__(
        self,
        header: bytes,
        body: WritableView,
        trailer: bytes = b"",
        marks: range = range(0),
        gap: int = 0,
    ) -> None:
        self._marks = marks
        self._start = len(header) + gap
        self._stop = self._start + body.size
        tables = [Table.of_bytes(0, header), Table.of_bytes(self._stop, trailer)]
        self._frame = Computed(tables)
        super().__init__(body, self._stop + len(trailer))

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        inside = self._start <= offset < self._stop
        found = self._body.chunk_range_at(offset - self._start) if inside else None
        return found and (found[0] + self._start, found[1] + self._start)

    def peek(self, start: int, stop: int) -> Data | None:
        if not self._start <= start <= stop <= self._stop:
            return None
        return self._body.peek(start - self._start, stop - self._start)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        data = memoryview(data)
        head = max(0, min(len(data), self._start - offset))
        tail = max(0, min(len(data), offset + len(data) - self._stop))
        inside = data[head : len(data) - tail]
        behind = len(data) - tail
        parts = (offset, data[:head]), (offset + behind, data[behind:])
        if not all(self._frame.agrees(at, part, self._marks) for at, part in parts):
            raise NotPermitted("the header follows from the array's metadata")
        return self._body.write(max(0, offset - self._start), inside) if inside else None

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        first = max(0, offset - self._start)
        return first, max(first, min(offset + size, self._stop) - self._start)

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        stop = offset + size
        if self._start <= offset and stop <= self._stop:
            return inside
        behind = max(offset, self._stop)
        before = self._frame.read(offset, max(0, min(stop, self._start) - offset))
        return b"".join((before, inside, self._frame.read(behind, max(0, stop - behind))))


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
