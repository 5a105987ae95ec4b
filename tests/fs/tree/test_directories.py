"""Listings: cookies, and directories of any size."""

from itertools import pairwise

import pytest
import zarr

from tests.fs.documents import array_document, group_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.write_store import refusing
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.errors import EntryNotFound, StoreError, StoreListingUnsupported, StoreTimeout

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def mounted(mount, tmp_path):
    root = zarr.open_group(tmp_path / "g", mode="w")
    for i in range(5):
        root.create_group(f"n{i}")
    root.create_array("a", shape=(300, 4), chunks=(1, 2), dtype="i2")
    return mount(tmp_path / "g")


@pytest.mark.parametrize("path", ["", ".zarrfs", "a", "a/chunks", "a/chunks/299"])
def test_resumed_at_any_cookie(mounted, path):
    entries = mounted.entries(path)
    assert len(entries) >= 2
    cookies = [entry.cookie for entry in entries]
    assert all(0 < before < after for before, after in pairwise([0.5, *cookies]))
    assert len({entry.attributes.inode for entry in entries}) == len(entries)

    def places(entries):
        # What is made for each look has a size of its own.
        return [(entry.name, entry.cookie, entry.attributes.inode) for entry in entries]

    for position, cookie in enumerate(cookies):
        assert places(mounted.entries(path, cookie)) == places(entries[position + 1 :])


def test_entries_that_are_listed_while_others_come_and_go(mounted, tmp_path):
    """One pass over a group is one listing of it."""
    entries = mounted.entries("")
    zarr.open_group(tmp_path / "g", mode="a").create_group("aa")
    middle = len(entries) - 3
    assert mounted.entries("", entries[middle - 1].cookie) == entries[middle:]
    assert "aa" in mounted.ls("")


def test_of_a_large_group_a_listing_opens_no_nodes(mounted, tmp_path, monkeypatch):
    before = {entry.name: entry.attributes for entry in mounted.entries("")}
    monkeypatch.setattr("zarrfs.fs.directories._MOST_OPENED", 3)
    zarr.open_group(tmp_path / "g", mode="a").create_array("b", shape=3, dtype="i2")
    asked = []
    monkeypatch.setattr(
        "zarrfs.array.hierarchy.Hierarchy.listed", lambda _, path: asked.append(path)
    )
    after = {entry.name: entry.attributes for entry in mounted.entries("")}
    monkeypatch.undo()
    assert not asked
    assert set(after) == {*before, "b"}
    nodes = ["a", "b", *(f"n{i}" for i in range(5))]
    assert all(after[name].is_directory for name in nodes)
    # An inode is the same whether its node is listed or opened.
    assert all(after[name].inode == before[name].inode for name in nodes if name in before)
    assert mounted.stat("b").inode == after["b"].inode
    assert mounted.read("b/array.bin") == bytes(6)


def test_a_node_is_parsed_before_the_others_have_arrived(mount):
    objects = {f"a{i}/zarr.json": array_document((4,), (2,)) for i in range(3)}
    parsed, asked = [], []

    class Slow(FaultStore):
        def get(self, key, *, limit):
            asked.append(key)
            return super().get(key, limit=limit)

        def get_many(self, keys, *, limit):
            for key in keys:
                if key == "a2/zarr.json":
                    for path in ("a0", "a1", "a2"):
                        asked.clear()
                        assert hierarchy.listed(path)
                        if not asked:
                            parsed.append(path)
                yield self._inner.get(key, limit=limit)

    hierarchy = Hierarchy(
        Slow(MemoryStore({"zarr.json": group_document(), **objects}, cheap=False))
    )
    assert hierarchy.children("") == ["a0", "a1", "a2"]
    assert parsed == ["a0", "a1"]


def test_a_store_that_cannot_list(mount):
    store = FaultStore(MemoryStore({
        "zarr.json": group_document(), "a/zarr.json": array_document((4,), (2,))
    }))  # fmt: skip

    store.before = refusing(StoreListingUnsupported, "list")
    m = mount(store)
    assert m.ls() == ["zarr.json", ".zarrfs"]
    assert m.ls("a") == ["array.bin", "array.npy", "chunks", "zarr.json"]
    assert m.errors() == []


