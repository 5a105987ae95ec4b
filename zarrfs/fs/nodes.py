"""Groups and arrays as directories: which names each has, and what stands behind them.

Within a node every directory and file has a number; together with the node's place in
the `InodeSpace` that gives its inode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from zarrfs.array.hierarchy import Node
from zarrfs.cache.arena import Arena
from zarrfs.cache.chunk_cache import CachedArray
from zarrfs.format.chunk_grid import ChunkGrid, Index
from zarrfs.fs.chunk_tree import ChunkTree
from zarrfs.views.bytes_view import PrefixedView
from zarrfs.views.flat import FlatConfig, FlatView
from zarrfs.views.npy import npy_header
from zarrfs.views.slabs import Slabs
from zarrfs.views.stream import StreamView
from zarrfs.views.view import View
from zarrfs.views.window import Window


class Local(IntEnum):
    """Numbers within a node; chunk trees follow after the documents."""

    DIRECTORY = 0
    NOTE = 1
    FLAT = 2
    NPY = 3
    STATUS_DIRECTORY = 4
    STATS = 5
    CONFIG = 6
    FIRST_DOCUMENT = 16
    FIRST_TREE = 32


STATUS_DIRECTORY_NAME = ".zarrfs"
STATUS_NAMES = {"stats.json": Local.STATS, "config.json": Local.CONFIG}
_NOTE_NAME = "zarrfs-note.txt"


@dataclass(frozen=True, slots=True)
class TreePlace:
    """A directory or file below ``chunks/`` or ``shards/``."""

    tree: GridTree
    prefix: Index

    @property
    def is_file(self) -> bool:
        return self.tree.numbers.is_file(self.prefix)

    @property
    def chunk(self) -> Index:
        """Index in the tree's grid of the chunk that a file shows."""
        return self.tree.numbers.chunk(self.prefix)


class GridTree:
    """``chunks/`` or ``shards/``: one file for each chunk of ``grid``.

    first : number within the node of the tree's root directory.
    """

    def __init__(self, name: str, grid: ChunkGrid, first: int) -> None:
        self.name = name
        self.grid = grid
        self.first = first
        self.numbers = ChunkTree(grid.counts)

    @property
    def stop(self) -> int:
        return self.first + self.numbers.nodes

    def local(self, prefix: Index) -> int:
        return self.first + self.numbers.number(prefix)

    def place(self, local: int) -> TreePlace:
        return TreePlace(self, self.numbers.prefix(local - self.first))


class MountedNode:
    """A group, or an array that cannot be served: a directory of documents and a note."""

    def __init__(self, node: Node, note: str | None, mtime_ns: int) -> None:
        self.node = node
        self.note = note
        self.mtime_ns = mtime_ns

    @property
    def size(self) -> int:
        """How many numbers the node takes."""
        return int(Local.FIRST_TREE)

    @property
    def is_group(self) -> bool:
        return self.node.metadata is not None

    def names(self) -> Iterator[tuple[str, int]]:
        """Fixed names of the node's own directory, each with its number."""
        for i, name in enumerate(self.node.documents):
            yield name, Local.FIRST_DOCUMENT + i
        if self.note is not None:
            yield _NOTE_NAME, Local.NOTE
        if not self.node.path:
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

    def flat_size(self, local: int) -> int | None:
        """Size in bytes of the data file with this number; None if it is none."""
        return None


class MountedArray(MountedNode):
    """An array that is served."""

    def __init__(
        self, node: Node, array: CachedArray, mtime_ns: int, config: FlatConfig, arena: Arena
    ) -> None:
        super().__init__(node, None, mtime_ns)
        self.array = array
        self._config = config
        self._arena = arena
        layout = array.array.layout
        whole = Window(layout.read, (0,) * len(layout.read.axes), layout.read.shape)
        self._flat = FlatView(array, whole, config)
        self._slabs = self._slabs_of(self._flat)
        self._npy_header = npy_header(self._flat.dtype, array.array.metadata.shape, config.order)
        self.trees = [GridTree("chunks", layout.read, Local.FIRST_TREE)]
        if layout.sharded:
            self.trees.append(GridTree("shards", layout.stored, self.trees[0].stop))
        self._item = layout.data_type.item_size

    @property
    def size(self) -> int:
        return self.trees[-1].stop if self.trees else int(Local.FIRST_TREE)

    def drop_trees(self, reason: str) -> None:
        """Do without ``chunks/`` and ``shards/``."""
        self.trees = []
        self.note = reason

    @property
    def is_group(self) -> bool:
        return False

    @property
    def changed_ns(self) -> int:
        """When the data were last known to change, in nanoseconds since the epoch."""
        return max(self.mtime_ns, self.array.freshness.changed_ns)

    def names(self) -> Iterator[tuple[str, int]]:
        yield "array.bin", Local.FLAT
        if self._npy_header is not None:
            yield "array.npy", Local.NPY
        for tree in self.trees:
            yield tree.name, tree.first
        yield from super().names()

    def place(self, local: int) -> TreePlace | None:
        for tree in self.trees:
            if tree.first <= local < tree.stop:
                return tree.place(local)
        return None

    def flat_size(self, local: int) -> int | None:
        if local == Local.FLAT:
            return self._flat.size
        if local == Local.NPY and self._npy_header is not None:
            return len(self._npy_header) + self._flat.size
        if (place := self.place(local)) is not None and place.is_file:
            return math.prod(place.tree.grid.chunk_shape(place.chunk)) * self._item
        return None

    def view(self, local: int) -> View | None:
        """The data file with this number, for one reader; None if it is none."""
        if local == Local.FLAT:
            return StreamView(self._flat, self._slabs)
        if local == Local.NPY and self._npy_header is not None:
            return PrefixedView(self._npy_header, StreamView(self._flat, self._slabs))
        if (place := self.place(local)) is None or not place.is_file:
            return None
        grid = place.tree.grid
        layout = self.array.array.layout
        window = Window(layout.read, grid.origin(place.chunk), grid.chunk_shape(place.chunk))
        view = FlatView(self.array, window, FlatConfig(self._config.byteorder))
        return view if grid is layout.read else StreamView(view, self._slabs_of(view))

    def _slabs_of(self, view: FlatView) -> Slabs:
        return Slabs(view, self.array, self._arena)

    def stored_bytes(self, most: int) -> int | None:
        """Bytes of all stored objects; None if there are more than ``most``. Blocks."""
        array = self.array.array
        counts = array.layout.stored.counts
        if math.prod(counts) > most:
            return None
        infos = map(array.stored_info, product(*map(range, counts)))
        return sum(info.size for info in infos if info is not None)

    def stored_object(self, place: TreePlace) -> Index:
        """Index of the stored object behind a chunk or shard file."""
        layout = self.array.array.layout
        if place.tree.grid is layout.stored:
            return place.chunk
        return layout.stored_index(place.chunk)
