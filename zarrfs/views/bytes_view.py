"""Files whose bytes are at hand, and files that begin with such bytes."""

from __future__ import annotations

from zarrfs.errors import ChunkError
from zarrfs.views.view import Answer, Data, View


class BytesView:
    """A file of the given bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_now(self, offset: int, size: int) -> Data | None:
        return self._data[offset : offset + size]

    def read(self, offset: int, size: int, answer: Answer) -> None:
        answer(self._data[offset : offset + size])

    def close(self) -> None:
        pass


class PrefixedView:
    """A file that begins with ``header`` and goes on with ``body``."""

    def __init__(self, header: bytes, body: View) -> None:
        self._header = header
        self._body = body
        self.size = len(header) + body.size

    def read_now(self, offset: int, size: int) -> Data | None:
        start = len(self._header)
        if offset >= start:
            return self._body.read_now(offset - start, size)
        head = self._header[offset : offset + size]
        if len(head) == size:
            return head
        rest = self._body.read_now(0, size - len(head))
        return None if rest is None else head + bytes(rest)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        start = len(self._header)
        if offset >= start:
            self._body.read(offset - start, size, answer)
            return
        head = self._header[offset : offset + size]

        def join(rest: Data | ChunkError) -> None:
            answer(rest if isinstance(rest, ChunkError) else head + bytes(rest))

        self._body.read(0, size - len(head), join)

    def close(self) -> None:
        self._body.close()
