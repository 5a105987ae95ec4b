"""A file of a header and the bytes of several other files, each at its place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from zarrfs.errors import ChunkError
from zarrfs.jobs.ticket import Ticket
from zarrfs.views.bytes_view import ReadOnlyView
from zarrfs.views.view import Answer, Data, View


class GatheredView(ReadOnlyView):
    """
    parts : the offset of each file, in order; they do not overlap. The bytes between them are
        zeros.
    owner : of the files; it lives as long as this view.
    """

    def __init__(
        self,
        header: bytes,
        parts: Sequence[tuple[int, View]],
        size: int,
        owner: object = None,
    ) -> None:
        self._owner = owner
        self._header = header
        self._parts = parts
        self._starts = [start for start, _ in parts]
        self.size = size

    def read_now(self, offset: int, size: int) -> Data | None:
        out = self._memory(offset, size)
        for view, first, stop, at in self._touched(offset, len(out)):
            data = view.read_now(first, stop - first)
            if data is None:
                return None
            out[at : at + len(data)] = data
        return bytes(out)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        out = self._memory(offset, size)
        touched = self._touched(offset, len(out))
        ticket = Ticket(
            len(touched) + 1, lambda error: answer(bytes(out) if error is None else error)
        )

        def put(at: int, data: Data | ChunkError) -> None:
            if isinstance(data, ChunkError):
                ticket.finish(error=data)
            else:
                out[at : at + len(data)] = data
                ticket.finish()

        for view, first, stop, at in touched:
            view.read(first, stop - first, partial(put, at))
        ticket.finish()

    def close(self) -> None:
        for _, view in self._parts:
            view.close()

    def _memory(self, offset: int, size: int) -> bytearray:
        """The header's bytes in a range, and zeros elsewhere."""
        out = bytearray(max(0, min(size, self.size - offset)))
        head = self._header[offset : offset + len(out)]
        out[: len(head)] = head
        return out

    def _touched(self, offset: int, size: int) -> list[tuple[View, int, int, int]]:
        """Each file that a range touches: its first and last byte, and where that goes."""
        found = []
        for start, view in self._parts[max(0, bisect_right(self._starts, offset) - 1) :]:
            if start >= offset + size:
                break
            first, stop = max(0, offset - start), min(view.size, offset + size - start)
            if first < stop:
                found.append((view, first, stop, start + first - offset))
        return found
