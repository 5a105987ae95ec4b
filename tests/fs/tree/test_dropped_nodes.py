"""Groups and arrays that nobody uses are dropped from memory, and nobody can tell."""

import gc
import json
import tracemalloc
import weakref

import numpy as np
import pytest
import trio

from tests.fs.documents import array_document, group_document
from tests.fs.memory_store import MemoryStore
from tests.fs.write_store import WriteStore, refusing
from tests.waiting import wait_until
from zarrfs.errors import BudgetExceeded, EntryNotFound, StoreError

pytestmark = pytest.mark.timeout(60)

SHAPE, CHUNKS = (8,), (4,)
SIZE = 16
# Bytes of nodes that nobody uses, for a few arrays.
FEW = 100_000


def content(number: int) -> bytes:
    return np.arange(8, dtype="<i2").tobytes()[:-2] + number.to_bytes(2, "little")


def many(count: int, **members) -> dict[str, bytes]:
    documents = {"zarr.json": group_document()}
    for i in range(count):
        documents[f"a{i}/zarr.json"] = array_document(SHAPE, CHUNKS, **members)
        documents[f"a{i}/c/0"] = content(i)[:8]
        documents[f"a{i}/c/1"] = content(i)[8:]
    return documents


@pytest.fixture
def small(mount):
    """A mount that keeps few nodes that nobody uses."""

    def mount_small(objects, **config):
        m = mount(MemoryStore(objects), **config)
        m.tree.nodes.most = FEW
        return m

    return mount_small


@pytest.fixture
def small_writable(opened):
    def open_small(objects, **config):
        m = opened(WriteStore(objects), **config)
        m.tree.nodes.most = FEW
        return m

    return open_small


def live(m):
    """Paths of the nodes in memory, least recently used first."""
    return [place.node.node.path for place in m.tree.nodes.all()]


def look_at_others(m, count: int = 20, first: int = 20) -> None:
    for i in range(first, first + count):
        m.stat(f"a{i}/array.bin")


@pytest.fixture
def m(small):
    return small(many(60))


class TestHowMany:
    def test_stay_below_the_bound(self, m):
        highest = 0
        for i in range(60):
            assert m.read(f"a{i}/array.bin") == content(i)
            m.ls(f"a{i}")
            highest = max(highest, m.tree.nodes.nbytes)
        node = m.tree.nodes.peek("a59")
        assert len(live(m)) < 10
        assert highest <= FEW + 2 * node.nbytes

    def test_memory_of_a_dropped_array(self, small):
        count = 190
        m = small(many(count))

        async def look(first, stop):
            for i in range(first, stop):
                inode = (await m.fs.lookup(m.fs.root_inode, f"a{i}")).inode
                async for _ in m.fs.readdir(inode, 0):
                    pass

        m.loop.run(look, 0, 40)
        m.dropped.inodes.clear()
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            m.loop.run(look, 40, count)
            m.dropped.inodes.clear()
            gc.collect()
            each = (tracemalloc.get_traced_memory()[0] - before) / (count - 40)
        finally:
            tracemalloc.stop()
        # 340 of the array itself; the rest is the same for any number of arrays.
        assert each < 1500

    def test_nothing_is_left_of_what_the_kernel_has_forgotten(self, m):
        inodes = []
        for i in range(60):
            inodes.append(m.stat(f"a{i}").inode)
            m.fs.forget(inodes[-1], 1)
        assert m.tree.nodes.known == len(live(m)) < 10
        with pytest.raises(EntryNotFound):
            m.loop.run(m.fs.getattr, inodes[0])

    def test_the_bound_follows_the_memory(self, small):
        m = small(many(1))
        before = m.tree.nodes.most
        m.loop.run(m.fs.set_memory, 128 << 20)
        assert m.tree.nodes.most == (128 << 20) // 32 > before

    def test_a_dropped_array_does_not_keep_the_memory_from_being_lowered(self, small_writable):
        large = array_document((1 << 24,), (1 << 24,))  # chunks of 32 MiB
        m = small_writable({**many(60), "large/zarr.json": large}, memory=512 << 20)
        gc.disable()
        try:
            m.stat("large/array.bin")
            with pytest.raises(BudgetExceeded, match="large"):
                m.loop.run(m.fs.set_memory, 32 << 20)
            look_at_others(m)
            m.loop.run(m.fs.set_memory, 32 << 20)
        finally:
            gc.enable()
        assert m.stats()["memory"]["budget"] == 32 << 20

    def test_the_memory_of_cached_chunks_comes_back(self, m):
        for i in range(60):
            m.read(f"a{i}/array.bin")
        # A thread drops the chunks of the last arrays.
        wait_until(lambda: m.stats()["memory"]["chunks"] <= 2 * len(live(m)))


