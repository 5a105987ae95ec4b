"""Pages of mapped files while the array becomes longer or shorter, without a kernel.

`tests/mount/test_resized_pages.py` has more of this, with one.
"""

import numpy as np
import pytest
import trio

from tests.fs.documents import array_document, sharding
from tests.fs.pages.test_coherence import Kernel
from tests.fs.writable import Writable
from tests.fs.write_store import Request, WriteStore

pytestmark = pytest.mark.timeout(100)

WIDTH = 8
ROW = 2 * WIDTH
FILL = 7
HEADER = 128
CODECS = {"chunks/0/0": {}, "shards/0/0": {"codecs": [sharding((2, WIDTH))]}}


@pytest.fixture(params=CODECS)
def name(request):
    return request.param


@pytest.fixture
def mount(loop, name):
    """An array of two rows, 1 and 2, whose only chunk has room for four."""
    store = WriteStore({"zarr.json": array_document((2, WIDTH), (4, WIDTH), **CODECS[name])})
    mounted = Writable(loop, store, resize=True, flush_delay=3600)
    mounted.write("array.bin", 0, row(1) + row(2))
    yield mounted
    mounted.close()


def row(value: int) -> bytes:
    return value.to_bytes(2, "little") * WIDTH


def rows(mount) -> list[list[int]]:
    return np.frombuffer(mount.read("array.bin"), "<i2").reshape(-1, WIDTH).tolist()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_page_of_a_chunk_does_not_undo_new_rows(loop, mount, name, count):
    """It has fill value in their place, and comes in after they were written."""
    kernel = Kernel(mount)
    chunk, flat = mount.edit(name), mount.edit("array.bin")
    new = b"".join(row(20 + number) for number in range(count))

    async def run() -> None:
        await kernel.change(chunk.inode, chunk.opened.handle, 0, b"\5\0")
        await kernel.write(flat.inode, flat.opened.handle, 2 * ROW, new)
        await kernel.settled()

    loop.run(run)
    expected = [[1] * WIDTH, [2] * WIDTH, *([20 + number] * WIDTH for number in range(count))]
    expected[0][0] = 5
    assert rows(mount) == expected


@pytest.mark.parametrize("path", ["array.bin", "array.npy"])
def test_a_page_that_was_changed_comes_in_before_its_row_is_given_up(loop, mount, path):
    """Later it would bring the row back."""
    other = "array.npy" if path == "array.bin" else "array.bin"
    kernel = Kernel(mount)
    mapped, inode = mount.edit(other), mount.stat(path).inode
    start, end = ((HEADER if name == "array.npy" else 0) for name in (other, path))

    async def run() -> None:
        for place in (0, ROW):
            await kernel.change(mapped.inode, mapped.opened.handle, start + place, b"\5\0")
        await mount.fs.set_size(inode, end + ROW)
        await kernel.settled()

    loop.run(run)
    assert rows(mount) == [[5] + [1] * (WIDTH - 1)]
    loop.run(mount.fs.set_size, inode, end + 2 * ROW)
    assert rows(mount)[1] == [FILL] * WIDTH


def test_a_page_that_is_read_while_rows_are_given_up_does_not_stay(loop, mount, name):
    """It shows them, or is read after that."""
    kernel = Kernel(mount)
    mapped, inode = mount.edit(name), mount.stat("array.bin").inode
    over = trio.Event()

    async def read_page() -> None:
        kernel._pages[mapped.inode] = bytearray(await mount.fs.read(mapped.opened.handle, 0, 999))
        over.set()

    def before(request: Request) -> None:
        if request.operation == "put" and request.key == "zarr.json" and not begun:
            begun.append(True)
            trio.from_thread.run_sync(
                trio.lowlevel.spawn_system_task, read_page, trio_token=token[0]
            )

    begun: list[bool] = []
    token: list[trio.lowlevel.TrioToken] = []

    async def run() -> None:
        token.append(trio.lowlevel.current_trio_token())
        mount.store.before = before
        await mount.fs.set_size(inode, ROW)
        await over.wait()
        await kernel.settled()
        page = kernel._pages.get(mapped.inode, row(1) + row(FILL))
        assert page[: 2 * ROW] == row(1) + row(FILL)

    loop.run(run)
    assert begun
    assert rows(mount) == [[1] * WIDTH]
