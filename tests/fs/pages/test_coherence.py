"""Pages of a mapped file of an array, with a kernel that hands them over as a whole.

Another program writes to the same elements through other files meanwhile.
"""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from collections import defaultdict
from collections.abc import Container

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.fs.documents import array_document, sharding
from tests.fs.write_store import WriteStore
from tests.soak import TIMES
from zarrfs.errors import ChunkError, StoreFull
from zarrfs.fs.attributes import OpenMode
from zarrfs.fs.coherence import array_pages
from zarrfs.fs.coherence.array_pages import ArrayPages
from zarrfs.fs.coherence.kernel_pages import KernelCache, KernelPages, OpenPlaces
from zarrfs.fs.coherence.refused_pages import RefusedPages
from zarrfs.fs.files.open_files import OpenFiles
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

    async def settled(self, _inodes: Container[int] | None = None) -> None:
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

        A page that is not there yet is made, and nobody else has it until the write is over. A
        page that is being handed over is waited for, as by ``fuse_send_write_pages``.
        """
        async with self._locks[inode]:
            if (page := self._pages.get(inode)) is None:
                return await self._fs.write(handle, offset, data)
            page[offset : offset + len(data)] = data
        async with self._under_way[inode]:
            pass
        return await self._fs.write(handle, offset, data)


class Program:
    """Changes elements of the first chunk through one view: in a mapping, or by writing.

    A direct file cannot be mapped.
    """

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
        if self._file.opened.direct:
            assert await self._fs.write(self.handle, offset, data) == 2
        elif self._how == "mapping":
            await self._kernel.change(self._file.inode, self.handle, offset, data)
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
    # A slow machine looks at the store in the middle of a test, after which the kernel is told to
    # drop pages. Tests count on those that there are.
    return opened(
        WriteStore({"zarr.json": document}), views=("npy", "fits", "records"), recheck=3600.0
    )


def elements(mount) -> np.ndarray:
    return np.frombuffer(mount.read("array.bin"), "<u2").reshape(SHAPE)


def stored(opened, mount) -> np.ndarray:
    return elements(opened(WriteStore(mount.store.objects)))


HOW = ("mapping", "writing", "write only")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(9 * TIMES))
def test_programs_that_change_their_own_elements_lose_none(loop, opened, mount, seed):
    """All at once, through all views, and each element belongs to one of them."""
    dice = random.Random(seed)
    kernel = Kernel(mount)
    kernel.slowness = seed % 2 * 3
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


def test_a_file_that_is_opened_while_another_one_is_written_to_does_not_undo_that(
    loop, mount, monkeypatch
):
    """Its pages could be read before the write, which began when it concerned nobody."""
    kernel = Kernel(mount)
    writer = mount.edit("array.bin", read=False)
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
        opened = await mount.fs.open_file(inode, OpenMode(write=True))
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


def test_the_write_that_returns_last_wins_over_one_through_pages_beside_it(loop, opened, mount):
    """The page comes in while it is being dropped, and has an element that it wrote since."""
    kernel = Kernel(mount)
    kernel.slowness = 300
    mapping, second = (Program(mount, kernel, "chunks/0/0", how) for how in ("mapping", "writing"))
    first = Program(mount, kernel, "array.bin", "writing")
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
    assert stored(opened, mount)[0, :4].tolist() == [1, 3, 7, 4]


def test_a_write_that_is_refused_changes_no_page(loop, opened):
    document = array_document((4, 4), (4, 4), data_type="bool", fill_value=False)
    mount = opened(WriteStore({"zarr.json": document}))
    kernel = Kernel(mount)
    chunk, whole = (mount.edit(view) for view in ("chunks/0/0", "array.bin"))
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


# --- who owns changed pages ---------------------------------------------------------


def test_one_file_of_an_array_can_have_changed_pages(mount):
    """The first one that is opened for writing through the page cache, however often."""
    owner = [mount.edit("array.bin") for _ in range(2)]
    assert [file.opened.direct for file in owner] == [False, False]
    others = [mount.edit(view) for view in VIEWS if view != "array.bin"]
    assert all(file.opened.direct for file in others)
    assert not any(mount.open(view).opened.direct for view in VIEWS)
    owner[0].close()
    assert mount.edit("array.npy").opened.direct
    owner[1].close()
    assert not mount.edit("array.npy").opened.direct
    assert mount.edit("array.bin").opened.direct


def test_chunk_files_of_one_tree_can_have_changed_pages_together(mount, monkeypatch):
    """They have no common elements. A direct write drops the pages of all, so they are few."""
    monkeypatch.setattr(array_pages, "_MOST_OWNERS", 2)
    chunks = [mount.edit(f"chunks/0/{number}") for number in range(2)]
    assert not any(file.opened.direct for file in chunks)
    assert mount.edit("chunks/1/0").opened.direct
    assert mount.edit("shards/0/0").opened.direct
    mount.edit("array.bin").write(0, b"\1")
    assert sorted(mount.dropped.inodes) == sorted(file.inode for file in chunks)


def test_a_page_that_is_older_than_a_write_does_not_undo_it(mount):
    """It comes in while the write waits for it, and brings what it has changed itself."""
    mapped, writer = mount.edit("array.bin"), mount.edit("array.npy")
    start = mount.stat("array.npy").size - 2 * int(np.prod(SHAPE))
    page = bytearray(mapped.read(0, 1000))
    page[:2], page[2:4] = b"\5\0", b"\6\0"
    pages = [bytes(page)]
    seen = []

    async def hand_over() -> None:
        if pages:
            assert await mount.fs.write(mapped.opened.handle, 0, pages.pop()) == len(page)
            seen.append(bytes(await mount.fs.read(mapped.opened.handle, 0, 4)))

    mount.dropped.while_settling = hand_over
    writer.write(start, b"\x63\0")
    assert seen == [b"\x63\0\6\0"]
    assert mount.dropped.inodes == 2 * [mapped.inode]
    assert elements(mount)[0, :3].tolist() == [0x63, 6, 7]


def test_a_store_of_the_old_value_after_a_write_through_another_file_wins(mount):
    mapped, writer = mount.edit("array.bin"), mount.edit("chunks/0/0")
    page = mapped.read(0, 1000)
    writer.write(0, b"\x63\0")
    mapped.write(0, page)
    assert elements(mount)[0, 0] == 7


def test_a_write_that_an_older_page_undid_fails_if_it_cannot_be_repeated(mount, monkeypatch):
    mapped, writer = mount.edit("array.bin"), mount.edit("chunks/0/0")
    write = OpenFiles._write
    counted = []

    async def fail(self, opened, at, data):
        counted.append(bytes(data))
        if len(counted) == 3:
            raise StoreFull("c/0/0", "by this test")
        return await write(self, opened, at, data)

    async def hand_over() -> None:
        if len(counted) < 3:
            await mount.fs.write(mapped.opened.handle, 0, bytes(128))

    monkeypatch.setattr(OpenFiles, "_write", fail)
    mount.dropped.while_settling = hand_over
    with pytest.raises(StoreFull):
        writer.write(0, b"\1\0")
    assert counted == [b"\1\0", bytes(128), b"\1\0"]


def test_pages_are_read_before_or_after_a_write_but_not_while_it_is_repeated(loop, mount):
    """A page that is read between an older page and the repeated write would stay old."""
    pages = ArrayPages(KernelPages())
    (place,) = mount.tree.nodes.all()
    owner = place.sibling(mount.stat("array.bin").inode - place.inode)
    assert not pages.enter(owner, read=True, write=True, past=False)
    said: list[str] = []

    async def read() -> None:
        if pages.must_wait(owner):
            await pages.wait_to_read()
        with pages.reading(owner):
            said.append("read")

    async def write() -> int:
        said.append("write")
        await wait_all_tasks_blocked()
        return 1

    async def hand_over() -> int:
        said.append("page")
        trio.lowlevel.spawn_system_task(read)
        await wait_all_tasks_blocked()
        return 1

    class Kernel(KernelCache):
        async def settled(self, inodes: object = None) -> None:
            if "page" not in said:
                assert await pages.write_through(hand_over) == 1

    other = owner.sibling(mount.stat("array.npy").inode - place.inode)

    async def check() -> None:
        pages._pages.kernel = Kernel()
        assert await pages.write_past(other, write) == 1
        await wait_all_tasks_blocked()

    loop.run(check)
    assert said == ["write", "page", "write", "read"]


async def test_an_owner_waits_for_direct_writes_that_began_before_there_was_one():
    """And sleeps meanwhile, also if others ended before."""
    pages = ArrayPages(KernelPages())
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            with pages._without_owner():
                nursery.start_soon(pages.ready)
                await wait_all_tasks_blocked()
                with pages._without_owner():
                    pass
                await wait_all_tasks_blocked()
                assert nursery.child_tasks
            with pages._without_owner():
                await wait_all_tasks_blocked()
                assert not nursery.child_tasks


@pytest.mark.parametrize("how", ["open", "edit"])
def test_a_file_that_is_opened_beside_a_write_through_another_one_gets_no_old_pages(mount, how):
    """The write is not stored yet, so that the state of the array is the one of those pages."""
    mount.open("array.npy").close()
    assert mount.open("array.npy").keep_cache
    writer = mount.edit("array.bin", read=False)
    writer.write(0, b"\1")
    assert not getattr(mount, how)("array.npy").opened.keep_cache
    writer.close()


def test_nothing_is_awaited_between_the_decision_about_pages_and_the_entry_of_a_file():
    """A store between the two would drop only the pages of files that have been entered."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(OpenFiles.open))).body
    lines = {
        kind: [node.lineno for node in ast.walk(function) if match(node)]
        for kind, match in {
            "await": lambda node: isinstance(node, ast.Await),
            "keep": lambda node: ast.unparse(node).startswith("self._pages.opened("),
            "enter": lambda node: ast.unparse(node).startswith("self.places.opened("),
            "handle": lambda node: ast.unparse(node).startswith("self._handles[handle] ="),
        }.items()
    }
    assert all(lines.values())
    last = max(lines.pop("await"))
    assert all(min(found) > last for found in lines.values())


@pytest.mark.parametrize("kind", [KernelPages, OpenPlaces, RefusedPages])
def test_methods_that_look_at_what_the_kernel_has_are_never_suspended(kind):
    methods = [value for name, value in vars(kind).items() if callable(value)]
    assert methods
    assert not any(map(inspect.iscoroutinefunction, methods))


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
