"""The length of an array's first axis, if a mount may change it.

An array grows in memory first: elements are written beyond the stored end. The metadata are stored
at fsync and close, after a delay, and when the mount ends. A process that is killed before that
leaves objects beyond the end, which the next growth clears.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from zarrfs.array.making.resize import Resize, ResizeConfig
from zarrfs.cache.write.journal.pending import PendingGrowth
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.cache.write.write_back import Changes, WriteBack
from zarrfs.errors import ZarrfsError
from zarrfs.format.chunk_grid import Shape
from zarrfs.locks import Rank, ranked_lock

# Objects that are checked one by one to make room for rows; beyond that, the store is listed.
_PROBED = 64
_LARGEST_FILE = 2**63 - 1


def most_rows(shape: Shape, item_size: int, reach: int | None) -> int:
    """How long the first axis of an array can become; 0 if rows have no bytes."""
    row = math.prod(shape[1:]) * item_size
    if not row:
        return 0
    most = _LARGEST_FILE // row
    return most if reach is None else min(most, reach)


class Growth(Changes):
    """Changes of the length of the first axis.

    cached : an array whose layout covers the longest first axis that it can ever have.
    rows : the current length. It grows on the event loop, and shrinks while there are no writers.
    stored : the length in the stored metadata.

    Methods block unless they say otherwise.
    """

    def __init__(
        self,
        write_back: WriteBack,
        cached: WritableArray,
        config: ResizeConfig,
    ) -> None:
        self._write_back = write_back
        self._cached = cached
        self._config = config
        self.stored = self.rows
        # Up to here, other writers have left nothing in the store.
        self._room = self.rows
        self._since = time.monotonic()
        # The number of rows of the last attempt to store the metadata that failed.
        self._tried: int | None = None
        self._lock = ranked_lock(Rank.GROWTH)
        write_back.register(self)

    def retire(self) -> None:
        """No writer will change the length again: forget it once the metadata are stored."""
        self._write_back.retire(self)

    @property
    def rows(self) -> int:
        return self._cached.array.metadata.shape[0]

    def set_rows(self, rows: int) -> None:
        """Set the length in memory only. Does not block."""
        array = self._cached.array
        array.metadata = array.metadata._replace(shape=self._shape(rows))

    @property
    def largest(self) -> int:
        """The most rows that there can be."""
        return self._cached.array.layout.stored.shape[0]

    def has_room(self, rows: int) -> bool:
        """Whether the array can grow to ``rows`` rows at once. Does not block."""
        return rows <= self._room

    def make_room(self, rows: int) -> None:
        """Clear objects that other writers have left beyond the end. No writer may be active.

        Raises ZarrfsError.
        """
        # After this, any objects beyond the end come from other writers.
        self._cached.flush()
        self.flush()
        with self._lock:
            room = self._worth_clearing(rows)
            self._resize(room).make_room()
            self._cached.distrust()
            self._room = room

    def grow(self, rows: int) -> None:
        """Grow to ``rows`` rows, for which there is room. Does not block."""
        if self.rows == self.stored:
            self._since = time.monotonic()
        self.set_rows(rows)
        self._cached.freshness.touched()

    def shrink(self, rows: int) -> None:
        """Shrink to ``rows`` rows while no writer is active. On ZarrfsError nothing is lost."""
        self._cached.flush()
        self.flush()
        with self._lock:
            done = self._resize(rows).run()
            self.set_rows(rows)
            self._cached.array.stored_shape = self._shape(rows)
            self.stored = rows
            self._cached.distrust()
            # Objects that could not be cleared now are cleared before the array grows there again.
            self._room = rows
            for problem in done.problems:
                self._write_back.failed(self._name, problem)

    def flush(self) -> None:
        """Store the number of rows in the metadata. Raises ZarrfsError."""
        with self._lock:
            rows = self.rows
            if rows == self.stored:
                return
            self._notice_stored()
            self._tried = rows
            self._resize(rows).run(room_made=True)
            self._cached.array.stored_shape = self._shape(rows)
            self.stored, self._tried = rows, None

    def _notice_stored(self) -> None:
        """A failed attempt may have stored the metadata before it failed."""
        if self._tried is None:
            return
        tried = self._resize(self._tried)
        if tried.old == tried.new:
            self.stored = self._tried
        self._tried = None

    # --- for the write-back ---------------------------------------------------------

    @property
    def clean(self) -> bool:
        return self.rows == self.stored

    def flush_older(self, limit: float) -> None:
        if self.rows != self.stored and self._since < limit:
            self._since = time.monotonic()
            self._write_back.submit(self._store_quietly, ahead=True)

    def pending(self) -> Iterator[PendingGrowth]:
        if self.rows != self.stored:
            path = self._cached.array.path
            yield PendingGrowth(path, self._shape(self.stored), self.rows)

    def _store_quietly(self) -> None:
        try:
            self.flush()
        except ZarrfsError as error:
            self._write_back.failed(self._name, error)

    def _worth_clearing(self, rows: int) -> int:
        """A number of rows, at least ``rows``, that takes little more time to make room for."""
        stored = self._cached.array.layout.stored
        length = stored.axes[0].longest
        beside = max(1, math.prod(stored.counts[1:]))
        cheap = self.stored + (_PROBED // beside) * length
        return min(self.largest, cheap) if rows <= cheap else self.largest

    def _resize(self, rows: int) -> Resize:
        array = self._cached.array
        return Resize(
            array.store,
            array.path,
            self._shape(rows),
            self._config,
            expected=self._shape(self.stored),
            zarr_format=array.metadata.zarr_format,
        )

    def _shape(self, rows: int) -> Shape:
        return (rows, *self._cached.array.metadata.shape[1:])

    @property
    def _name(self) -> str:
        return self._cached.array.path or "/"