class TestNobodyCanTell:
    def test_the_kernel_asks_again_and_drops_its_pages(self, m):
        for _ in range(2):
            file = m.open("a0/array.bin")
            file.read_all()
            file.close()
        assert file.keep_cache
        m.ls("a0")
        look_at_others(m)
        told = {m.stat(f"a0/{name}".rstrip("/")).inode for name in ("", "array.bin", "array.npy")}
        assert told <= set(m.dropped.inodes)
        assert not m.open("a0/array.bin").keep_cache

    def test_other_metadata_by_now(self, m):
        inode = m.stat("a0/array.bin").inode
        look_at_others(m)
        m.store.put("a0/zarr.json", array_document((6,), CHUNKS))
        assert m.loop.run(m.fs.getattr, inode).size == 12
        assert m.open_inode(inode).read_all() == content(0)[:12]

    def test_a_node_that_is_gone_by_now(self, m):
        inode = m.stat("a0/array.bin").inode
        look_at_others(m)
        for key in ("a0/zarr.json", "a0/c/0", "a0/c/1"):
            del m.store.objects[key]
        with pytest.raises(EntryNotFound):
            m.loop.run(m.fs.getattr, inode)

    def test_groups_decide_by_their_consolidated_metadata(self, small):
        inner = array_document(SHAPE, CHUNKS)
        consolidated = {
            "kind": "inline", "must_understand": False, "metadata": {"x": json.loads(inner)},
        }  # fmt: skip
        documents = {
            **many(60),
            "g/zarr.json": group_document(consolidated_metadata=consolidated),
            "g/x/c/0": content(1)[:8],
            "g/x/c/1": content(1)[8:],
        }
        m = small(documents)
        inode = m.stat("g/x/array.bin").inode
        look_at_others(m)
        assert {"g", "g/x"}.isdisjoint(live(m))
        # Only the group's document has it.
        file = m.open_inode(inode)
        assert file.read_all() == content(1)
        assert live(m)[-2:] == ["g", "g/x"]
        file.close()
        # The next look at the group finds no consolidated metadata: the earlier ones are gone.
        look_at_others(m)
        assert {"g", "g/x"}.isdisjoint(live(m))
        m.store.put("g/zarr.json", group_document())
        with pytest.raises(EntryNotFound):
            m.stat("g/x/array.bin")


class TestWhatStays:
    def test_a_group_while_a_node_below_is_in_use(self, small):
        m = small({**many(60), "g/zarr.json": group_document(),
                   "g/x/zarr.json": array_document(SHAPE, CHUNKS)})  # fmt: skip
        file = m.open("g/x/array.bin")
        look_at_others(m)
        assert {"g", "g/x"} <= set(live(m))
        file.close()
        look_at_others(m)
        assert {"g", "g/x"}.isdisjoint(live(m))

    def test_an_open_file(self, m):
        file = m.open("a0/chunks/1")
        node = weakref.ref(m.tree.nodes.peek("a0"))
        look_at_others(m)
        assert m.tree.nodes.peek("a0") is node() is not None
        assert file.read_all() == content(0)[8:]
        file.close()
        look_at_others(m)
        assert node() is None

    def test_changes_that_are_not_stored(self, small_writable):
        m = small_writable(many(60))
        file = m.edit("a0/array.bin")
        file.write(0, b"\1\1")
        file.release()
        array = weakref.ref(m.tree.nodes.peek("a0"))
        look_at_others(m)
        assert array() is not None
        assert m.read("a0/array.bin")[:2] == b"\1\1"
        assert m.fs.drain() == []
        look_at_others(m)
        assert array() is None
        assert m.read("a0/array.bin")[:2] == b"\1\1"

    def test_changes_that_could_not_be_stored(self, small_writable):
        m = small_writable(many(60))

        m.store.before = refusing(StoreError, "put")
        file = m.edit("a0/array.bin")
        file.write(0, b"\1\1")
        with pytest.raises(StoreError):
            file.flush()
        file.release()
        look_at_others(m)
        assert "a0" in live(m)
        assert m.fs.dirty_bytes
        m.store.before = lambda _: None
        assert m.fs.drain() == []
        assert m.store.objects["a0/c/0"][:2] == b"\1\1"
        gc.collect()  # the array is in the frames of the error's traceback, which are a cycle
        look_at_others(m)
        assert "a0" not in live(m)
        assert not m.fs.dirty_bytes

    def test_what_is_gathered(self, small_writable):
        m = small_writable(many(60))
        file = m.edit("a0/array.bin", read=False)
        file.write(0, content(9))
        file.release()
        look_at_others(m)
        assert m.read("a0/array.bin") == content(9)

    def test_nothing_is_registered_for_what_is_dropped(self, small_writable):
        m = small_writable(many(60))
        for i in range(60):
            m.write(f"a{i}/array.bin", 0, b"\1\1")
        wait_until(lambda: len(m.write_back._changes) == len(live(m)) - 1)

    def test_arrays_in_a_file_of_the_group(self, small_writable):
        documents = many(60)
        for i in range(3):
            for name in ("zarr.json", "c/0", "c/1"):
                documents[f"g/a{i}/{name}"] = documents[f"a{i}/{name}"]
        m = small_writable({**documents, "g/zarr.json": group_document()}, views=("h5",))
        file = m.open("g/group.h5")
        at = file.read_all().index(content(2))
        look_at_others(m)
        assert "g/a2" in live(m)
        m.write("g/a2/array.bin", 0, b"\5\6")
        assert file.read(at, 2) == b"\5\6"
        file.close()

        def gone() -> bool:
            look_at_others(m, 40)
            return {"g", "g/a2"}.isdisjoint(live(m))

        wait_until(gone)

    def test_rows_that_are_not_stored(self, small_writable):
        m = small_writable(many(60), resize=True)
        file = m.edit("a0/array.bin")
        file.write(SIZE, b"\7\7")
        file.release()
        # The elements, but not the shape.
        m.array("a0").flush()
        look_at_others(m)
        assert "a0" in live(m)
        assert m.fs.drain() == []
        look_at_others(m)
        assert "a0" not in live(m)
        assert m.read("a0/array.bin") == content(0) + b"\7\7"
        m.write("a0/array.bin", SIZE + 2, b"\x08\x08")
        assert m.stat("a0/array.bin").size == SIZE + 4


class TestTogether:
    def test_a_node_is_made_once(self, m):
        inode = m.stat("a0/array.bin").inode
        look_at_others(m)
        places = []

        async def ask() -> None:
            places.append(await m.fs._place(inode))

        async def all_of_them() -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(ask)

        m.loop.run(all_of_them)
        assert len({id(place.node) for place in places}) == 1
