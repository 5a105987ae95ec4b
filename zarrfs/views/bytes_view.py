"""Files whose bytes are at hand, and files that begin with such bytes."""

from __future__ import annotations

from zarrfs.errors import ChunkError, NotPermitted
from zarrfs.views.view import Answer, Data, Rest, WritableView


class ReadOnlyView:
    """What files have in common that nobody can write to, whoever opened them for that."""

    def write(self, offset: int, data: Data) -> Rest | None:
        raise NotPermitted(f"{len(data)} bytes at {offset}: this file cannot be changed")

    def together(self, offset: int) -> tuple[int, int] | None:
        return None

    def at_hand(self, start: int, stop: int) -> Data | None:
        return None

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


class PrefixedView:
    """A file that begins with ``header`` and goes on with ``body``."""

    def __init__(self, header: bytes, body: WritableView) -> None:
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

    def together(self, offset: int) -> tuple[int, int] | None:
        start = len(self._header)
        found = self._body.together(offset - start) if offset >= start else None
        return found and (found[0] + start, found[1] + start)

    def at_hand(self, start: int, stop: int) -> Data | None:
        header = len(self._header)
        return self._body.at_hand(start - header, stop - header) if start >= header else None

    def write(self, offset: int, data: Data) -> Rest | None:
        behind = self._behind_header(offset, data)
        return self._body.write(max(0, offset - len(self._header)), behind) if behind else None

    def _behind_header(self, offset: int, data: Data) -> Data:
        """What of ``data`` is for the body. Programs write a header that is there already."""
        inside = max(0, min(len(data), len(self._header) - offset))
        if bytes(data[:inside]) != self._header[offset : offset + inside]:
            raise NotPermitted("the header follows from the array's metadata")
        return data[inside:]

    def close(self) -> None:
        self._body.close()
