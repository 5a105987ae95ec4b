"""Tells which of very many objects may exist, by the names in their directories.

To look for a file that does not exist takes as long as to open one. A listing answers for all files
of a directory at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from itertools import accumulate, islice

from zarrfs.errors import StoreError
from zarrfs.store.local.beneath import DIRECTORY
from zarrfs.store.local.local_root import LocalRoot, encode

# Names that are listed at most for each key. In fuller directories, each key is looked for.
_NAMES_A_KEY = 4
# Nanoseconds without changes after which a listing is complete: while files in a directory are
# replaced, it may lack names that are there all the time.
_QUIET_NS = 2 * 10**9


def may_exist(root: LocalRoot, keys: Sequence[str]) -> Sequence[str]:
    """Those of the keys that may name objects, in order; all of them if that takes too long.

    Whatever lies at the place of a key counts, also if it cannot be read.
    """
    names = _Names(root, _NAMES_A_KEY * len(keys))
    found = []
    try:
        for key in keys:
            directory, _, name = key.rpartition("/")
            if name in names.of(directory):
                found.append(key)
        # A directory that was deleted looks empty.
        return keys if len(found) < len(keys) and root.reopen_if_deleted(keys[0]) else found
    except (StoreError, OSError):
        return keys  # the requests for the objects return the error


class _Names:
    """
    room : names that may be listed.
    """

    def __init__(self, root: LocalRoot, room: int) -> None:
        self._root = root
        self._room = room
        self._names: dict[str, Collection[str]] = {}
        # Whether a directory is there.
        self._there = {"": True}

    def of(self, directory: str) -> Collection[str]:
        """The names in a directory. Raises OSError, StoreError."""
        names = self._names.get(directory)
        if names is None:
            above = directory.rpartition("/")[0]
            names = self._list(directory) if self._is_there(above) else ()
            self._names[directory] = names
        return names

    def _list(self, directory: str) -> Collection[str]:
        fd = self._open(directory)
        if fd is None:
            return ()
        try:
            before = os.fstat(fd).st_mtime_ns
            with os.scandir(fd) as entries:
                names = {entry.name for entry in islice(entries, self._room + 1)}
            changed = os.fstat(fd).st_mtime_ns != before or time.time_ns() - before < _QUIET_NS
        finally:
            os.close(fd)
        self._room -= len(names)
        if changed or self._room < 0:
            raise StoreError(directory, "cannot be listed in time")
        return names

    def _is_there(self, directory: str) -> bool:
        for at in accumulate(directory.split("/"), "{}/{}".format):
            if at not in self._there:
                fd = self._open(at)
                self._there[at] = fd is not None
                if fd is not None:
                    os.close(fd)
            if not self._there[at]:
                return False
        return True

    def _open(self, directory: str) -> int | None:
        path = encode(directory) if directory else b"."
        return self._root.open(directory, path, DIRECTORY)
