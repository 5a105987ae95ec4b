"""Files around the bytes of another file."""

from __future__ import annotations

from functools import partial

from zarrfs.views.view import Answer, Data, ScatteredView, WritableView, converting


class BodyView(ScatteredView):
    """The common part of files that consist of another file's bytes, and of others around them."""

    def __init__(self, body: WritableView, size: int) -> None:
        self._body = body
        self.size = size

    def read_now(self, offset: int, size: int) -> Data | None:
        size = self._cut(offset, size)
        first, last = self._inside(offset, size)
        inside = self._body.read_now(first, last - first) if first < last else b""
        return None if inside is None else self._around(offset, size, inside)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        size = self._cut(offset, size)
        first, last = self._inside(offset, size)
        arrived = converting(answer, partial(self._around, offset, size))
        if first < last:
            self._body.read(first, last - first, arrived)
        else:
            arrived(b"")

    def close(self) -> None:
        self._body.close()

    def _inside(self, offset: int, size: int) -> tuple[int, int]:
        """First and last (exclusive) byte of the body that a range of the file contains."""
        raise NotImplementedError

    def _around(self, offset: int, size: int, inside: Data) -> Data:
        """The bytes of a range of the file; ``inside`` are those of the body."""
        raise NotImplementedError
