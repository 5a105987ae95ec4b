"""Memory in files without a name, for what is written while other memory is short.

The kernel keeps as much of it in memory as there is, and writes the rest to disk.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

# Buffers at once: one is stored while another one is filled.
_MOST = 2


class Staging:
    """Buffers that come back when the last view of them is gone. Safe for any number of threads.

    largest : bytes of the largest buffer; 0 where there are none.

    Shared state: ``_places``, one for each buffer that may still be lent. A deque needs no lock,
    which a finalizer could not take: it runs in any thread with any lock held.
    """

    def __init__(self, directory: str | None) -> None:
        """Nothing is created before it is needed; None: there are no buffers."""
        self._directory = directory
        self._places = deque([None] * _MOST)

    @property
    def largest(self) -> int:
        """A quarter of what is free on the disk, as there may be two."""
        if self._directory is None:
            return 0
        try:
            free = os.statvfs(self._directory)
        except OSError:
            return 0
        return free.f_bavail * free.f_frsize // 4

    def reserve(self) -> bool:
        """Whether there may be one more buffer now; whoever asked must `make` it, or `release`."""
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
            mapping = self._map(self._directory, size)
        except OSError as error:
            log.info("nothing is written to %s: %s", self._directory, error.strerror)
            self.release()
            return None
        # The last view refers to the mapping, which ends with it.
        weakref.finalize(mapping, self._places.append, None).atexit = False
        return np.frombuffer(mapping, np.uint8, size)

    @staticmethod
    def _map(directory: str, size: int) -> mmap.mmap:
        descriptor, name = tempfile.mkstemp(dir=directory, prefix="zarrfs-")
        try:
            os.unlink(name)
            # A mapping could only tell by ending the process that the disk is full.
            os.posix_fallocate(descriptor, 0, size)
            return mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
