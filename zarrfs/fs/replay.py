"""Stores the journal of earlier mounts when the next one begins. Blocks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs.array.making.resize import Resize
from zarrfs.cache.write.journal.journal import GrowthEntry, Journal, JournalEntry
from zarrfs.cache.write.restoring import Outcome, restore
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import (
    EntryNotFound,
    JournalError,
    MetadataError,
    NodeNotFound,
    StoreConflict,
    UnsupportedError,
    UsageError,
    ZarrfsError,
)
from zarrfs.format.chunk_grid import Shape
from zarrfs.fs.nodes.tree import Tree
from zarrfs.store.base import Store

log = logging.getLogger(__name__)

_OLDER = "is older than what is stored"
_ELSEWHERE = "belongs to an array that has been replaced since"


# Seconds to wait for another mount that stores what is in the journal.
_PATIENCE = 10.0


@contextmanager
def replaying(journal: Journal | None) -> Iterator[Journal | None]:
    """The journal, if this mount is to store what is in it, and no other mount does."""
    if journal is None:
        yield None
        return
    with journal.replaying(_PATIENCE) as alone:
        if not alone:
            log.warning("another mount still stores the changes in %s", journal.directory)
        yield journal if alone else None


def replay_growth(journal: Journal, store: Store) -> None:
    """Have metadata say how arrays grew in earlier mounts, before they are opened.

    If several mounts made one array longer, the longest counts. A growth that does not
    fit any more is set aside. Raises ZarrfsError where the store cannot tell, or cannot take
    the metadata.
    """
    groups: dict[tuple[str, Shape], list[GrowthEntry]] = defaultdict(list)
    for entry in journal.growths():
        groups[entry.growth.path, entry.growth.shape].append(entry)
    # One that begins where another one ends comes after it.
    for (path, before), entries in sorted(groups.items(), key=lambda group: group[0]):
        shape = (max(entry.growth.rows for entry in entries), *before[1:])
        try:
            done = _grow(store, path, before, shape)
        except (
            StoreConflict, NodeNotFound, MetadataError, UnsupportedError, UsageError
        ) as error:  # fmt: skip
            for entry in entries:
                journal.set_aside(entry, f"makes /{path} no longer: {error}")
            continue
        if done:
            log.info("resized /%s to %s, as the journal says", path, list(shape))
        for entry in entries:
            journal.remove(entry.name)


def _grow(store: Store, path: str, before: Shape, shape: Shape) -> bool:
    """Make an array longer, if it is not long enough; whether that was so."""
    now = Resize(store, path, shape).old
    same_rows = now[1:] == shape[1:]
    if same_rows and now[0] >= shape[0]:
        return False
    # Another mount, or an attempt of the same one, may have gone a part of the way.
    longer = same_rows and now[0] > before[0]
    Resize(store, path, shape, expected=now if longer else before).run(room_made=True)
    return True


def replay_changes(journal: Journal, tree: Tree) -> None:
    """Store what earlier mounts of the same source could not store.

    Entries that are damaged or may not be stored any more are set aside. Raises ZarrfsError
    where storing fails again.
    """
    by_path: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in journal.entries():
        by_path[entry.header.path].append(entry)
    first: ZarrfsError | None = None
    for path, entries in by_path.items():
        array = _writable(tree, path)
        if array is None:
            for entry in entries:
                journal.set_aside(entry, f"holds {_name(entry)}, which {_ELSEWHERE}")
            continue
        try:
            for entry, outcome in restore(array, entries):
                _conclude(journal, entry, outcome)
        except ZarrfsError as error:
            first = first or error
    journal.clean()
    if first is not None:
        raise first


def _conclude(journal: Journal, entry: JournalEntry, outcome: Outcome | JournalError) -> None:
    chunk = _name(entry)
    if outcome is Outcome.STORED:
        journal.remove(entry.name)
        log.info("stored %s from the journal", chunk)
    elif outcome is Outcome.WAITS:
        log.warning("%s cannot be read: its changes stay in the journal", chunk)
    elif isinstance(outcome, JournalError):
        journal.damaged(entry.name, outcome)
    else:
        why = _OLDER if outcome is Outcome.OLDER else _ELSEWHERE
        journal.set_aside(entry, f"holds {chunk}, which {why}")


def _name(entry: JournalEntry) -> str:
    return f"chunk {list(entry.header.index)} of /{entry.header.path}"


def _writable(tree: Tree, path: str) -> WritableArray | None:
    try:
        return tree.find_node(path).node.writable
    except EntryNotFound:
        return None
