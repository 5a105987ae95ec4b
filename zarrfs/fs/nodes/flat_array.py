"""Arrays of elements of fixed size: ``array.bin``, other formats, ``chunks/``, ``shards/``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from zarrfs.array.node_readers import Node
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.growth import Growth
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.fs.nodes.array_views import ArrayViews
from zarrfs.fs.nodes.chunk_tree import GridTree, TreePlace
from zarrfs.fs.nodes.growing_rows import GrowingRows
from zarrfs.fs.nodes.nodes import Local, MountedArray
from zarrfs.views.bytes_view import BytesView
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView, StreamView
from zarrfs.views.framed import FlippedView, FramedView
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import GroupForm
from zarrfs.views.records import RecordsView
from zarrfs.views.refreshed import RefreshedView
from zarrfs.views.slabs.slabs import Slabs
from zarrfs.views.tiles.boxes import Boxes
from zarrfs.views.tiles.gathered import GatheredView, Section, WholeFile
from zarrfs.views.tiles.tiling import Tiling
from zarrfs.views.view import WritableView

# Room for the numbers of chunks that are still to come.
_GROWING_SIZE = 1 << 40
_BLANKED_AT_ONCE = 1 << 20


class FlatArray(MountedArray):
    """An array with flat views.

    views : which files there are beside ``array.bin``, how elements lie in all of them, and
        the region that they show. There are no files of chunks and shards of a region, which
        need not end where chunks do.
    growth : where its first axis may become longer and shorter; ``rows`` is then not None.
    """

    def __init__(
        self,
        node: Node,
        array: CachedArray,
        mtime_ns: int,
        views: ArrayViews,
        cache: BlockCache,
        growth: Growth | None = None,
    ) -> None:
        super().__init__(node, array, node.problem, mtime_ns)
        self._views = views
        self._cache = cache
        self._has_trees = views.region is None
        self._item_size = array.array.layout.data_type.item_size
        # The shape that the flat files are made for; see `_planned_rows`.
        self._planned: Shape | None = None
        self._show()
        if growth is not None:
            header = self._views.frame_size(self.node, Local.NPY)
            self.rows = GrowingRows(growth, self._shape[1:], self._item_size, header)

    def described(self, layout: FlatConfig | None = None) -> Described:
        """The description of the array for headers; see `ArrayViews.described`."""
        return self._views.described(self.node, layout)

    def _show(self) -> None:
        """Make everything that depends on the shape."""
        array = self.array.array
        shape = array.metadata.shape
        if self.rows is not None:
            shape = (self.rows.count, *shape[1:])
        self._shape = shape
        layout = array.layout
        if layout.read.shape != shape:
            layout = layout.resized(shape)
        self._layout = layout
        planned = shape if self.rows is None else (self._planned_rows(self.rows), *shape[1:])
        if planned != self._planned:
            self._planned = planned
            elements = Elements(self.array, self._window, self._views.layout)
            self._flat = FlatView(elements)
            self._slabs = Slabs(elements, self._cache)
            # The same in the other byte order, once it is asked for.
            self._turned: tuple[FlatView, Slabs] | None = None
        self._trees = _trees(layout) if self._has_trees else []
        if self.rows is not None:
            metadata = array.metadata._replace(shape=shape, layout=layout)
            self.node = self.node._replace(metadata=metadata)
            if self._trees and self.size > _GROWING_SIZE:
                self.drop_trees("chunks/ and shards/ are not shown: there are too many chunks")

    def _planned_rows(self, rows: GrowingRows) -> int:
        """Rows up to the end of the last stored objects, where others have left nothing there.

        So the flat files are not made anew for each row. Reads and writes end with the file,
        whatever it is planned for.
        """
        axis = self.array.array.layout.stored.axes[0]
        if not rows.count:
            return 0
        last = axis.chunk_of(rows.count - 1)
        end = min(axis.origin(last) + axis.length(last), axis.extent)
        return end if rows.growth.has_room(end) else rows.count

    @property
    def _window(self) -> Window:
        read = self._layout.read
        if self._views.region is None:
            return Window.whole(read if self._planned is None else read.resized(self._planned))
        return Window(read, self._views.region.origin, self._views.region.shape)

    @property
    def shape(self) -> Shape:
        """The shape of the array, with rows that are not stored yet."""
        return self._shape

    def refresh(self) -> None:
        """Show the rows that there are by now."""
        if self.rows is not None and self.rows.count != self._shape[0]:
            self._show()

    def _known_numbers(self) -> Iterable[int]:
        yield Local.FLAT
        yield from self._views.known_numbers()
        yield from (tree.first for tree in self._trees)
        yield from dict(MountedArray.names(self)).values()

    def _caches(self) -> list[Callable[[], None]]:
        turned = [] if self._turned is None else [self._turned[1].drop]
        return [*super()._caches(), self._slabs.drop, *turned]

    @property
    def layout(self) -> ChunkLayout:
        return self._layout

    @property
    def _has_byte_order(self) -> bool:
        data_type = self._layout.data_type
        return data_type.stored_dtype(big_endian=True) != data_type.dtype

    @property
    def size(self) -> int:
        least = super().size if self.rows is None else _GROWING_SIZE
        return max(least, *(tree.stop for tree in self._trees), 0)

    def drop_trees(self, reason: str) -> None:
        super().drop_trees(reason)
        self._has_trees = False
        self._trees = []

    def names(self) -> Iterator[tuple[str, int]]:
        yield f"{self._views.stem}.bin", Local.FLAT
        yield from self._views.names(self.node)
        for tree in self._trees:
            yield tree.name, tree.first
        yield from super().names()

    def place(self, local: int) -> TreePlace | None:
        for tree in self._trees:
            if (found := tree.place(local)) is not None:
                return found
        return None

    def is_data(self, local: int) -> bool:
        if local == Local.FLAT or self._views.has(self.node, local):
            return True
        place = self.place(local)
        return place is not None and place.is_file

    def has_padding(self, local: int) -> bool:
        """Whether a file of a chunk or shard has elements beyond the edge of the array."""
        if (place := self.place(local)) is None:
            return False
        grid = place.tree.grid
        ends = zip(
            grid.origin(place.chunk), grid.chunk_shape(place.chunk), self._shape, strict=True
        )
        return any(start + length > size for start, length, size in ends)

    def is_header(self, local: int) -> bool:
        return self._views.has(self.node, local) and self._views.is_header(local)

    def size_blocks(self, local: int) -> bool:
        return self._views.has(self.node, local) and not self._views.measured(self.node, local)

    def view_blocks(self, local: int) -> bool:
        return local != Local.NPY and self._views.has(self.node, local)

    def data_size(self, local: int) -> int:
        if (place := self.place(local)) is not None:
            return math.prod(place.tree.grid.chunk_shape(place.chunk)) * self._item_size
        size = self._flat.size if self.rows is None else self.rows.end - self.rows.missing(local)
        if not self._views.has(self.node, local):
            return size
        frame = self._views.frame_size(self.node, local)
        return frame if self._views.is_header(local) else size + frame

    def view(self, local: int) -> WritableView:
        if self.rows is None:
            return self._view(local)
        # A header tells the number of rows.
        version = (lambda: self._flat) if local == Local.FLAT else (lambda: self._shape)
        return RefreshedView(lambda: self._view(local), version, lambda: self._view_size(local))

    def blank(self, start: int) -> None:
        """Have nothing but fill value from byte ``start`` of the elements on. Blocks.

        Raises ZarrfsError.
        """
        read = self._layout.read
        behind = Window(read, read.shape, (1,) * len(read.shape))
        fill = Elements(self.array, behind, self._views.layout).get(0, 1)
        assert fill is not None
        piece = fill.tobytes() * (_BLANKED_AT_ONCE // self._item_size + 2)
        stop = math.prod(self._shape) * self._item_size
        for at in range(start, stop, _BLANKED_AT_ONCE):
            size = min(_BLANKED_AT_ONCE, stop - at)
            into = at % self._item_size
            rest = self._flat.write(at, memoryview(piece)[into : into + size])
            if rest is not None:
                rest()

    def _view_size(self, local: int) -> int:
        return self.data_size(local) if self.is_data(local) else 0

    def _view(self, local: int) -> WritableView:
        if not self.is_data(local):
            return BytesView(b"")  # a chunk that is not there any more
        if (place := self.place(local)) is not None:
            return self._chunk_view(place)
        if not self._views.has(self.node, local):
            return StreamView(self._flat, self._slabs)
        form = self._views.form(self.node, local)
        if (boxed := form.boxed) is not None:
            return gathered(boxed, [self] * len(boxed.placed), writable=self.writable is not None)
        if form.layout is None:
            return FramedView(form.header, BytesView(b""))
        body: WritableView = StreamView(*self._flat_in(form.layout))
        if form.flipped:
            first = 0 if form.layout.byteorder == "big" else self._item_size - 1
            body = FlippedView(body, self._item_size, first)
        if form.records is not None:
            body = RecordsView(body, form.records)
        return FramedView(form.header, body, form.trailer, form.marks, form.gap)

    @property
    def kernel_keeps(self) -> bool:
        """Whether what was read stays with the kernel until the array changes.

        A distant store is not asked for each object, so its pages are dropped at every check.
        Chunks in memory are compared then, and need not be fetched again.
        """
        return self.writable is None and self.array.array.store.traits.near

    def _flat_in(self, layout: FlatConfig) -> tuple[FlatView, Slabs]:
        """The elements in the order of the mount, in either byte order."""
        if layout.byteorder == self._views.layout.byteorder or not self._has_byte_order:
            return self._flat, self._slabs
        if self._turned is None:
            elements = Elements(self.array, self._window, layout)
            self._turned = FlatView(elements), Slabs(elements, self._cache)
        return self._turned

    def _chunk_view(self, place: TreePlace) -> WritableView:
        grid = place.tree.grid
        read = self._layout.read
        window = Window(read, grid.origin(place.chunk), grid.chunk_shape(place.chunk))
        elements = Elements(self.array, window, FlatConfig(self._views.layout.byteorder))
        if grid is read:
            return FlatView(elements)
        return StreamView(FlatView(elements), Slabs(elements, self._cache))


def gathered(
    form: GroupForm, arrays: Sequence[FlatArray], owner: object = None, *, writable: bool
) -> GatheredView:
    """A file of several arrays, or of boxes, for one reader; ``owner`` as in `GatheredView`.

    arrays : of each place in the form.
    """
    sections: list[Section] = []
    for array, placed in zip(arrays, form.placed, strict=True):
        if isinstance(placed.place, Tiling):
            sections.append(Boxes(array.array, array.layout.read, placed.place))
        else:
            sections.append(WholeFile.at(placed.place, array.view(Local.FLAT)))
    kept = all(array.kernel_keeps for array in arrays)
    return GatheredView(
        form.header, sections, form.size, owner, writable=writable, marks=form.marks, kept=kept
    )


def _trees(layout: ChunkLayout) -> list[GridTree]:
    grids = {"chunks": layout.read}
    if layout.sharded:
        grids["shards"] = layout.stored
    return [
        GridTree(name, grid, Local.FIRST_TREE + i, len(grids))
        for i, (name, grid) in enumerate(grids.items())
    ]