def test_a_listing_that_fails_is_an_error(mount):
    store = FaultStore(MemoryStore({"zarr.json": group_document()}))
    m = mount(store)

    store.before = refusing(StoreTimeout, "list")
    with pytest.raises(StoreError):
        m.ls()
    store.before = lambda _call: None
    assert m.ls() == ["zarr.json", ".zarrfs"]


class TestHuge:
    """A billion chunks cost what ten cost: a chunk takes neither memory nor a request."""

    N = 10**9

    @pytest.fixture(params=["axis", "axes", "sharded"])
    def opened(self, request, mount):
        codecs = {}
        if request.param == "axes":
            shape, chunks, last = (1000, 1000, 1000), (1, 1, 1), "chunks/999/999/999"
        else:
            shape, chunks, last = (self.N,), (1,), f"chunks/{self.N - 1}"
        if request.param == "sharded":
            chunks, codecs = (1000,), {"codecs": [sharding((1,))]}
        store = FaultStore(
            MemoryStore({
                "zarr.json": group_document(),
                "a/zarr.json": array_document(shape, chunks, **codecs),
            })
        )  # fmt: skip
        return mount(store), store, last

    def test_opens_and_lists_without_asking_the_store_for_chunks(self, opened):
        m, store, _ = opened
        names = m.ls("a")
        assert names[0] == "array.bin"
        assert "chunks" in names
        assert store.count("ranges", "list") == 0
        assert {call.key for call in store.calls} <= {"zarr.json", "a/zarr.json"}
        assert m.stat("a/array.bin").size == 2 * self.N

    def test_first_entries(self, opened):
        m, store, _ = opened
        m.stat("a/chunks")
        store.calls.clear()
        entries = m.entries("a/chunks", most=10)
        assert [entry.name for entry in entries] == [str(i) for i in range(10)]
        # No more than the entries that are prepared at once.
        assert store.count() <= 128

    def test_entries_anywhere(self, opened):
        m, store, last = opened
        width = int(last.split("/")[1]) + 1
        store.calls.clear()
        entries = m.entries("a/chunks", cookie=width - 2)
        assert [entry.name for entry in entries] == [str(width - 2), str(width - 1)]
        assert store.count() < 10

    def test_the_last_chunk(self, opened):
        m, store, last = opened
        m.stat("a")
        store.calls.clear()
        assert m.stat(f"a/{last}").size == 2
        assert m.read(f"a/{last}") == b"\7\0"
        assert m.open("a/array.bin").read(2 * self.N - 3, 10) == b"\0\7\0"
        assert store.count() <= 8
        assert m.xattrs(f"a/{last}")["user.zarrfs.valid_shape"] in (b"[1]", b"[1, 1, 1]")
        with pytest.raises(EntryNotFound):
            m.stat(f"a/chunks/{self.N}")

    def test_takes_no_memory_per_chunk(self, opened):
        m, _, last = opened
        m.read(f"a/{last}")
        assert m.stats()["memory"]["used"] < 1 << 20


def test_more_chunks_than_inodes(mount):
    """Arrays of very many chunks share few places; who comes too late has no trees."""
    side = 2**27
    document = array_document((side, side), (1, 1), data_type="int8")
    objects = {f"a{i:02}/zarr.json": document for i in range(66)}
    m = mount(MemoryStore({"zarr.json": group_document(), **objects}))
    shown = [("chunks" in m.ls(f"a{i:02}")) for i in range(66)]
    assert shown.count(False) == 2
    without = f"a{shown.index(False):02}"
    assert m.ls(without) == ["array.bin", "array.npy", "zarr.json", "zarrfs-note.txt"]
    assert b"too many chunks" in m.read(f"{without}/zarrfs-note.txt")
    assert m.open(f"{without}/array.bin").read(side * side - 1, 9) == b"\7"
    last = f"a00/chunks/{side - 1}/{side - 1}"
    assert m.read(last) == b"\7"


def test_an_array_of_more_chunks_than_there_are_inodes(mount):
    document = array_document((2**62,), (1,), data_type="int8")
    m = mount(MemoryStore({"zarr.json": document}))
    assert m.ls() == ["array.bin", "array.npy", "zarr.json", "zarrfs-note.txt", ".zarrfs"]
    assert m.stat("array.bin").size == 2**62
    assert m.open("array.bin").read(2**62 - 2, 9) == b"\7\7"
