"""The stored objects of an array as files, under the names of their keys.

A Zarr library that opens a mount finds the metadata documents, and then asks for keys of chunks.
"""

from __future__ import annotations

from operator import ge

from zarrfs.errors import Unsupported
from zarrfs.format.chunk_grid import ChunkGrid, Index
from zarrfs.format.chunk_layout import ChunkKeyEncoding
from zarrfs.fs.nodes.chunk_tree import ChunkTree

FIRST_KEY = 1 << 39
"""The first number within a node of these files. Arrays with more chunk files do not have them."""

_MOST_NUMBERS = 1 << 39


class StoredKeys:
    """Numbers the directories and files of keys, which are looked up by name and not listed.

    grid : of the stored objects.
    """

    def __init__(self, grid: ChunkGrid, encoding: ChunkKeyEncoding) -> None:
        self._counts = grid.counts
        self._encoding = encoding
        self._numbers = ChunkTree(grid.counts, FIRST_KEY)
        rank = len(grid.counts)
        self._first, *others = encoding.key((0,) * rank).split("/")
        # Parts of a key before those of coordinates: the c in c/0/0. None: not known.
        self._leading: int | None = len(others) + 1 - rank
        self._alone = not others
        if self._numbers.nodes > _MOST_NUMBERS or (others and self._leading not in (0, 1)):
            self._leading = None

    @property
    def stop(self) -> int:
        """The number after the last one."""
        return 0 if self._leading is None else self._numbers.stop

    def prefix(self, local: int) -> Index | None:
        """The index of the file, or its beginning for a directory; None for another number."""
        return None if self._leading is None else self._numbers.prefix(local)

    def is_file(self, prefix: Index) -> bool:
        return self._numbers.is_file(prefix)

    def index(self, prefix: Index) -> Index:
        """The index of the stored object that a file shows."""
        return self._numbers.chunk(prefix)

    def child(self, prefix: Index | None, name: str) -> int | None:
        """The number of the entry ``name`` in a directory, or in that of the array (None).

        None if the name is that of no key. Raises Unsupported if it may be the name of one.
        """
        if self._leading is None:
            if prefix is None and name.startswith(self._first):
                raise Unsupported(f"{name}: stored objects with such keys are not shown")
            return None
        if prefix is None:
            if self._alone:
                return self._file((), name)
            if self._leading == 1:
                return FIRST_KEY if name == self._first else None
            prefix = ()
        if len(prefix) + 1 == len(self._counts):
            return self._file(prefix, name)
        found = self._numbers.child(prefix, name)
        return None if found is None else self._numbers.number(found)

    def _file(self, prefix: Index, name: str) -> int | None:
        parts = [self._first] * (self._leading or 0) if not self._alone else []
        key = "/".join([*parts, *map(str, prefix), name])
        index = self._encoding.index(key, len(self._counts))
        if index is None or any(map(ge, index, self._counts)):
            return None
        return self._numbers.number(index or (0,))
