"""Groups and arrays as directories: which names each has, and what stands behind them.

Within a node every directory and file has a number; together with the node's place in
the `InodeSpace` that gives its inode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from zarrfs.array.node_readers import Node
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import EntryNotFound
from zarrfs.format.chunk_grid import ChunkGrid, Index
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.metadata.node import kept_bytes
from zarrfs.fs.nodes.chunk_tree import TreePlace
from zarrfs.fs.nodes.growing_rows import GrowingRows
from zarrfs.fs.nodes.stored_keys import FIRST_KEY, StoredKeys
from zarrfs.store.plain_directory import Entry, PlainDirectory
from zarrfs.views.stored_file import StoredFileView
from zarrfs.views.view import WritableView


class Local(IntEnum):
    """Numbers within a node; chunk trees follow after the documents."""

    DIRECTORY = 0
    NOTE = 1
    FLAT = 2
    STATUS_DIRECTORY = 4
    STATS = 5
    CONFIG = 6
    JSON_LINES = 7
    OFFSETS = 8
    VALUES = 9
    METRICS = 10
    FIRST_DOCUMENT = 16
    FIRST_VIEW = 32  # of an array, or of a group; in the order of the registry of formats
    NPY = 32
    FIRST_TREE = 96


STATUS_DIRECTORY_NAME = ".zarrfs"
STATUS_NAMES = {
    "stats.json": Local.STATS,
    "config.json": Local.CONFIG,
    "metrics": Local.METRICS,
}
STATUS_FILES = frozenset(STATUS_NAMES.values())
_NOTE_NAME = "zarrfs-note.txt"
_BYTES = 2 << 10
_ARRAY_BYTES = 16 << 10


class Remains(NamedTuple):
    """The remains of a dropped node; refers to no node.

    numbers : of its files that the kernel may know the attributes of, within the node.
    array : its data, if it is an array.
    closing : functions that drop the caches of its files. These block.
    """

    numbers: tuple[int, ...]
    array: CachedArray | None = None
    closing: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """Drop the caches of its files. Blocks."""
        for each in self.closing:
            each()


class MountedNode:
    """A group, or an array that cannot be served: a directory of documents and a note.

    is_root : whether it is the root of the mount.
    linked : whether it is another name of an array, through which that cannot be written to.
    superseded : whether another one stands in its place, whose files have other bytes.
    writable : the array, where it can be written to.
    has_changes : whether it has changes that are not stored.
    looked : when its metadata were last looked at, of the clock `time.monotonic`.
    nbytes : of memory that it takes, about.

    A request or open file that may write to the node, or shows its bytes, refers to the node; see
    `zarrfs.fs.nodes.live_nodes`.
    """

    is_root = False
    linked = False
    superseded = False
    writable: WritableArray | None = None
    has_changes = False

    def __init__(self, node: Node, note: str | None, mtime_ns: int) -> None:
        self.node = node
        self.note = note
        self.mtime_ns = mtime_ns
        self.looked = time.monotonic()
        self.nbytes = self._own_bytes
        if node.metadata is not None:
            self.nbytes += kept_bytes(node.metadata)

    def add_note(self, note: str) -> None:
        """Say something more of the node, in a line of its own. A repeated line stays one."""
        lines = [] if self.note is None else self.note.split("\n")
        if note not in lines:
            self.note = "\n".join([*lines, note])

    # Measured, of a node without children and its entries in tables.
    _own_bytes = _BYTES

    def leave(self) -> Remains | None:
        """The remains of the node if it is dropped; None if it has to stay. Does not block."""
        return Remains((Local.DIRECTORY, *dict(self.names()).values()))

    @property
    def size(self) -> int:
        """How many numbers the node takes."""
        return int(Local.FIRST_TREE)

    @property
    def is_unopened(self) -> bool:
        """Whether it is a file of a plain directory that nobody has looked into yet."""
        return self.node.entry is not None and self.node.entry.form == "store"

    @property
    def is_group(self) -> bool:
        return self.node.metadata is not None

    def is_group_file(self, local: int) -> bool:
        """Whether a number is that of a file of several arrays, unless a node has its name."""
        return False

    def is_of_children(self, local: int) -> bool:
        """Whether such a file has only arrays that are directly in the group."""
        return False

    def names(self) -> Iterator[tuple[str, int]]:
        """Fixed names of the node's own directory, each with its number."""
        for i, name in enumerate(self.node.documents):
            yield name, Local.FIRST_DOCUMENT + i
        if self.note is not None:
            yield _NOTE_NAME, Local.NOTE
        if self.is_root:
            yield STATUS_DIRECTORY_NAME, Local.STATUS_DIRECTORY

    def document(self, local: int) -> str | None:
        """Store key of the metadata document with this number."""
        i = local - Local.FIRST_DOCUMENT
        if not 0 <= i < len(self.node.documents):
            return None
        name = self.node.documents[i]
        return f"{self.node.path}/{name}" if self.node.path else name

    def place(self, local: int) -> TreePlace | None:
        """Where in a chunk tree a number lies; None if in none."""
        return None

    def key_prefix(self, local: int) -> Index | None:
        """Where in `StoredKeys` a number lies; None if nowhere."""
        return None

    def stored_file(self, local: int) -> Index | None:
        """Index of the stored object that a file shows as it is; None for another number."""
        return None

    def is_data(self, local: int) -> bool:
        """Whether a number is that of a file of the array's data."""
        return False

    def size_blocks(self, local: int) -> bool:
        """Whether `MountedArray.data_size` has to read chunks, or takes long."""
        return False

    @property
    def changed_ns(self) -> int:
        """When the data were last known to change, in nanoseconds since the epoch."""
        return self.mtime_ns


