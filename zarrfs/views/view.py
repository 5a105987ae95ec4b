"""The protocol of all content that an open file can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from zarrfs.errors import ChunkError, UncountedError

Data: TypeAlias = bytes | memoryview
Answer: TypeAlias = Callable[[Data | ChunkError], None]
RemainingWrite: TypeAlias = Callable[[], None]
"""Writes the rest of the data. Blocks. Raises ZarrfsError if there is no room."""
Fetched = TypeVar("Fetched")


def converting(
    answer: Answer, convert: Callable[[Fetched], Data | ChunkError]
) -> Callable[[Fetched | ChunkError], None]:
    """A function that takes a result, or its error, and answers with the converted result."""

    def arrived(result: Fetched | ChunkError) -> None:
        try:
            data = result if isinstance(result, ChunkError) else convert(result)
        except Exception as error:  # noqa: BLE001 - the reader must get an answer
            data = UncountedError.of("a reply", error)
        answer(data)

    return arrived


class View(Protocol):
    """A file of fixed size."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        ...

    def read_now(self, offset: int, size: int) -> Data | None:
        """The bytes from ``offset``, cut at the file's end; None if that would block."""
        ...

    def read(self, offset: int, size: int, answer: Answer) -> None:
        """Get the bytes and call ``answer`` once, in any thread. Does not block."""
        ...

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        """First and last (exclusive) byte of the range around ``offset`` that one chunk fills.

        None if chunks are scattered over the file.
        """
        ...

    def peek(self, start: int, stop: int) -> Data | None:
        """Bytes ``start`` to ``stop`` (exclusive) if they are in memory. This counts as no read."""
        ...

    def close(self) -> None:
        """The reader has closed the file."""
        ...


class ScatteredView:
    """The common part of files in which no range is that of a chunk."""

    def _cut(self: View, offset: int, size: int) -> int:
        """How many of ``size`` bytes from ``offset`` on lie before the end of the file."""
        return max(0, min(size, self.size - offset))

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        return None

    def peek(self, start: int, stop: int) -> Data | None:
        return None


class WritableView(View, Protocol):
    """A file of fixed size that can be written to."""

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        """Write ``data``, which must end within the file, as far as that does not block.

        Returns the rest of the work, None if there is none. Raises NotPermitted and InvalidElement,
        before anything is written, for bytes that are not allowed there.
        """
        ...
