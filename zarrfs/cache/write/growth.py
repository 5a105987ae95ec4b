"""The length of an array's first axis, where a mount may change it.

An array grows in memory first: elements are written beyond the stored end, and the
metadata follow when somebody asks (fsync, close), after a while, and at the end. A process
that is killed before that leaves objects beyond the end, which the next growth clears.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from zarrfs.array.making.resize import Resize, ResizeConfig
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.dirty_objects import Candidate
from zarrfs.cache.write.journal.pending import PendingGrowth
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import ZarrfsError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.locks import Rank, ranked_lock

# Objects that are looked at to make room for rows to come; for more, the store is listed.
_PROBED = 64
_LARGEST_FILE = 2**63 - 1


def most_rows(shape: Shape, item_size: int, reach: int | None) -> int:
    """How long the first axis of an array can become; 0 where rows have no bytes."""
    row = math.prod(shape[1:]) * item_size
    if not row:
        return 0
    most = _LARGEST_FILE // row
    return most if reach is None else min(most, reach)


class Growth:
    """Changes of the length of the first axis; see `zarrfs.cache.write.write_back.Changes`.

    cached : of an array whose layout reaches as far as it can ever become.
    flush : stores all changes of elements.

    rows : how many there are. Grows on the event loop, shrinks where nobody writes.
    stored : how many the stored metadata say.

    Methods block unless they say otherwise.
    """

    def __init__(
        self,
        write_back: WriteBack,
        cached: CachedArray,
        flush: Callable[[], None],
        config: ResizeConfig,
    ) -> None:
        self._write_back = write_back
        self._cached = cached
        self._flush = flush
        self._config = config
        self.stored = self.rows
        # Up to here nothing is stored that others have left.
        self._room = self.rows
        self._since = time.monotonic()
        # Rows that an attempt to store them has failed with.
        self._tried: int | None = None
        self._lock = ranked_lock(Rank.GROWTH)
        write_back.register(self)

    def retire(self) -> None:
        """Nobody will change it again: once the metadata say how long it is, forget it."""
        self._write_back.retire(self)

    @property
    def rows(self) -> int:
        return self._cached.array.metadata.shape[0]

    def set_rows(self, rows: int) -> None:
        """Nothing is stored by that. Does not block."""
        array = self._cached.array
        array.metadata = array.metadata._replace(shape=self._shape(rows))

    @property
    def largest(self) -> int:
        """How many rows there can be."""
        return self._cached.array.layout.stored.shape[0]

    def has_room(self, rows: int) -> bool:
        """Whether the array can grow to so many at once. Does not block."""
        return rows <= self._room

    def make_room(self, rows: int) -> None:
        """Clear what others have left behind the end. Nobody may write meanwhile.

        Raises ZarrfsError.
        """
        # From then on, what is stored beyond the end is not ours.
        self._flush()
        self.store()
        with self._lock:
            room = self._worth_clearing(rows)
            self._resize(room).make_room()
            self._cached.distrust()
            self._room = room

    def grow(self, rows: int) -> None:
        """Have so many rows, for which there is room. Does not block."""
        if self.rows == self.stored:
            self._since = time.monotonic()
        self.set_rows(rows)
        self._cached.freshness.touched()

    def shrink(self, rows: int) -> None:
        """Give up rows. Nobody may write meanwhile. Raises ZarrfsError; nothing is lost then."""
        self._flush()
        self.store()
        with self._lock:
            done = self._resize(rows).run()
            self.set_rows(rows)
            self.stored = rows
            self._cached.distrust()
            # What could not be cleared now is, before anything comes there again.
            self._room = rows
            for problem in done.problems:
                self._write_back.failed(self._name, problem)

    def store(self) -> None:
        """Have the metadata say how many rows there are. Raises ZarrfsError."""
        with self._lock:
            rows = self.rows
            if rows == self.stored:
                return
            self._notice_stored()
            self._tried = rows
            self._resize(rows).run(room_made=True)
            self.stored, self._tried = rows, None

    def _notice_stored(self) -> None:
        """The metadata may have been stored by an attempt that failed behind that."""
        if self._tried is None:
            return
        array = self._cached.array
        now = Resize(
            array.store,
            array.path,
            self._shape(self._tried),
            self._config,
            zarr_format=array.metadata.zarr_format,
        ).old
        if now == self._shape(self._tried):
            self.stored = self._tried
        self._tried = None

    # --- what else WriteBack wants of changes ----------------------------------------

    dirty_bytes = 0
    stores = (0, 0)

    @property
    def clean(self) -> bool:
        return self.rows == self.stored

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        return None

    def scatter(self) -> bool:
        return False

    def flush_older(self, limit: float) -> None:
        if self.rows != self.stored and self._since < limit:
            self._since = time.monotonic()
            self._write_back.submit(self._store_quietly, ahead=True)

    def flush(self) -> None:
        self.store()

    def flush_object(self, stored: Index) -> None:
        pass

    def pending(self) -> Iterator[PendingGrowth]:
        if self.rows != self.stored:
            path = self._cached.array.path
            yield PendingGrowth(path, self._shape(self.stored), self.rows)

    def _store_quietly(self) -> None:
        try:
            self.store()
        except ZarrfsError as error:
            self._write_back.failed(self._name, error)

    def _worth_clearing(self, rows: int) -> int:
        """A number of rows, at least so many, that takes little more time to make room for."""
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
