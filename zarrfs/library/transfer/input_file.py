"""Where imported bytes come from: a file of known size, or a stream."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs.errors import UsageError
from zarrfs.library.transfer.transfer import STANDARD_STREAM, TransferError


class Input:
    """An open file.

    size : in bytes; None for a stream, of which it is not known.
    """

    def __init__(self, name: str, fd: int) -> None:
        self.name = name
        self._fd = fd
        mode = os.fstat(fd).st_mode
        self.size: int | None = None
        self._start = self._position = 0
        if stat.S_ISDIR(mode):
            raise TransferError(f"{name}: is a directory")
        if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
            # If another reader has read the beginning of a file, this one continues there.
            self._start = os.lseek(fd, 0, os.SEEK_CUR)
            self.size = os.lseek(fd, 0, os.SEEK_END) - self._start

    @property
    def seekable(self) -> bool:
        return self.size is not None

    def take(self, count: int) -> bytes:
        """The next bytes from the beginning on, fewer at the end."""
        memory = bytearray(count)
        return bytes(memory[: self._fill(self._position, memoryview(memory))])

    def read(self, offset: int, memory: memoryview) -> None:
        """Fill ``memory`` from ``offset`` on, which in a stream is where the last read ended.

        Raises TransferError where the file ends before that.
        """
        got = self._fill(offset, memory)
        if got < len(memory):
            raise TransferError(f"{self.name}: ends after {offset + got} bytes, more are needed")

    def at_end(self) -> bool:
        """Whether a stream has nothing left."""
        return not self._fill(self._position, memoryview(bytearray(1)))

    def _fill(self, offset: int, memory: memoryview) -> int:
        done = 0
        try:
            while done < len(memory):
                rest = memory[done:]
                if self.seekable:
                    got = os.preadv(self._fd, [rest], self._start + offset + done)
                else:
                    assert offset + done == self._position, "a stream cannot go back"
                    got = os.readv(self._fd, [rest])
                if not got:
                    break
                done += got
                self._position = offset + done
        except OSError as error:
            raise TransferError(f"{self.name}: {error.strerror or error}") from error
        return done


@contextmanager
def input_file(name: str) -> Iterator[Input]:
    """Opens ``name``, or standard input for ``-``. Raises TransferError, UsageError."""
    if name == STANDARD_STREAM:
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("standard input is closed")
        yield Input("standard input", sys.stdin.fileno())
        return
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TransferError(f"{name}: {error.strerror or error}") from error
    try:
        yield Input(name, fd)
    finally:
        os.close(fd)
