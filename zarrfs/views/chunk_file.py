"""A chunk as a file of its own."""

from __future__ import annotations

from zarrfs.format.chunk_grid import Index
from zarrfs.views.elements.elements import Elements
from zarrfs.views.flat import FlatView
from zarrfs.views.view import Answer, Data


class ChunkFileView(FlatView):
    """One reader of a chunk file.

    After one reader has read the whole file, the kernel has all of it, and answers later readers
    itself.
    """

    def __init__(self, elements: Elements, chunk: Index) -> None:
        super().__init__(elements)
        self._chunk = chunk
        self._end = 0
        self._loaded = False

    def read_now(self, offset: int, size: int) -> Data | None:
        if offset == self._end:
            self._end = min(offset + size, self.size)
        return super().read_now(offset, size)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        self._loaded = True
        super().read(offset, size, answer)

    def close(self) -> None:
        if self._loaded and self._end == self.size:
            self.elements.array.passed(self._chunk)
