"""Unlinked files that replace memory. They end with the process.

The kernel keeps as much of them in memory as there is room for, and writes the rest to disk. A scan
writes to them, not through a mapping, whose pages would be made again for each stripe.
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

# Buffers that exist at once: one is stored while another one is filled.
_MOST_BUFFERS = 2


class ScratchFile:
    """An unlinked file, which ends with the process.

    Thread-safe. A read that overlaps a write may return both old and new bytes.
    """

    def __init__(self, directory: str) -> None:
        """The first access creates the file, in ``directory``."""
        self._directory = directory
        self._file: int | None = None
        self._lock = Lock()

    @property
    def free(self) -> int:
        """Bytes that are free on the disk; 0 if that is unknown."""
        try:
            found = os.statvfs(self._directory)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes take at most half of the free bytes on the disk."""
        return size <= self.free // 2

    def write(self, offset: int, data: memoryview) -> None:
        """Raises OSError."""
        file = self._open()
        while data:
            count = os.pwrite(file, data, offset)
            data, offset = data[count:], offset + count

    def read(self, offset: int, out: memoryview) -> None:
        """Fill ``out`` with the bytes written at ``offset``. Raises OSError."""
        file = self._open()
        while out:
            count = os.preadv(file, [out], offset)
            if not count:
                raise OSError(0, "a scratch file is shorter than what was written to it")
            out, offset = out[count:], offset + count

    def memory(self, size: int) -> NDArray[np.uint8]:
        """The first ``size`` bytes as mapped memory, zero where nothing was written.

        The mapping keeps the file and ends with the last view of it. If the disk cannot return
        bytes that the kernel has written to it, the process is killed. Raises OSError.
        """
        file = self._open()
        # Reserve the disk space now: a mapping on a full disk would kill the process.
        os.posix_fallocate(file, 0, size)
        return np.frombuffer(mmap.mmap(file, size), np.uint8, size)

    def clear(self) -> None:
        """Free the disk space of the file."""
        with self._lock:
            # The file stays open: a reader may be about to use its descriptor.
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
    """Memory in unlinked files, one file for each buffer. Thread-safe.

    A buffer ends with its last view.

    Shared state: ``_places``, one entry for each buffer that may still be lent. It is a deque,
    which needs no lock: a finalizer runs in any thread with any lock held and could not take one.
    """

    def __init__(self, directory: str | None) -> None:
        """``directory`` : for the files, each made with its buffer; None: there are no buffers."""
        self._directory = directory
        self._places = deque([None] * _MOST_BUFFERS)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer: a quarter of the free disk space.

        Two buffers may exist at once. 0 if there are no buffers.
        """
        return 0 if self._directory is None else ScratchFile(self._directory).free // 4

    def reserve(self) -> bool:
        """Whether one more buffer may exist now; the caller must then `make` or `release` it."""
        try:
            self._places.popleft()
        except IndexError:
            return False
        return True

    def release(self) -> None:
        """Give up a reservation whose buffer is not made."""
        self._places.append(None)

    def make(self, size: int) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` zero bytes; None if the disk has no room. Blocks."""
        try:
            if self._directory is None or not 0 < size <= self.largest:
                raise OSError(0, "not enough space")
            memory = ScratchFile(self._directory).memory(size)
        except OSError as error:
            log.info("nothing is written to %s: %s", self._directory, error.strerror)
            self.release()
            return None
        # The last view refers to the mapping, so the mapping ends with that view.
        weakref.finalize(memory.base, self._places.append, None).atexit = False
        return memory
