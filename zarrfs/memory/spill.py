"""Decoded chunks in a file, for a scan that needs more of them than there is memory.

What a scan in C order comes back to, plane after plane, is read from here in parts
instead of being decoded again.
"""

from __future__ import annotations

import logging
import os
import tempfile
import weakref
from threading import Lock

from zarrfs.format.chunk_grid import Index

log = logging.getLogger(__name__)

State = tuple[int, ...]


class Spill:
    """``slots`` chunks of up to ``size`` bytes, first in, first out; in a file without a name.

    Safe for any number of threads. Shared state, under the lock: ``_places``, for each
    chunk that is there its slot and which write that was; ``_busy``, the slots that are
    being written to; ``_next``; ``_cleared``, how often the file was emptied, which takes
    from a write that is under way what it has written. A slot is written to by one
    thread, and only after its chunk has left ``_places``, so that whoever finds the same
    write there after reading has read nothing else.
    """

    def __init__(self, directory: str, slots: int, size: int) -> None:
        self._directory = directory
        self._slots = slots
        self._size = size
        self._file: int | None = None
        self._broken = False
        self._state: State = ()
        self._places: dict[Index, tuple[int, int]] = {}
        self._busy: set[int] = set()
        self._next = 0
        self._writes = 0
        self._cleared = 0
        self._lock = Lock()

    def put(self, index: Index, state: State, chunk: memoryview) -> None:
        """Keep a chunk of the array in this state, its bytes in C order; as far as that works."""
        with self._lock:
            if self._broken or (file := self._open()) is None:
                return
            if state != self._state:
                self._places.clear()
                self._state = state
            slot = self._next
            if index in self._places or slot in self._busy:
                return
            self._next = (slot + 1) % self._slots
            self._busy.add(slot)
            cleared = self._cleared
            for other in [other for other, (place, _) in self._places.items() if place == slot]:
                del self._places[other]
        try:
            written = os.pwrite(file, chunk, slot * self._size)
        except OSError as error:
            log.warning("cannot keep decoded chunks in %s: %s", self._directory, error.strerror)
            written = -1
        with self._lock:
            self._busy.discard(slot)
            if written != len(chunk):
                self._broken = True
                self._forget()
            elif state == self._state and cleared == self._cleared:
                self._writes += 1
                self._places[index] = slot, self._writes

    def read(self, index: Index, state: State, offset: int, out: memoryview) -> bool:
        """Bytes of a chunk from ``offset`` on, as many as ``out`` has; False if it is not here."""
        with self._lock:
            place = self._places.get(index)
            file = self._file
            if place is None or state != self._state or file is None:
                return False
        count = os.preadv(file, [out], place[0] * self._size + offset)
        with self._lock:
            return count == len(out) and self._places.get(index) == place

    def clear(self) -> None:
        """Give the space back."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._places.clear()
        self._cleared += 1
        if self._file is not None:
            # Not closed: somebody may be about to read from its number.
            os.truncate(self._file, 0)

    def _open(self) -> int | None:
        if self._file is None:
            try:
                free = os.statvfs(self._directory)
                if self._slots * self._size > free.f_bavail * free.f_frsize // 2:
                    raise OSError(0, "not enough space")
                self._file, name = tempfile.mkstemp(dir=self._directory, prefix="zarrfs-")
                weakref.finalize(self, os.close, self._file)
                os.unlink(name)
            except OSError as error:
                log.info("decoded chunks are not kept in %s: %s", self._directory, error.strerror)
                self._broken = True
        return self._file
