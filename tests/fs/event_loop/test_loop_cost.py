"""The event loop is held for less than 20 ms at once, whatever is read and written."""

import random

import numpy as np
import pytest
import trio
import trio.lowlevel

from tests.fs.documents import array_document
from tests.fs.loop_cost import LoopCost
from tests.fs.write_store import WriteStore
from zarrfs import locks
from zarrfs.fs.loop.loop_times import LONG_SECONDS
from zarrfs.views.slabs import sequential_writes

pytestmark = pytest.mark.timeout(120)

KIB = 1 << 10
# 4 096 chunks, of which each plane crosses 1 024; a slab in file order is gathered before it is
# brought to them.
SHAPE, CHUNKS = (64, 256, 256), (16, 8, 8)
BYTES = int(np.prod(SHAPE)) * 2


@pytest.fixture(autouse=True)
def plain_locks(monkeypatch):
    """Checks of their order are calls, too."""
    monkeypatch.setattr(locks, "checked", False)


@pytest.fixture
def many_chunks():
    return WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)})


def measured(mount, *tasks) -> LoopCost:
    cost = LoopCost()

    async def together() -> None:
        trio.lowlevel.add_instrument(cost)
        try:
            async with trio.open_nursery() as nursery:
                for task in tasks:
                    nursery.start_soon(task)
        finally:
            trio.lowlevel.remove_instrument(cost)

    mount.loop.run(together)
    return cost


def test_reads_writes_and_lookups_together(opened, many_chunks, monkeypatch):
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
    mount = opened(many_chunks, memory=64 << 20, flush_delay=3600.0)
    fs = mount.fs
    writer, reader = mount.edit("array.bin"), mount.edit("array.bin")
    chunks = mount.stat("chunks").inode
    written = bytearray(np.full(BYTES // 2, 7, "<i2").tobytes())
    over = trio.Event()

    async def write() -> None:
        numbers = random.Random(1)
        for start in range(0, BYTES // 2, 256 * KIB):
            data = numbers.randbytes(256 * KIB)
            written[start : start + len(data)] = data
            assert await fs.write(writer.opened.handle, start, data) == len(data)
            if numbers.random() < 0.2:
                await fs.fsync(writer.opened.handle)
        over.set()

    async def read() -> None:
        numbers = random.Random(2)
        while not over.is_set():
            start = numbers.randrange(BYTES - 1024 * KIB)
            size = numbers.choice([100, 4 * KIB, 128 * KIB, 1024 * KIB])
            assert len(await fs.read(reader.opened.handle, start, size)) == size

    async def look_up() -> None:
        numbers = random.Random(3)
        while not over.is_set():
            found = await fs.lookup(chunks, str(numbers.randrange(4)))
            await fs.getattr(found.inode)
            await fs.getattr(writer.inode)
            await trio.lowlevel.checkpoint()

    cost = measured(mount, write, read, look_up)
    assert cost.stretches > 20
    assert cost.longest < LONG_SECONDS, cost.report()
    assert mount.read("array.bin") == bytes(written)
    for file in (writer, reader):
        file.close()


def test_work_on_the_loop_that_takes_long_is_counted(opened, many_chunks, monkeypatch):
    """As it was when a look-up brought what had been gathered to its chunks."""
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
    mount = opened(many_chunks, memory=64 << 20, flush_delay=3600.0)
    file = mount.edit("array.bin")
    for start in range(0, 4 << 20, 256 * KIB):
        file.write(start, bytes(256 * KIB))
    gathering = mount.array().gathering
    assert gathering.pending

    async def scatter() -> None:
        gathering.scatter()

    assert measured(mount, scatter).longest > LONG_SECONDS
    file.close()
