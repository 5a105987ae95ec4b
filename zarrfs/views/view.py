"""The protocol of everything that can stand behind an open file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from zarrfs.errors import ChunkError

Data: TypeAlias = bytes | memoryview
Answer: TypeAlias = Callable[[Data | ChunkError], None]


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

    def close(self) -> None:
        """The reader is gone."""
        ...


class WritableView(View, Protocol):
    """A file of fixed size that can be written to."""

    def write_now(self, offset: int, data: Data) -> bool:
        """Write all of ``data``, which must end within the file; False if that would block.

        After False some of it may have been written, and all can be written again.
        Raises NotPermitted for bytes that may not change.
        """
        ...

    def write(self, offset: int, data: Data) -> None:
        """The same. Blocks. Raises ZarrfsError where there is no room for changes."""
        ...

    def settle(self) -> None:
        """Give what was written in part to the array, so that a flush stores it. Blocks."""
        ...
