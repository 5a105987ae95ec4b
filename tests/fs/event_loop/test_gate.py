"""The gate of an array whose size may change: many inside, or one alone."""

import threading
from contextlib import asynccontextmanager
from itertools import permutations

import numpy as np
import pytest
import trio
import trio.lowlevel
import zarr
from trio.testing import wait_all_tasks_blocked

from tests.fs.writable import Writable
from tests.fs.write_store import Request, WriteStore
from zarrfs.fs.loop.gate import Gate

ROW = 8


class Visits:
    """Tasks at a gate; ``said`` is what they did, in order, and who is inside ends when told."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.gate = Gate()
        self.said: list[str] = []
        self._nursery = nursery
        self._ends: dict[str, trio.Event] = {}

    async def come(self, name: str) -> None:
        """One whose name begins with "alone" is alone. Returns when nothing goes on any more."""
        self._ends[name] = trio.Event()
        visit = self._alone if name.startswith("alone") else self._inside
        self._nursery.start_soon(visit, name)
        await wait_all_tasks_blocked()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await wait_all_tasks_blocked()

    async def _alone(self, name: str) -> None:
        async with self.gate.alone():
            await self._stay(name)

    async def _inside(self, name: str) -> None:
        await self.gate.wait_open()
        with self.gate.inside():
            await self._stay(name)

    async def _stay(self, name: str) -> None:
        self.said.append(name)
        await self._ends[name].wait()
        self.said.append(f"{name} ends")


@pytest.mark.parametrize("order", list(permutations("ab")))
async def test_who_is_alone_waits_for_all_inside_and_lets_nobody_in(order):
    async with trio.open_nursery() as nursery:
        visits = Visits(nursery)
        await visits.come("a")
        await visits.come("b")
        assert visits.said == ["a", "b"]
        await visits.come("alone")
        await visits.come("late")
        first, second = order
        await visits.end(first)
        assert visits.said[2:] == [f"{first} ends"]
        await visits.end(second)
        assert visits.said[3:] == [f"{second} ends", "alone"]
        await visits.end("alone")
        assert visits.said[5:] == ["alone ends", "late"]
        await visits.end("late")


async def test_one_is_alone_at_a_time():
    async with trio.open_nursery() as nursery:
        visits = Visits(nursery)
        for name in ("alone 1", "alone 2", "alone 3"):
            await visits.come(name)
        assert visits.said == ["alone 1"]
        await visits.end("alone 1")
        second, third = visits.said[2], {"alone 2", "alone 3"} - {visits.said[2]}
        assert visits.said[2:] == [second]
        await visits.end(second)
        assert visits.said[3:] == [f"{second} ends", *third]
        await visits.end(third.pop())


async def test_who_gives_up_waiting_to_be_alone_opens_the_gate():
    async with trio.open_nursery() as nursery:
        visits = Visits(nursery)
        await visits.come("a")
        with trio.CancelScope() as patience:
            async with trio.open_nursery() as impatient:
                impatient.start_soon(visits._alone, "alone")
                await wait_all_tasks_blocked()
                await visits.come("late")
                assert visits.said == ["a"]
                patience.cancel()
        await wait_all_tasks_blocked()
        assert visits.said == ["a", "late"]
        await visits.end("a")
        await visits.end("late")


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "not mapped"])
@pytest.mark.parametrize("what", ["remove", "write a chunk", "write", "make longer", "truncate"])
def test_nothing_changes_while_an_array_becomes_shorter(loop, tmp_path, monkeypatch, what, mapped):
    zarr.create_array(
        tmp_path / "a", data=np.arange(32, dtype="<i2").reshape(8, 4), chunks=(2, 4), fill_value=9
    )
    store = WriteStore.of_directory(tmp_path / "a")
    fs = Writable(loop, store, resize=True)
    flat, chunk = (fs.edit(name, read=mapped) for name in ("array.bin", "chunks/0/0"))
    path = fs.stat("array.bin").inode
    moved = threading.Event()
    done = threading.Event()
    wait_open = Gate.wait_open

    async def told(self) -> None:
        if self._closed:
            moved.set()
        await wait_open(self)

    def change() -> None:
        {
            "remove": lambda: fs.unlink("chunks/0/0"),
            "write a chunk": lambda: chunk.write(0, bytes(16)),
            "write": lambda: flat.write(0, bytes(16)),
            "make longer": lambda: flat.write(8 * ROW, bytes(1000 * ROW)),
            "truncate": lambda: loop.run(fs.fs.set_size, path, 2 * ROW),
        }[what]()
        done.set()
        moved.set()

    thread = threading.Thread(target=change)
    waited: list[bool] = []

    def shrink(request: Request) -> None:
        if request.operation == "put" and request.key == "zarr.json" and not waited:
            thread.start()
            assert moved.wait(30)
            waited.append(not done.is_set())

    monkeypatch.setattr(Gate, "wait_open", told)
    store.before = shrink
    loop.run(fs.fs.set_size, path, 4 * ROW)
    thread.join(30)
    assert waited == [True]
    assert done.is_set()
    flat.close()
    chunk.close()
    data = np.arange(16, dtype="<i2").reshape(4, 4)
    if what != "truncate":
        data[:2] = 9 if what == "remove" else data[:2] if what == "make longer" else 0
    expected = data.tobytes()
    if what == "make longer":
        expected += np.full((4, 4), 9, "<i2").tobytes() + bytes(1000 * ROW)
    assert fs.read("array.bin") == (expected[: 2 * ROW] if what == "truncate" else expected)
    fs.close()


def test_an_array_does_not_become_shorter_while_a_chunk_is_removed(loop, tmp_path, monkeypatch):
    zarr.create_array(tmp_path / "a", data=np.ones((8, 4), "<i2"), chunks=(2, 4), fill_value=9)
    store = WriteStore.of_directory(tmp_path / "a")
    fs = Writable(loop, store, resize=True)
    inode = fs.stat("array.bin").inode
    rows = fs.tree.find(inode).node.rows.gate
    entered = threading.Event()
    early: list[bool] = []
    alone = Gate.alone

    @asynccontextmanager
    async def told(self):
        async with alone(self):
            if self is rows:
                entered.set()
            yield

    async def shrink() -> None:
        await fs.fs.set_size(inode, 4 * ROW)

    thread = threading.Thread(target=lambda: loop.run(shrink))

    async def begin() -> None:
        thread.start()
        while not asked.is_set():
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()

    asked = threading.Event()
    set_size = type(fs.fs).set_size

    async def noted(self, *args):
        asked.set()
        return await set_size(self, *args)

    def remove(request: Request) -> None:
        if request.operation == "delete" and not early:
            loop.run(begin)
            early.append(entered.is_set())

    monkeypatch.setattr(Gate, "alone", told)
    monkeypatch.setattr(type(fs.fs), "set_size", noted)
    store.before = remove
    fs.unlink("chunks/0/0")
    thread.join(30)
    assert early == [False]
    assert entered.is_set()
    assert fs.read("array.bin") == np.repeat(np.array([9, 1], "<i2"), 8).tobytes()
    fs.close()


def test_room_for_rows_is_made_while_nobody_writes(loop, tmp_path, monkeypatch):
    """What a thread still writes to new rows could be taken for leftovers of others."""
    zarr.create_array(tmp_path / "a", shape=(4, 4), chunks=(2, 4), dtype="<i2")[...] = 1
    fs = Writable(loop, WriteStore.of_directory(tmp_path / "a"), resize=True, flush_delay=3600)
    near, far = fs.edit("array.bin"), fs.edit("array.bin")
    near.write(4 * ROW, b"\2" * ROW)
    alone, run, entered = Gate.alone, type(fs.fs._threads).run, threading.Event()
    in_thread = trio.Event()

    @asynccontextmanager
    async def told(self):
        async with alone(self):
            entered.set()
            yield

    async def noted(self, work):
        in_thread.set()
        return await run(self, work)

    async def both(tile) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fs.fs.write, near.opened.handle, 4 * ROW, b"\3" * ROW)
            await in_thread.wait()
            nursery.start_soon(fs.fs.write, far.opened.handle, 1000 * ROW, b"\4" * ROW)
            await wait_all_tasks_blocked()
            early.append(entered.is_set())
            tile.release()

    early: list[bool] = []
    monkeypatch.setattr(Gate, "alone", told)
    monkeypatch.setattr(type(fs.fs._threads), "run", noted)
    changes = fs.array()._dirty.find((2, 0))
    lock = threading.Lock()
    monkeypatch.setattr(changes, "lock", lock)
    lock.acquire()
    loop.run(both, lock)
    assert early == [False]
    assert entered.is_set()
    near.close()
    far.close()
    assert fs.read("array.bin")[4 * ROW : 5 * ROW] == b"\3" * ROW
    fs.close()
