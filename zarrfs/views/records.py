"""Elements in records, each after the same few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zarrfs.errors import NotPermitted
from zarrfs.views.body_view import BodyView
from zarrfs.views.view import Data, RemainingWrite, WritableView


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
        record, within = divmod(offset, len(self.mark) + self.size)
        return record * self.size + max(0, within - len(self.mark))

    def marks_in(self, offset: int, size: int) -> Iterator[tuple[int, bytes]]:
        """The parts of marks in a range of the file, each with its place in the range."""
        step = len(self.mark) + self.size
        for at in range(offset // step * step - offset, size, step):
            if part := self.mark[max(0, -at) : size - at]:
                yield max(0, at), part

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


class RecordsView(BodyView):
    """``body``, whose bytes are those of the elements, in records.

    A program may write the same marks again; other marks are refused.
    """

    def __init__(self, body: WritableView, records: Records) -> None:
        super().__init__(body, body.size + records.marks)
        self._records = records

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        data = memoryview(data)
        elements = []
        done = 0
        for at, mark in self._records.marks_in(offset, len(data)):
            if data[at : at + len(mark)] != mark:
                raise NotPermitted("the header of each record follows from the array's metadata")
            elements.append(data[done:at])
            done = at + len(mark)
        elements.append(data[done:])
        position = self._records.position(offset)
        inside = elements[0] if len(elements) == 1 else b"".join(elements)
        return self._body.write(position, inside) if len(inside) else None

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        return self._records.position(offset), self._records.position(offset + size)

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        data = memoryview(inside)
        pieces: list[Data] = []
        marked = done = 0
        for at, mark in self._records.marks_in(offset, size):
            pieces += data[done : at - marked], mark
            done = at - marked
            marked += len(mark)
        return b"".join((*pieces, data[done:])) if pieces else inside
