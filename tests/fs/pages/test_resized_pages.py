"""Pages of mapped files while the array becomes longer or shorter, without a kernel.

`tests/mount/writing/test_resized_pages.py` has more of this, with one.
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
