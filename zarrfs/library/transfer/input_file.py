"""Where imported bytes come from: a file of known size, or a stream."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

from zarrfs.errors import UsageError
from zarrfs.library.transfer.transfer import STANDARD_STREAM, TransferError, naming


class Input:
    """An open file.

    size : in bytes; None for a stream, of which it is not known.
    """

    def __init__(self, name: str, file: BufferedReader) -> None:
        self.name = name
        self._file = file
        self.size: int | None = None
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
            # If another reader has read the beginning of a file, this one continues there.
            self._start = file.tell()
            self.size = file.seek(0, os.SEEK_END) - self._start
            file.seek(self._start)

    @property
    def seekable(self) -> bool:
        return self.size is not None

    def take(self, count: int) -> bytes:
        """The next bytes from the beginning on, fewer at the end."""
        memory = bytearray(count)
        return bytes(memory[: self._fill(memoryview(memory))])

    def read(self, offset: int, memory: memoryview) -> None:
        """Fill ``memory`` from ``offset`` on, which in a stream is where the last read ended.

        Raises TransferError where the file ends before that.
        """
        if self.seekable:
            self._file.seek(self._start + offset)
        if (got := self._fill(memory)) < len(memory):
            raise TransferError(f"{self.name}: ends after {offset + got} bytes, more are needed")

    def at_end(self) -> bool:
        """Whether a stream has nothing left."""
        return not self.take(1)

    def _fill(self, memory: memoryview) -> int:
        with naming(self.name):
            return self._file.readinto(memory)


@contextmanager
def input_file(name: str) -> Iterator[Input]:
    """Opens ``name``, or standard input for ``-``. Raises TransferError, UsageError."""
    standard = name == STANDARD_STREAM
    if standard and (sys.stdin is None or sys.stdin.closed):
        raise UsageError("standard input is closed")
    with naming(name):
        opened = sys.stdin.fileno() if standard else name
        file = open(opened, "rb", closefd=not standard)  # noqa: SIM115 - closed below
    with file:
        yield Input("standard input" if standard else name, file)
