"""The file that holds an archive, read by position in any thread."""

from __future__ import annotations

import threading
from typing import Any

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.remote.ranges.ranged_reader import RangedReader
from zarrfs.store.remote.requests import ObjectChanged

# Bytes of a table of contents that are fetched together: longer than most headers of a tar file.
_AHEAD = 4 << 10


class RangedFile:
    """An object in one state, in a store that sends ranges: a read fetches what it needs only.

    ``read_at`` may be called in any thread; the interface that `zipfile` and `tarfile` need, in one
    thread at a time. All reads raise ObjectChanged if the object is in another state by now.
    """

    def __init__(self, reader: RangedReader, path: str) -> None:
        self._reader = reader
        self._path = path
        self._info: ObjectInfo = reader.info(path)
        self._at = 0
        self._start, self._data = 0, memoryview(b"")

    def read_at(self, start: int, stop: int) -> memoryview:
        """The bytes ``start <= i < stop``; fewer at the end."""
        (blob,) = self._reader.get_ranges(self._path, [ByteRange(start, max(stop - start, 0))])
        if blob.info.generation != self._info.generation or blob.info.size != self._info.size:
            raise ObjectChanged
        return memoryview(blob.data)

    def read(self, size: int = -1) -> bytes:
        stop = self._info.size if size < 0 else min(self._at + size, self._info.size)
        first = self._at - self._start
        if not (first >= 0 and stop - self._start <= len(self._data)):
            end = self._info.size
            self._start = max(0, min(self._at, end - _AHEAD))
            self._data = self.read_at(self._start, max(stop, min(self._at + _AHEAD, end)))
            first = self._at - self._start
        data = bytes(self._data[first : first + max(stop - self._at, 0)])
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._info.size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._data = memoryview(b"")


class SharedFile:
    """The same for any binary file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def read_at(self, start: int, stop: int) -> memoryview:
        with self._lock:
            self._file.seek(start)
            return memoryview(self._file.read(max(stop - start, 0)))

    def close(self) -> None:
        with self._lock:
            self._file.close()
