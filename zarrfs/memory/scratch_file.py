"""A file without a name, for decoded data that memory has no room for."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from threading import Lock

import numpy as np
from numpy.typing import NDArray


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

    def write_strided(self, offset: int, data: NDArray[np.uint8], strides: list[int]) -> None:
        """Write each element of ``data`` but for its last axis as a run of bytes.

        offset : of the first run in the file, in bytes.
        strides : bytes in the file from one run to the next along each axis but the last.

        Short runs are written through a mapping, where a call for each would cost more than its
        bytes. The disk has room for them by then: a mapping could only tell by ending the process.

        Raises OSError.
        """
        if not data.size:
            return
        file = self._open()
        span = sum((n - 1) * step for n, step in zip(data.shape[:-1], strides, strict=True))
        begin = offset - offset % mmap.ALLOCATIONGRANULARITY
        size = offset - begin + span + data.shape[-1]
        os.posix_fallocate(file, begin, size)
        with mmap.mmap(file, size, offset=begin) as mapped:
            target = np.ndarray(data.shape, np.uint8, mapped, offset - begin, (*strides, 1))
            run = f"V{data.shape[-1]}"
            target.view(run)[...] = data.view(run)
            del target

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
