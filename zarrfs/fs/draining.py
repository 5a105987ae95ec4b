"""The end of a writable mount: changes are stored, or kept in the journal."""

from __future__ import annotations

from zarrfs.cache.write.journal.journal import Journal
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.counted import counted
from zarrfs.errors import JournalError, ZarrfsError


def drained(write_back: WriteBack, journal: Journal | None) -> list[ZarrfsError]:
    """Store all changes. The journal keeps changes that cannot be stored. Blocks.

    Returns why, and where it is kept.
    """
    errors = write_back.drain()
    if journal is None:
        return errors
    # Also where all is stored: what was kept when it was not, is not needed any more.
    kept = write_back.keep(journal)
    if not errors:
        return list(kept.errors)
    if kept.files:
        where = JournalError(
            f"{counted(len(kept.files), 'changed chunk')} kept in {journal.directory}; "
            "the next mount with -o rw stores them"
        )
        return [*errors, *kept.errors, where]
    return [*errors, *kept.errors]
