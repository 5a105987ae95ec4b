"""What is written to a file from front to back, gathered before it is scattered over chunks.

A block of a file crosses many chunks and fills none. Spread one by one, blocks would touch
each chunk once for every plane that it holds; so they are put together in memory in which
all chunks that they cross lie one after the other. In the end each chunk takes its part of
that memory for its own.

Invisible to callers: any read, write or flush first brings the gathered bytes into their
chunks. That takes long, so the event loop leaves it to a thread (`Gathering.pending`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.tiles import Slices
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.locks import Rank, ranked_lock


class Change(NamedTuple):
    """New elements of one tile.

    tile : its index.
    where : slices of it, inside the array.
    values : the elements, of the type ``view`` in some byte order.
    memory : of a whole tile, of that type too, which has the values in their place; it may
        be kept for the tile. None: there is no such.
    marks : memory for a mark of each of its elements, all False, which may be kept with it;
        None: there is no such.
    """

    tile: Index
    where: Slices
    values: Chunk
    view: np.dtype[Any]
    memory: Chunk | None = None
    marks: NDArray[np.bool_] | None = None


class GatheredFile(Protocol):
    """Some bytes in a row of a file, which are elements of chunks.

    nbytes : of memory that they are gathered in.
    beside : bytes of memory that the chunks take beside that.
    staged : whether the memory is that of a file.
    """

    @property
    def nbytes(self) -> int: ...

    @property
    def beside(self) -> int: ...

    @property
    def staged(self) -> bool: ...

    def put(self, memory: NDArray[np.uint8], offset: int, data: memoryview) -> None:
        """Bring ``data``, whole elements that belong at byte ``offset``, to its place."""
        ...

    def changes(self, memory: NDArray[np.uint8], start: int, stop: int) -> Iterator[Change]:
        """What to change to write what was put from byte ``start`` to ``stop``."""
        ...


class Changed(Protocol):
    """Sets elements of a tile, within memory that is reserved. Does not block.

    since : when that was written.

    Returns the bytes of that memory which it took.
    """

    def __call__(self, change: Change, since: float) -> int: ...


@dataclass(slots=True, eq=False, repr=False)
class _Gathered:
    """
    file, start, size : what is gathered; of these bytes, ``filled`` are written.
    reserved : bytes of the budget for the chunks that ``memory`` goes to.
    since : when the first of it was written.
    touched : when the last of it was.
    owed : where in the file it belongs, and what is still to be brought to ``memory``.
    """

    file: GatheredFile
    start: int
    size: int
    memory: NDArray[np.uint8]
    reserved: int
    since: float
    touched: float
    filled: int = 0
    owed: tuple[int, memoryview] | None = None

    def settle(self) -> None:
        """Should this fail, it is done again when it is needed next."""
        if self.owed is not None:
            self.file.put(self.memory, *self.owed)
            self.owed = None


class Gathering:
    """What was written last to one array. Safe for any number of threads.

    A program that writes waits for each answer, so the last write is copied after that, while
    the next one is made. Whoever needs it before copies it himself.

    Shared state, under ``_lock``: ``_gathered``. Others may look, without the lock, whether
    it is there; it is until every chunk has it. The lock is held while elements are copied,
    never while anything waits. The event loop does not wait for it: see ``wait`` and ``owe``.
    """

    def __init__(
        self,
        write_back: WriteBack,
        change: Changed,
        written: Callable[[], object],
        *,
        shared: bool = False,
    ) -> None:
        """
        shared : whether processes are to read the chunks.
        written : called whenever something was written, and can be read.
        """
        self._write_back = write_back
        self._change = change
        self._shared = shared
        self._written = written
        self._lock = ranked_lock(Rank.GATHERING)
        self._gathered: _Gathered | None = None

    @property
    def pending(self) -> bool:
        """Whether anything is to be scattered."""
        return self._gathered is not None

    @property
    def nbytes(self) -> int:
        """Bytes that are gathered."""
        gathered = self._gathered
        return 0 if gathered is None else gathered.filled

    @property
    def largest_staged(self) -> int:
        """The most bytes that can be gathered in a file."""
        return self._write_back.staging.largest

    @property
    def largest(self) -> int:
        """The most bytes of memory that may be reserved at once, chunks included."""
        return self._write_back.budget.total // 2

    def begin(self, file: GatheredFile, start: int, size: int, *, wait: bool) -> bool:
        """Gather ``size`` bytes from byte ``start`` of a file on; False where memory is short.

        wait : as of `WritableArray.write`. What was gathered before is scattered.
        """
        budget, memory = self._write_back.budget, None
        if not wait:
            # Whatever touches a file may wait for the disk.
            if not self.pending and not file.staged:
                memory = self._write_back.lend(file.nbytes, file.beside, shared=self._shared)
        else:
            self.scatter()
            if file.staged:
                memory = self._write_back.stage(file.nbytes, file.beside)
            else:
                memory = self._write_back.lend_for_whole(
                    file.nbytes, file.beside, shared=self._shared
                )
        if memory is None:
            return False
        begun = False
        try:
            if self._lock.acquire(blocking=wait):
                try:
                    if wait:
                        self._scatter()
                    if begun := self._gathered is None:
                        since = time.monotonic()
                        self._gathered = _Gathered(
                            file, start, size, memory, file.beside, since, since
                        )
                finally:
                    self._lock.release()
        finally:
            if not begun:
                budget.release(file.beside)
        return begun

    def append(self, file: GatheredFile, offset: int, data: memoryview, *, owe: bool) -> int:
        """How many bytes of ``data``, which belongs at byte ``offset`` of a file, are gathered.

        owe : copy them when whoever writes need not wait for it any more; see
            `WriteBack.settle`. Until then ``data`` must not change.
        """
        if owe and file is not None and file.staged:
            return 0
        if not self._lock.acquire(blocking=not owe):
            # Whoever has it brings what is gathered into its chunks.
            return 0
        try:
            gathered = self._gathered
            if (
                gathered is None
                or gathered.file is not file
                or offset != gathered.start + gathered.filled
            ):
                return 0
            data = data[: gathered.size - gathered.filled]
            if data:
                gathered.settle()
                gathered.owed = offset, data
                if owe:
                    self._write_back.owe(self._settle)
                else:
                    gathered.settle()
                gathered.filled += len(data)
                gathered.touched = time.monotonic()
                self._written()
            return len(data)
        finally:
            self._lock.release()

    def _settle(self) -> None:
        """For the event loop. Whoever has the lock settles what is owed himself."""
        if self._lock.acquire(blocking=False):
            try:
                if self._gathered is not None:
                    self._gathered.settle()
            finally:
                self._lock.release()

    def scatter(self, older_than: float | None = None) -> bool:
        """Bring what is gathered into its chunks; whether there was anything.

        older_than : leave it if any of it was written at this time or later: a row of chunks
            that is still being written would be stored in parts, again and again.
        """
        if self._gathered is None:
            return False
        with self._lock:
            gathered = self._gathered
            if gathered is None or (older_than is not None and gathered.touched >= older_than):
                return False
            self._scatter()
            return True

    def _scatter(self) -> None:
        gathered = self._gathered
        if gathered is None:
            return
        gathered.settle()
        start = gathered.start
        # Should this fail, all of it is done again when it is asked for next.
        for change in gathered.file.changes(gathered.memory, start, start + gathered.filled):
            gathered.reserved -= self._change(change, gathered.since)
        self._gathered = None
        self._write_back.budget.release(gathered.reserved)
