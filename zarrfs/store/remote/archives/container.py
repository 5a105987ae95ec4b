"""The file that holds an archive, read by position in any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from zarrfs import bounds
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


class WatchedFile:
    """A binary file with limits on each read.

    largest : most bytes of one read; None: any number.
    furthest : offset beyond which no seek and no read may go; None: no limit.
    look : called with the bytes of each read.

    Raises OutOfBoundsError before anything is read.
    """

    def __init__(
        self,
        file: Any,
        *,
        largest: int | None = None,
        furthest: int | None = None,
        look: Callable[[bytes], None] | None = None,
    ) -> None:
        self._file = file
        self._largest, self._furthest, self._look = largest, furthest, look

    def read(self, size: int = -1) -> bytes:
        self._check(self._file.tell() + max(size, 0))
        most = self._largest
        if most is not None and size > most:
            raise bounds.OutOfBoundsError(
                f"its table of contents needs {size} bytes at once, at most {most} are allowed"
            )
        data: bytes = self._file.read(size if most is None or size >= 0 else most + 1)
        if most is not None and len(data) > most:
            raise bounds.OutOfBoundsError(f"its table of contents has more than {most} bytes")
        if self._look is not None:
            self._look(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0:
            self._check(offset)
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        pass  # its owner closes it

    def _check(self, offset: int) -> None:
        if self._furthest is not None and offset > self._furthest:
            raise bounds.OutOfBoundsError(
                f"decompresses to more than {self._furthest} bytes; unpack it"
            )
