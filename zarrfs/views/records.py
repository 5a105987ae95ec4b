"""Elements in records, each after the same few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zarrfs.errors import ChunkError, NotPermitted
from zarrfs.views.view import Answer, Data, RemainingWrite, WritableView


class Records(NamedTuple):
    """How the bytes of elements lie in a file of records.

    mark : the bytes before each record.
    size : bytes of elements in a record.
    total : number of records.

    ``offset`` counts the bytes of the file, ``position`` those of the elements.
    """

    mark: bytes
    size: int
    total: int

    @property
    def marks(self) -> int:
        """Bytes of all marks together."""
        return len(self.mark) * self.total

    def position(self, offset: int) -> int:
        """The position of the first element byte at or after ``offset``."""
        record, within = divmod(max(0, offset), len(self.mark) + self.size)
        return min(record, self.total) * self.size + (
            max(0, within - len(self.mark)) if record < self.total else 0
        )

    def mark_places(self, offset: int, size: int) -> list[tuple[int, int, int]]:
        """The marks in a range of the file.

        For each: how many bytes of the range are before it, and its first and last (exclusive) byte
        that are in the range.
        """
        step = len(self.mark) + self.size
        found = []
        for record in range(offset // step, min(self.total, -(-(offset + size) // step))):
            at = record * step
            first = max(0, offset - at)
            last = min(len(self.mark), offset + size - at)
            if first < last:
                found.append((at + first - offset, first, last))
        return found

    def woven(self, position: int, elements: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Element bytes from ``position`` on, with the marks of the records that begin there.

        Each with its offset, in file order.
        """
        while elements:
            record, within = divmod(position, self.size)
            offset = record * (len(self.mark) + self.size)
            if not within:
                yield offset, memoryview(self.mark)
            part = elements[: self.size - within]
            yield offset + len(self.mark) + within, part
            position += len(part)
            elements = elements[len(part) :]


class RecordsView:
    """``body``, whose bytes are those of the elements, in records.

    A program may write the same marks again; other marks are refused.
    """

    def __init__(self, body: WritableView, records: Records) -> None:
        self._body = body
        self._records = records
        self.size = body.size + records.marks

    def read_now(self, offset: int, size: int) -> Data | None:
        size = self._cut(offset, size)
        first, last = self._inside(offset, size)
        data: Data | None = b""
        if first < last:
            data = self._body.read_now(first, last - first)
        return None if data is None else self._weave(offset, size, data)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        size = self._cut(offset, size)
        first, last = self._inside(offset, size)

        def weave(data: Data | ChunkError) -> None:
            answer(data if isinstance(data, ChunkError) else self._weave(offset, size, data))

        if first < last:
            self._body.read(first, last - first, weave)
        else:
            weave(b"")

    def together(self, offset: int) -> tuple[int, int] | None:
        return None

    def at_hand(self, start: int, stop: int) -> Data | None:
        return None

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        data = memoryview(data)
        elements = []
        done = 0
        for at, first, last in self._records.mark_places(offset, len(data)):
            if data[at : at + last - first] != self._records.mark[first:last]:
                raise NotPermitted("the header of each record follows from the array's metadata")
            elements.append(data[done:at])
            done = at + last - first
        elements.append(data[done:])
        position = self._records.position(offset)
        inside = elements[0] if len(elements) == 1 else b"".join(elements)
        return self._body.write(position, inside) if len(inside) else None

    def close(self) -> None:
        self._body.close()

    def _cut(self, offset: int, size: int) -> int:
        return max(0, min(size, self.size - offset))

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        return self._records.position(offset), self._records.position(offset + size)

    def _weave(self, offset: int, size: int, data: Data) -> Data:
        places = self._records.mark_places(offset, size)
        if not places:
            return data
        data = memoryview(data)
        pieces: list[Data] = []
        at = done = 0
        for start, first, last in places:
            pieces.append(data[done : done + start - at])
            pieces.append(self._records.mark[first:last])
            done += start - at
            at = start + last - first
        pieces.append(data[done:])
        return b"".join(pieces)
