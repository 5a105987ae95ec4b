"""Files without a name, which stand in for memory. They end with the process.

The kernel keeps as much of them in memory as there is room for, and writes the rest to disk.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
import weakref
from collections import deque
from threading import Lock

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

# Buffers at once: one is stored while another one is filled.
_MOST_BUFFERS = 2


class ScratchFile:
    """Bytes on disk that are gone with the process.

    Safe for any number of threads; a reader of what others are writing gets some of both.
    """

    def __init__(self, directory: str) -> None:
        """Nothing is created before something is written."""
        self._directory = directory
        self._file: int | None = None
        self._lock = Lock()

    @property
    def free(self) -> int:
        """Bytes that are free on the disk; 0 where that is unknown."""
        try:
            found = os.statvfs(self._directory)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes take at most half of what is free on the disk."""
        return size <= self.free // 2

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

    def memory(self, size: int) -> NDArray[np.uint8]:
        """The first ``size`` bytes as memory, all zero where nothing was written.

        The mapping holds the file, and ends with the last view of it. A disk that fails to give
        back what the kernel has written to it ends the process. Raises OSError.
        """
        file = self._open()
        # The disk must have the room by then: a mapping could only tell by ending the process.
        os.posix_fallocate(file, 0, size)
        return np.frombuffer(mmap.mmap(file, size), np.uint8, size)

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


class ScratchBuffers:
    """Memory in files of their own. Safe for any number of threads.

    A buffer ends with the last view of it.

    Shared state: ``_places``, one for each buffer that may still be lent. A deque needs no lock,
    which a finalizer could not take: it runs in any thread with any lock held.
    """

    def __init__(self, directory: str | None) -> None:
        """Nothing is created before it is needed; None: there are no buffers."""
        self._directory = directory
        self._places = deque([None] * _MOST_BUFFERS)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer: a quarter of what is free on the disk, as there may be two.

        0 where there are none.
        """
        return 0 if self._directory is None else ScratchFile(self._directory).free // 4

    def reserve(self) -> bool:
        """Whether there may be one more buffer now; the caller must then `make` or `release` it."""
        try:
            self._places.popleft()
        except IndexError:
            return False
        return True

    def release(self) -> None:
        """The buffer that was reserved is not made."""
        self._places.append(None)

    def make(self, size: int) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` bytes, all zero; None where the disk has no room. Blocks."""
        try:
            if self._directory is None or not 0 < size <= self.largest:
                raise OSError(0, "not enough space")
            memory = ScratchFile(self._directory).memory(size)
        except OSError as error:
            log.info("nothing is written to %s: %s", self._directory, error.strerror)
            self.release()
            return None
        # The last view refers to the mapping, which ends with it.
        weakref.finalize(memory.base, self._places.append, None).atexit = False
        return memory
