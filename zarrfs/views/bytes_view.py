"""Files whose bytes are in memory."""

from __future__ import annotations

from zarrfs.errors import NotPermitted
from zarrfs.views.view import Answer, Data, RemainingWrite, ScatteredView


class ReadOnlyView(ScatteredView):
    """The common part of read-only files; opening one for writing does not make it writable."""

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        raise NotPermitted(f"{len(data)} bytes at {offset}: this file cannot be changed")

    def close(self) -> None:
        pass


class BytesView(ReadOnlyView):
    """A file of the given bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_now(self, offset: int, size: int) -> Data | None:
        return self._data[offset : offset + size]

    def read(self, offset: int, size: int, answer: Answer) -> None:
        answer(self._data[offset : offset + size])
