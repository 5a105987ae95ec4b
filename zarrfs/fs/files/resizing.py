"""Writing beyond the end of ``array.bin`` and ``array.npy``, and truncating them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from zarrfs.errors import FileTooLarge
from zarrfs.fs.coherence.kernel_pages import KernelPages
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.growing_rows import GrowingRows, rows_in_header
from zarrfs.fs.nodes.nodes import Local
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import WritableView

FLAT_FILES = (Local.FLAT, Local.NPY)


def growing(place: Place) -> FlatArray | None:
    """The array of a place, where it may be resized."""
    node = place.node
    return node if isinstance(node, FlatArray) and node.rows is not None else None


class End:
    """Where a file ends, for a write that goes there; then, where that was.

    So a write that is repeated goes to the same place.
    """

    taken: int | None = None

    def of(self, size: int) -> int:
        return size if self.taken is None else self.taken


class Resizing:
    """Changes the sizes of files. Loop only.

    A task that changes elements passes the array's gate; a task that clears objects beyond the end,
    or gives up rows, is alone behind it. Nothing here waits for the kernel, which may
    itself be waiting to hand over pages that were changed in a mapping.
    """

    def __init__(self, threads: Threads, pages: KernelPages) -> None:
        self._threads = threads
        self._pages = pages

    async def write(
        self,
        array: FlatArray,
        place: Place,
        view: WritableView,
        at: int | End,
        data: memoryview,
    ) -> int:
        """Write to a file of the array, which grows if need be; how many bytes.

        Raises FileTooLarge, and what `WritableView.write` raises; the file then has the size
        that it had.
        """
        rows = _rows(array)
        local = place.local
        header = rows.header if local == Local.NPY else 0
        if local in FLAT_FILES:
            most = header + rows.growth.largest * rows.row_bytes
            while True:
                offset = at if isinstance(at, int) else at.of(array.data_size(local))
                if offset >= most:
                    raise FileTooLarge(f"the array can have {rows.growth.largest} rows at most")
                data = data[: most - offset]
                stop = max(offset + len(data) - header, _announced_end(rows, header, offset, data))
                await self._enter(rows, rows.needed(stop))
                if isinstance(at, int) or offset == at.of(array.data_size(local)):
                    break
            if isinstance(at, End):
                at.taken = offset
            before = rows.count, rows.missing(local)
            rows.extend(local, stop)
            array.refresh()
        else:
            assert isinstance(at, int)
            offset = at
            await rows.gate.wait_open()
            if offset >= view.size and len(data):
                raise FileTooLarge(f"offset {offset} of {view.size} bytes")
            data = data[: view.size - offset]
        try:
            rest = view.write(offset, data)
        except BaseException:
            if local in FLAT_FILES:
                rows.take_back(local, *before)
                array.refresh()
            raise
        if rest is not None:
            with rows.gate.inside():
                await self._threads.run(rest)
        return len(data)

    async def _enter(self, rows: GrowingRows, needed: int) -> None:
        """Returns with the gate open and room for so many rows."""
        while True:
            await rows.gate.wait_open()
            if rows.growth.has_room(needed):
                return
            async with rows.gate.alone():
                if not rows.growth.has_room(needed):
                    await self._threads.run(partial(rows.growth.make_room, needed))

    async def truncate(self, array: FlatArray, place: Place, size: int) -> None:
        """Have a flat file end at ``size``, and the last row of the array after it.

        Returns when that is stored. Raises FileTooLarge, StoreError and others.
        """
        rows = _rows(array)
        stop = max(0, size - (rows.header if place.local == Local.NPY else 0))
        needed = rows.needed(stop)
        async with rows.gate.alone():
            end = rows.end - rows.missing(place.local)
            if stop == end:
                return
            try:
                await self._resize(array, rows, stop, end, needed)
            finally:
                rows.complete_all()
                array.refresh()
        self._tell(place)

    async def _resize(
        self, array: FlatArray, rows: GrowingRows, stop: int, end: int, needed: int
    ) -> None:
        growth = rows.growth
        if needed < rows.count:
            await self._threads.run(partial(growth.shrink, needed))
        elif needed > rows.count:
            if not growth.has_room(needed):
                await self._threads.run(partial(growth.make_room, needed))
            growth.grow(needed)
        array.refresh()
        if stop < min(end, rows.end):
            await self._threads.run(partial(array.blank, stop))
        await self._threads.run(self.flush(array))

    def flush(self, array: FlatArray) -> Callable[[], None]:
        """A function that stores all changes of elements and of the shape. Blocks."""
        assert array.writable is not None
        flush, store = array.writable.flush, _rows(array).growth.flush

        def both() -> None:
            flush()
            store()

        return both

    def stored(self, array: FlatArray, place: Place, writers: set[int]) -> None:
        """Changes that were made through the inodes ``writers`` are stored, as `flush` says.

        place : any in the array.
        """
        if _rows(array).take_rows_changed():
            self._tell(place, but=writers if len(writers) == 1 else set())

    def closed(self, array: FlatArray, place: Place) -> None:
        """Nobody has the file open for writing any more: it ends with a whole row."""
        if _rows(array).complete(place.local):
            self._pages.drop(place.inode)

    def _tell(self, place: Place, but: Collection[int] = ()) -> None:
        """Have the kernel forget sizes and pages of the flat files, other than the inodes ``but``.

        The kernel has the size of a file that it alone has written to.
        """
        for local in FLAT_FILES:
            if (inode := place.sibling(local).inode) not in but:
                self._pages.drop(inode)


def _rows(array: FlatArray) -> GrowingRows:
    assert array.rows is not None
    return array.rows


def _announced_end(rows: GrowingRows, header: int, offset: int, data: memoryview) -> int:
    """Where the elements end that the header of an NPY file announces; 0 if none does."""
    if not header or offset or len(data) < header:
        return 0
    count = rows_in_header(bytes(data[:header]))
    return 0 if count is None or count > rows.growth.largest else count * rows.row_bytes
