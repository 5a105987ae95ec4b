"""A file without a name, for decoded data that memory has no room for."""

from __future__ import annotations

import os
import tempfile
import weakref
from threading import Lock


class ScratchFile:
    """Bytes on disk that nobody else sees and that are gone with the process.

    Safe for any number of threads; who reads what others are writing gets some of both.
    """

    def __init__(self, directory: str) -> None:
        """Nothing is created before something is written."""
        self._directory = directory
        self._file: int | None = None
        self._lock = Lock()

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes take at most half of what is free on the disk."""
        try:
            free = os.statvfs(self._directory)
        except OSError:
            return False
        return size <= free.f_bavail * free.f_frsize // 2

    def write(self, offset: int, data: memoryview) -> None:
        """Raises OSError."""
        file = self._open()
        while data:
            count = os.pwrite(file, data, offset)
            data, offset = data[count:], offset + count

    def read(self, offset: int, out: memoryview) -> None:
        """Fill ``out`` with what was written there. Raises OSError."""
        file = self._open()
        while out:
            count = os.preadv(file, [out], offset)
            if not count:
                raise OSError(0, "a scratch file is shorter than what was written to it")
            out, offset = out[count:], offset + count

    def clear(self) -> None:
        """Give the space back."""
        with self._lock:
            # Not closed: somebody may be about to read from its number.
            if self._file is not None:
                os.truncate(self._file, 0)

    def _open(self) -> int:
        with self._lock:
            if self._file is None:
                self._file, name = tempfile.mkstemp(dir=self._directory, prefix="zarrfs-")
                weakref.finalize(self, os.close, self._file)
                os.unlink(name)
            return self._file
