"""Changes to one array, as those see them who decide when to store them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zarrfs.cache.write.dirty_objects import Candidate
from zarrfs.cache.write.journal.pending import Pending
from zarrfs.format.chunk_grid import Index


class Changes:
    """Changes to one array that are not stored yet.

    dirty_bytes : of chunks with changes.
    clean : whether there are no changes.
    stores : how often storing was scheduled or begun, and how often it has ended.
    """

    @property
    def dirty_bytes(self) -> int:
        return 0

    @property
    def clean(self) -> bool:
        raise NotImplementedError

    @property
    def stores(self) -> tuple[int, int]:
        return 0, 0

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        """The object to store first if memory is short, except those being stored or scheduled.

        partly : also consider objects of which only a part is new.
        """
        return None

    def scatter(self) -> bool:
        """Scatter the latest sequential writes to their chunks; returns whether there were any."""
        return False

    def flush_older(self, limit: float) -> None:
        """Start to store changes made before ``limit``. Does not block."""
        raise NotImplementedError

    def flush(self) -> None:
        """Store all changes, several objects at once. Blocks. Raises the first ZarrfsError."""
        raise NotImplementedError

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError."""

    def pending(self) -> Iterable[Pending]:
        """All changes, one at a time, for the journal."""
        raise NotImplementedError
