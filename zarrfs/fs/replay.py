"""What an earlier mount had to leave in its journal, done when the next one begins. Blocks."""

from __future__ import annotations

import logging
from collections import defaultdict

from zarrfs.array.making.resize import Resize
from zarrfs.cache.write.journal import Journal, JournalEntry
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import EntryNotFound, NodeNotFound, StoreConflict
from zarrfs.fs.nodes.nodes import MountedArray
from zarrfs.fs.nodes.tree import Tree
from zarrfs.store.base import Store

log = logging.getLogger(__name__)


def replay_growth(journal: Journal, store: Store) -> None:
    """Have metadata say how arrays grew in an earlier mount, before they are opened.

    What does not fit any more is left out, with a warning. Raises ZarrfsError.
    """
    for entry in journal.growths():
        shape = (entry.rows, *entry.shape[1:])
        try:
            Resize(store, entry.path, shape, expected=entry.shape).run(room_made=True)
            log.info("/%s has the shape %s now, from the journal", entry.path, list(shape))
        except (StoreConflict, NodeNotFound) as error:
            log.warning("/%s is not made longer from the journal: %s", entry.path, error)
        journal.remove_growth(entry)


def replay_changes(journal: Journal, tree: Tree) -> None:
    """Store what an earlier mount of the same source could not store.

    What may not be stored any more is set aside, with a warning. Raises ZarrfsError
    where storing fails again.
    """
    by_path: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in journal.entries():
        by_path[entry.path].append(entry)
    for path, entries in by_path.items():
        array = _writable(tree, path)
        refused = entries if array is None else array.restore(entries)
        for entry in entries:
            if entry not in refused:
                journal.remove(entry)
                log.info("stored chunk %s of /%s from the journal", entry.index, path)
                continue
            log.warning(
                "chunk %s of /%s from the journal is older than what is stored: kept as %s",
                entry.index,
                path,
                journal.set_aside(entry),
            )


def _writable(tree: Tree, path: str) -> WritableArray | None:
    place = tree.mount_root()
    try:
        for name in filter(None, path.split("/")):
            place = tree.child(place, name)
    except EntryNotFound:
        return None
    return place.node.writable if isinstance(place.node, MountedArray) else None
