"""Pages of mapped files of one array, with a kernel that hands them over as a whole."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from unittest.mock import Mock

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.fs.documents import array_document, sharding
from tests.fs.write_store import Request, WriteStore
from zarrfs.errors import ChunkError, StoreFull
from zarrfs.fs.files import other_views
from zarrfs.fs.files.kernel_pages import KernelPages
from zarrfs.fs.files.other_views import OtherViews
from zarrfs.views.headers import registry
from zarrfs.views.headers.form import Form
from zarrfs.views.records import Records

pytestmark = pytest.mark.timeout(100)

SHAPE = (8, 8)
CHUNK = (4, 4)
VIEWS = ("array.bin", "array.npy", "array.fits", "array.records", "chunks/0/0", "shards/0/0")
MARK = b"ROW\n\n"


class Kernel:
    """Keeps one page of each file that is mapped, and hands it over when it is told to drop it.

    A page is all of a file here: files are small.
    """

    def __init__(self, mount) -> None:
        self._fs = mount.fs
        self._handles: dict[int, int] = {}
        self._pages: dict[int, bytearray] = {}
        self._dirty: set[int] = set()
        # What it is asked for, one after the other: pages to be dropped, and who waits for that.
        self._queue: list[int | trio.Event] = []
        self._current = 0
        self._busy = False
        # A page that is being read is neither dropped nor written to.
        self._locks: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        self._under_way: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        # How long it takes to answer, as checkpoints.
        self.slowness = 0
        mount.fs.set_kernel_cache(self)

    def drop(self, inode: int) -> None:
        if inode not in self._queue:
            self._ask(inode)

    def dropping(self, inode: int) -> bool:
        return inode in self._queue or self._current == inode

    async def settled(self) -> None:
        over = trio.Event()
        self._ask(over)
        await over.wait()

    def _ask(self, item: int | trio.Event) -> None:
        self._queue.append(item)
        if not self._busy:
            self._busy = True
            trio.lowlevel.spawn_system_task(self._work)

    async def _work(self) -> None:
        while self._queue:
            item = self._queue.pop(0)
            if isinstance(item, trio.Event):
                item.set()
                continue
            self._current = item
            for _ in range(self.slowness):
                await trio.lowlevel.checkpoint()
            async with self._locks[item]:
                await self.hand_over(item)
                while item in self._dirty:
                    await self.hand_over(item)
                self._pages.pop(item, None)
            self._current = 0
        self._busy = False

    async def hand_over(self, inode: int) -> None:
        # Nor is a page handed over twice at the same time.
        async with self._under_way[inode]:
            if inode in self._dirty:
                self._dirty.discard(inode)
                await self._fs.write(self._handles[inode], 0, bytes(self._pages[inode]))

    async def change(self, inode: int, handle: int, offset: int, data: bytes) -> None:
        """A program changes bytes in a mapping."""
        self._handles[inode] = handle
        async with self._locks[inode]:
            if inode not in self._pages:
                self._pages[inode] = bytearray(await self._fs.read(handle, 0, 1 << 20))
        self._pages[inode][offset : offset + len(data)] = data
        self._dirty.add(inode)

    async def write(self, inode: int, handle: int, offset: int, data: bytes) -> int:
        """A program writes to a file through its pages, which show it at once.

        A page that is not there yet is made, and nobody else has it until the write is over.
        """
        async with self._locks[inode]:
            if (page := self._pages.get(inode)) is None:
                return await self._fs.write(handle, offset, data)
            page[offset : offset + len(data)] = data
        return await self._fs.write(handle, offset, data)


class Program:
    """Changes elements of the first chunk through one view: in a mapping, or by writing."""

    def __init__(self, mount, kernel: Kernel, view: str, how: str) -> None:
        self._fs = mount.fs
        self._kernel = kernel
        self._how = how
        self._file = mount.edit(view, read=how != "write only")
        self._view = view
        size = mount.stat(view).size
        elements = 2 * int(np.prod(SHAPE))
        starts = {"array.npy": size - elements, "array.fits": 2880, "array.records": 3}
        self._start = starts.get(view, 0)

    @property
    def handle(self) -> int:
        return self._file.opened.handle

    async def put(self, place: tuple[int, int], value: int) -> None:
        data = value.to_bytes(2, "little")
        if self._view == "array.fits":
            # FITS has no unsigned integers: the most significant bit is inverted.
            data = (value ^ 0x8000).to_bytes(2, "big")
        width = CHUNK[1] if self._view.startswith("chunks") else SHAPE[1]
        offset = self._start + 2 * (place[0] * width + place[1])
        if self._view == "array.records":
            offset += len(MARK) * (place[0] + 1)
        if self._how == "mapping":
            await self._kernel.change(self._file.inode, self.handle, offset, data)
        elif self._file.opened.direct:
            assert await self._fs.write(self.handle, offset, data) == 2
        else:
            inode = self._file.inode
            assert await self._kernel.write(inode, self.handle, offset, data) == 2

    async def sync(self) -> None:
        if self._how == "mapping":
            await self._kernel.hand_over(self._file.inode)
        await self._fs.fsync(self.handle)


def rows(array):
    """A format that has a mark before each row."""
    return lambda: Form(b"top", array.layout, b"end", records=Records(MARK, 2 * SHAPE[1], SHAPE[0]))


@pytest.fixture
def mount(opened, monkeypatch):
    monkeypatch.setattr(registry, "_entry_points", lambda: {"records": lambda: rows})
    document = array_document(
        SHAPE, SHAPE, codecs=[sharding(CHUNK)], data_type="uint16", fill_value=7
    )
    return opened(WriteStore({"zarr.json": document}), views=("npy", "fits", "records"))


def elements(mount) -> np.ndarray:
    return np.frombuffer(mount.read("array.bin"), "<u2").reshape(SHAPE)


def stored(opened, mount) -> np.ndarray:
    return elements(opened(WriteStore(mount.store.objects)))


HOW = ("mapping", "writing", "write only")


@pytest.mark.parametrize("slowness", [0, 3])
@pytest.mark.parametrize("seed", range(12))
def test_programs_that_change_their_own_elements_lose_none(
    loop, opened, mount, seed, slowness, monkeypatch
):
    """All at once, through all views, and each element belongs to one of them."""
    # In a thread, as much is compared, or on the event loop.
    monkeypatch.setattr(other_views, "_FEW", 0 if seed % 2 else 1 << 14)
    dice = random.Random(seed)
    kernel = Kernel(mount)
    kernel.slowness = slowness
    chosen = [dice.choice(VIEWS) for _ in range(dice.randint(2, 6))]
    programs = [Program(mount, kernel, view, dice.choice(HOW)) for view in chosen]
    expected = elements(mount).copy()

    async def run(number: int) -> None:
        mine = random.Random(100 * seed + number)
        for _ in range(40):
            if mine.random() < 0.1:
                await programs[number].sync()
            element = mine.randrange(number, 16, len(programs))
            place, value = divmod(element, CHUNK[1]), mine.randrange(1 << 16)
            await programs[number].put(place, value)
            expected[place] = value
            for _ in range(mine.randrange(3)):
                await trio.lowlevel.checkpoint()
        await programs[number].sync()

    async def run_all() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(len(programs)):
                nursery.start_soon(run, number)
        for program in programs:
            await program.sync()

    loop.run(run_all)
    assert (elements(mount) == expected).all()
    assert (stored(opened, mount) == expected).all()


@pytest.mark.parametrize("how", ["writing", "write only"])
@pytest.mark.parametrize("view", VIEWS)
def test_when_a_write_returns_no_changed_page_holds_older_bytes(loop, mount, view, how):
    kernel = Kernel(mount)
    mapped = "chunks/0/0" if view != "chunks/0/0" else "array.bin"
    mapping, writer = Program(mount, kernel, mapped, "mapping"), Program(mount, kernel, view, how)

    async def run() -> None:
        await mapping.put((0, 0), 1)
        await writer.put((0, 1), 2)
        await mapping.put((0, 2), 3)

    loop.run(run)
    assert elements(mount)[0, :3].tolist() == [1, 2, 7]
    loop.run(mapping.sync)
    assert elements(mount)[0, :3].tolist() == [1, 2, 3]


def test_much_is_compared_in_a_thread(loop, opened, mount, monkeypatch):
    """To number the elements of 1 MiB takes tens of milliseconds."""
    threads = []
    plain = other_views.Written.__init__

    def note(self, *arguments) -> None:
        threads.append((threading.current_thread().name, arguments[2].nbytes))
        plain(self, *arguments)

    monkeypatch.setattr(other_views.Written, "__init__", note)
    large = opened(WriteStore({"zarr.json": array_document((1 << 16,), (1 << 14,))}))
    kernel = Kernel(large)
    mapping = Program(large, kernel, "chunks/0", "mapping")
    file = large.edit("array.bin")
    file.write(0, bytes(1 << 10))
    file.write(0, bytes(1 << 17))
    assert {size for _, size in threads} >= {1 << 10, 1 << 17}
    assert all((name == "test loop") == (size <= other_views._FEW) for name, size in threads)
    file.close()
    loop.run(mapping.sync)


def test_a_sync_waits_for_pages_of_other_files(loop, opened, mount):
    """Also where whoever wrote did not wait, because his own pages were being dropped."""
    kernel = Kernel(mount)
    kernel.slowness = 20
    one, two = (Program(mount, kernel, view, "mapping") for view in ("array.bin", "array.npy"))

    async def run() -> None:
        for value in range(1, 20):
            await one.put((0, 0), value)
            await two.put((0, 1), value)
            await one.sync()
            await two.sync()

    loop.run(run)
    assert stored(opened, mount)[0, :2].tolist() == [19, 19]


@pytest.mark.parametrize("how", ["flush", "fsync"])
def test_what_is_told_to_be_stored_is_shown_by_all_files(loop, mount, monkeypatch, how):
    """Pages of other files are gone by then, also where whoever wrote did not wait for that."""
    monkeypatch.setattr(other_views, "_PATIENCE", 0.0)
    kernel = Kernel(mount)
    kernel.slowness = 5000
    one, two = (Program(mount, kernel, view, "mapping") for view in ("array.bin", "array.npy"))
    inode = two._file.inode

    async def run() -> None:
        await two.put((0, 1), 2)
        await one.put((0, 0), 1)
        await kernel.hand_over(one._file.inode)
        assert inode in kernel._pages
        await getattr(mount.fs, how)(one.handle)
        assert inode not in kernel._pages

    loop.run(run)
    assert elements(mount)[0, :2].tolist() == [1, 2]


def test_of_pages_that_come_in_together_only_one_waits_for_other_files(loop, mount, monkeypatch):
    """The others leave the kernel free places, which it may need to drop pages."""
    monkeypatch.setattr(other_views, "_PATIENCE", 3600.0)
    kernel = Kernel(mount)
    settled = kernel.settled
    waits, go_on = trio.Event(), trio.Event()

    async def settled_late() -> None:
        waits.set()
        await go_on.wait()
        await settled()

    monkeypatch.setattr(kernel, "settled", settled_late)
    mount.edit("array.npy")
    whole = mount.edit("array.bin")
    page = np.full(SHAPE, 3, "<u2").tobytes()
    written = []

    async def hand_over(number: int) -> None:
        await mount.fs.write(whole.opened.handle, 0, page)
        written.append(number)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hand_over, 0)
            await waits.wait()
            # One that waits, too, must not hang the test.
            with trio.move_on_after(10):
                await hand_over(1)
                await hand_over(2)
            go_on.set()

    loop.run(run)
    assert written == [1, 2, 0]
    assert (elements(mount) == 3).all()


def test_what_is_written_while_a_chunk_is_removed_is_newer(loop, mount, monkeypatch):
    """A page that is older than both brings neither the chunk back nor takes what was written."""
    mount.write("chunks/0/0", 0, b"\5\0" * 16)
    kernel = Kernel(mount)
    mapping = Program(mount, kernel, "array.npy", "mapping")
    writer = Program(mount, kernel, "array.bin", "writing")
    removed = mount.stat("chunks/0").inode
    content = OtherViews._content
    begun = trio.Event()

    async def slow(self, *arguments):
        found = await content(self, *arguments)
        if not begun.is_set():
            begun.set()
            await wait_all_tasks_blocked()
        return found

    async def write() -> None:
        await begun.wait()
        await writer.put((0, 0), 3)

    async def run() -> None:
        await mapping.put((0, 1), 4)
        monkeypatch.setattr(OtherViews, "_content", slow)
        async with trio.open_nursery() as nursery:
            # The changed page comes in last.
            await kernel._locks[mapping._file.inode].acquire()
            nursery.start_soon(write)
            nursery.start_soon(mount.fs.unlink, removed, "0")
            await begun.wait()
            await wait_all_tasks_blocked(0.01)
            kernel._locks[mapping._file.inode].release()

    loop.run(run)
    expected = np.full(SHAPE, 7)
    expected[0, 0] = 3
    assert (elements(mount) == expected).all()


def test_a_file_that_is_opened_while_another_one_is_written_to_does_not_undo_that(
    loop, mount, monkeypatch
):
    """Its pages could be read before the write, which began when it concerned nobody."""
    kernel = Kernel(mount)
    writer = mount.edit("array.bin")
    writer.write(0, b"\1\0")
    inode = mount.stat("array.npy").inode
    start = mount.stat("array.npy").size - 2 * int(np.prod(SHAPE))
    tile = mount.array()._dirty.find((0, 0)).lock
    run = type(mount.fs._threads).run
    begun, go_on = trio.Event(), trio.Event()

    async def slow(self, work):
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return await run(self, work)

    async def change_another() -> None:
        opened = await mount.fs.open_file(inode, read=True, write=True)
        await kernel.change(inode, opened.handle, start + 2, b"\3\0")

    async def run_all() -> None:
        async with trio.open_nursery() as nursery:
            # The event loop does not wait for it, and leaves the write to a thread.
            tile.acquire()
            nursery.start_soon(mount.fs.write, writer.opened.handle, 0, b"\2\0")
            await begun.wait()
            tile.release()
            nursery.start_soon(change_another)
            await wait_all_tasks_blocked(0.05)
            go_on.set()
        await kernel.hand_over(inode)

    monkeypatch.setattr(type(mount.fs._threads), "run", slow)
    loop.run(run_all)
    assert elements(mount)[0, :2].tolist() == [2, 3]


def test_the_last_of_two_writes_wins_whatever_it_looks_like(loop, mount):
    """It may look like a page, and bring back what was there before the first one."""
    kernel = Kernel(mount)
    kernel.slowness = 3
    whole, chunk = (mount.edit(view) for view in ("array.bin", "chunks/0/0"))
    before = chunk.read(0, 32)

    async def run() -> None:
        for turn in range(20):
            await mount.fs.write(whole.opened.handle, 0, bytes([turn, 1]) * 4)
            await mount.fs.write(chunk.opened.handle, 0, before)
            now = await mount.fs.read(whole.opened.handle, 0, 8)
            assert bytes(now) == before[:8]
            whole_file = bytes(await mount.fs.read(whole.opened.handle, 0, 128))
            await mount.fs.write(chunk.opened.handle, 0, bytes([turn, 2]) * 16)
            await mount.fs.write(whole.opened.handle, 0, whole_file)
            now = await mount.fs.read(chunk.opened.handle, 0, 32)
            assert bytes(now) == before

    loop.run(run)


def test_what_is_written_to_a_page_that_is_to_be_dropped_is_newer(loop, opened, mount):
    """The page then has an element that another file wrote before, and one that it wrote since."""
    kernel = Kernel(mount)
    kernel.slowness = 300
    first = Program(mount, kernel, "array.bin", "writing")
    mapping, second = (Program(mount, kernel, "chunks/0/0", how) for how in ("mapping", "writing"))
    inode = second._file.inode

    async def run() -> None:
        await mapping.put((0, 3), 4)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.put, (0, 0), 1)
            while not kernel.dropping(inode):
                await trio.lowlevel.checkpoint()
            await second.put((0, 0), 2)
            await mapping.put((0, 1), 3)
        await mapping.sync()

    loop.run(run)
    assert stored(opened, mount)[0, :4].tolist() == [2, 3, 7, 4]


@pytest.mark.parametrize("view", ["array.bin", "chunks/0/0", "shards/0/0"])
def test_pages_do_not_bring_back_a_chunk_that_was_removed(loop, mount, view):
    mount.write("chunks/0/0", 0, b"\5\0" * 16)
    kernel = Kernel(mount)
    mapping = Program(mount, kernel, view, "mapping")
    loop.run(mapping.put, (0, 0), 9)
    mount.unlink("chunks/0/0")
    loop.run(mapping.put, (0, 1), 3)
    loop.run(mapping.sync)
    expected = np.full(SHAPE, 7)
    expected[0, 1] = 3
    assert (elements(mount) == expected).all()


def test_a_write_that_is_refused_changes_no_page(loop, opened):
    document = array_document((4, 4), (4, 4), data_type="bool", fill_value=False)
    mount = opened(WriteStore({"zarr.json": document}))
    kernel = Kernel(mount)
    whole, chunk = (mount.edit(view) for view in ("array.bin", "chunks/0/0"))
    loop.run(kernel.change, chunk.inode, chunk.opened.handle, 1, b"\1")
    with pytest.raises(Exception, match="neither 0 nor 1"):
        whole.write(0, b"\5")
    loop.run(kernel.hand_over, chunk.inode)
    assert mount.read("array.bin")[:3] == b"\0\1\0"


def test_a_damaged_chunk_can_be_written_beside_a_mapping(loop, opened):
    document = array_document((4,), (4,), data_type="uint8", fill_value=0)
    mount = opened(WriteStore({"zarr.json": document, "c/0": b"short"}))
    Kernel(mount)
    mount.edit("array.bin")
    chunk = mount.edit("chunks/0")
    with pytest.raises(ChunkError):
        chunk.read(0, 4)
    chunk.write(0, b"\1\2\3\4")
    chunk.close()
    assert mount.store.objects["c/0"] == b"\1\2\3\4"


# --- what nothing else concerns costs nothing --------------------------------------


@pytest.mark.parametrize("beside", [None, "chunks/0/1", "shards/0/0", "array.npy"])
def test_files_without_common_elements_have_nothing_dropped(opened, mount, beside):
    """Nor those that can only be read: their pages do not come in."""
    if beside == "chunks/0/1":
        mount.edit(beside)
    elif beside is not None:
        mount.open(beside)
    mount.edit("chunks/0/0").write(0, b"\1")
    mount.edit("chunks/0/0", read=False).write(0, b"\1")
    assert mount.dropped.inodes == []


def test_closed_files_have_nothing_dropped(mount):
    other = mount.edit("array.npy")
    again = mount.edit("array.npy")
    other.close()
    writer = mount.edit("array.bin")
    writer.write(0, b"\1")
    assert mount.dropped.inodes == [other.inode]
    again.close()
    writer.write(0, b"\2")
    assert mount.dropped.inodes == [other.inode]


def test_a_full_store_while_others_have_the_file_mapped(mount):
    def fail(request: Request) -> None:
        if request.operation == "put":
            raise StoreFull(request.key, "by this test")

    mount.edit("array.npy")
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    mount.store.before = fail
    for _ in range(2):
        with pytest.raises(StoreFull):
            file.fsync()
    mount.store.before = lambda _request: None
    file.close()


def test_a_write_among_several_files_waits_for_those_that_began_before_them(loop, mount):
    """These did not know yet that they have to do with pages of other files."""
    views = OtherViews(KernelPages(), lambda *_: pytest.fail("nothing is read"), Mock())
    (place,) = mount.tree.nodes.all()
    place = place.sibling(mount.stat("array.bin").inode - place.base)
    done: list[str] = []

    async def remove() -> None:
        done.append("removed")

    async def check() -> None:
        async with trio.open_nursery() as nursery:
            with views.free():
                nursery.start_soon(views.remove, place, 0, remove)
                await wait_all_tasks_blocked()
                done.append("written")

    loop.run(check)
    assert done == ["written", "removed"]


async def test_whoever_waits_for_pages_to_be_dropped_sleeps():
    """Also if some others were dropped before."""
    views = OtherViews(Mock(), Mock(), Mock())
    views._hidden.append((1, Mock()))
    views._some_shown.set()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(views.shown)
            await wait_all_tasks_blocked()
            views._show([])
            await wait_all_tasks_blocked()
            assert nursery.child_tasks
            views._show(views._hidden.copy())
