"""Arrays of elements of fixed size: ``array.bin``, ``array.npy``, ``chunks/``, ``shards/``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from zarrfs.array.node_readers import Node
from zarrfs.cache.arena import Arena
from zarrfs.cache.chunk_source import ChunkSource
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.fs.nodes import GridTree, Local, MountedArray, TreePlace
from zarrfs.views.bytes_view import PrefixedView
from zarrfs.views.elements import Elements, FlatConfig
from zarrfs.views.flat import FlatView
from zarrfs.views.npy import npy_header
from zarrfs.views.slabs import Slabs
from zarrfs.views.stream import StreamView
from zarrfs.views.view import WritableView
from zarrfs.views.window import Window


class FlatArray(MountedArray):
    """An array with flat views."""

    def __init__(
        self, node: Node, array: ChunkSource, mtime_ns: int, config: FlatConfig, arena: Arena
    ) -> None:
        super().__init__(node, array, None, mtime_ns)
        self._config = config
        self._arena = arena
        layout = array.array.layout
        elements = Elements(array, Window.whole(layout.read), config)
        self._flat = FlatView(elements)
        self._slabs = Slabs(elements, arena)
        self._npy_header = npy_header(
            layout.data_type.dtype, array.array.metadata.shape, config.byteorder, config.order
        )
        self._trees = _trees(layout)
        self._item_size = layout.data_type.item_size

    @property
    def size(self) -> int:
        return max((tree.stop for tree in self._trees), default=super().size)

    def drop_trees(self, reason: str) -> None:
        super().drop_trees(reason)
        self._trees = []

    def names(self) -> Iterator[tuple[str, int]]:
        yield "array.bin", Local.FLAT
        if self._npy_header is not None:
            yield "array.npy", Local.NPY
        for tree in self._trees:
            yield tree.name, tree.first
        yield from super().names()

    def place(self, local: int) -> TreePlace | None:
        for tree in self._trees:
            if (found := tree.place(local)) is not None:
                return found
        return None

    def is_data(self, local: int) -> bool:
        if local == Local.NPY:
            return self._npy_header is not None
        place = self.place(local)
        return local == Local.FLAT or (place is not None and place.is_file)

    def size_blocks(self, local: int) -> bool:
        return False

    def view_blocks(self) -> bool:
        return False

    def data_size(self, local: int) -> int:
        if (place := self.place(local)) is not None:
            return math.prod(place.tree.grid.chunk_shape(place.chunk)) * self._item_size
        header = self._npy_header if local == Local.NPY else None
        return self._flat.size + len(header or b"")

    def view(self, local: int) -> WritableView:
        if (place := self.place(local)) is not None:
            return self._chunk_view(place)
        stream = StreamView(self._flat, self._slabs)
        if local == Local.NPY and self._npy_header is not None:
            return PrefixedView(self._npy_header, stream)
        return stream

    def _chunk_view(self, place: TreePlace) -> WritableView:
        grid = place.tree.grid
        read = self.array.array.layout.read
        window = Window(read, grid.origin(place.chunk), grid.chunk_shape(place.chunk))
        elements = Elements(self.array, window, FlatConfig(self._config.byteorder))
        view = FlatView(elements)
        return view if grid is read else StreamView(view, Slabs(elements, self._arena))


def _trees(layout: ChunkLayout) -> list[GridTree]:
    grids = {"chunks": layout.read}
    if layout.sharded:
        grids["shards"] = layout.stored
    return [
        GridTree(name, grid, Local.FIRST_TREE + i, len(grids))
        for i, (name, grid) in enumerate(grids.items())
    ]