class MountedFile(MountedNode):
    """A file of a plain directory, passed through. It is what the number 0 stands for.

    plain : where it lies.
    run : has work done in a thread.
    """

    def __init__(
        self, node: Node, plain: PlainDirectory, run: Callable[[Callable[[], None]], object]
    ) -> None:
        assert node.entry is not None
        super().__init__(node, None, node.entry.mtime_ns)
        self._plain = plain
        self._run = run

    def names(self) -> Iterator[tuple[str, int]]:
        return iter(())

    def look(self) -> Entry:
        """The present state of the file. Blocks. Raises EntryNotFound, StoreError."""
        if (entry := self._plain.entry(self.node.path)) is None:
            raise EntryNotFound(self.node.path)
        return entry

    def view(self) -> WritableView:
        """For one reader. Blocks. Raises as `look`, and StoreAccessDenied."""
        size = self.look().size
        view = StoredFileView(self._plain.files, self.node.path, size, self._run)
        view.check()
        return view


class MountedArray(MountedNode):
    """An array that is served: what its flat and its variable-length kinds share.

    rows : where it may be resized through its files.
    """

    _own_bytes = _ARRAY_BYTES

    def __init__(self, node: Node, array: CachedArray, note: str | None, mtime_ns: int) -> None:
        super().__init__(node, note, mtime_ns)
        self.array = array
        self.writable = array if isinstance(array, WritableArray) else None
        self.rows: GrowingRows | None = None
        self._keys: tuple[ChunkGrid, StoredKeys] | None = None

    @property
    def layout(self) -> ChunkLayout:
        """Grids of the shape that is shown; chunks of other shapes may be stored, too."""
        return self.array.array.layout

    @property
    def size(self) -> int:
        return max(super().size, self.keys.stop)

    @property
    def keys(self) -> StoredKeys:
        """The stored objects as files."""
        grid = self.layout.stored
        if self._keys is None or self._keys[0] is not grid:
            self._keys = grid, StoredKeys(grid, self.array.array.metadata.chunk_keys)
        return self._keys[1]

    def key_prefix(self, local: int) -> Index | None:
        return self.keys.prefix(local) if local >= FIRST_KEY else None

    def stored_file(self, local: int) -> Index | None:
        prefix = self.key_prefix(local)
        return None if prefix is None or not self.keys.is_file(prefix) else self.keys.index(prefix)

    def refresh(self) -> None:
        """Show the present shape."""

    @property
    def is_group(self) -> bool:
        return False

    @property
    def changed_ns(self) -> int:
        return max(self.mtime_ns, self.array.freshness.changed_ns)

    def retire(self) -> None:
        """Another one stands in its place: once its changes are stored, nobody looks for more."""
        for retire in self._retiring():
            retire()

    def _retiring(self) -> list[Callable[[], None]]:
        growing = [] if self.rows is None else [self.rows.growth.retire]
        return [self.array.retire, *growing]

    @property
    def has_changes(self) -> bool:  # type: ignore[override]
        return not self.array.clean or (self.rows is not None and not self.rows.settled)

    def leave(self) -> Remains | None:
        if self.has_changes:
            return None
        closing = (*self._retiring(), *self._caches())
        return Remains((Local.DIRECTORY, *self._known_numbers()), self.array, closing)

    def _known_numbers(self) -> Iterable[int]:
        """Numbers of the files in its directory, as far as anybody has asked for them."""
        return dict(self.names()).values()

    def _caches(self) -> list[Callable[[], None]]:
        """Functions that drop the caches of its files; they do not refer to the node."""
        return [self.array.drop]

    def drop_trees(self, reason: str) -> None:
        """Do without ``chunks/`` and ``shards/``."""
        self.add_note(reason)

    def is_header(self, local: int) -> bool:
        """Whether a data file is a header alone, beside the file with the elements."""
        return False

    def data_size(self, local: int) -> int:
        """Size in bytes of a data file. May block, where `size_blocks` says so.

        Raises ChunkError where it depends on chunks that cannot be had.
        """
        raise NotImplementedError

    def view_blocks(self, local: int) -> bool:
        """Whether `view` has to read chunks, or takes long."""
        raise NotImplementedError

    def view(self, local: int) -> WritableView:
        """A data file, for one reader. May block, where `view_blocks` says so."""
        raise NotImplementedError

    def stored_objects(self, most: int) -> tuple[int, int] | None:
        """Bytes of all stored objects, and when the newest was made (ns; 0: not known).

        None if there may be more than ``most``. Blocks.
        """
        array = self.array.array
        grid = self.layout.stored
        if grid.chunks > most:
            return None
        size = newest = 0
        for info in map(array.stored_info, grid.every_index()):
            if info is not None:
                size += info.size
                newest = max(newest, info.mtime_ns or 0)
        return size, newest

    def chunks_of(self, place: TreePlace) -> list[Index]:
        """The read chunks that a chunk or shard file shows part of the array of."""
        read = self.layout.read
        if place.tree.grid is read:
            return [place.chunk]
        start = place.tree.grid.origin(place.chunk)
        lengths = place.tree.grid.valid_shape(place.chunk)
        return list(read.chunks_in(start, lengths))

    def stored_object(self, place: TreePlace) -> Index:
        """Index of the stored object behind a chunk or shard file."""
        layout = self.layout
        if place.tree.grid is layout.stored:
            return place.chunk
        return layout.stored_index(place.chunk)
