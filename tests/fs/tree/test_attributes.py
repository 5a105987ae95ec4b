"""What `stat` and extended attributes say."""

import json
import os
import threading

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document, group_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import (
    ChunkError,
    EntryNotFound,
    NoSuchAttribute,
    StoreError,
    StoreTimeout,
)
from zarrfs.format.metadata import kept
from zarrfs.fs import stat, xattrs
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)


async def current_thread() -> threading.Thread:
    return threading.current_thread()


@pytest.fixture
def sharded(tmp_path):
    """One of two shards is stored."""
    array = zarr.create_array(
        tmp_path / "g/a", shape=(10, 8), chunks=(2, 4), shards=(6, 8), dtype="<i4",
        dimension_names=["y", "x"], attributes={"units": "m", "nested": {"a": [1, None]}},
        compressors=zarr.codecs.ZstdCodec(level=1),
    )  # fmt: skip
    array[:3] = np.arange(24).reshape(3, 8) + 1
    zarr.open_group(tmp_path / "g", mode="a")
    return tmp_path / "g"


@pytest.fixture
def m(mount, sharded):
    return mount(sharded)


class TestStat:
    def test_stored_bytes(self, m, sharded):
        shard = (sharded / "a/c/0/0").stat()
        assert m.stat("a/array.bin").stored == shard.st_size
        assert m.stat("a/array.npy").stored == shard.st_size
        assert m.stat("a/shards/0/0").stored == shard.st_size
        assert m.stat("a/shards/1/0").stored == 0
        assert m.stat("a/chunks/4/0").stored == 0

    @pytest.mark.parametrize("most", [1, 2])
    def test_stored_bytes_are_counted_of_few_objects_only(self, mount, sharded, monkeypatch, most):
        monkeypatch.setattr(stat, "_MOST_COUNTED", most)
        size = (sharded / "a/c/0/0").stat().st_size if most == 2 else 10 * 8 * 4
        assert mount(sharded).stat("a/array.bin").stored == size

    def test_stored_bytes_of_an_inner_chunk_whose_index_is_at_hand(self, m, sharded):
        assert m.stat("a/chunks/0/0").stored == 2 * 4 * 4
        m.read("a/chunks/0/0")
        lengths = [m.stat(f"a/chunks/{i}/{j}").stored for i in range(3) for j in range(2)]
        index = 16 * 6 + 4
        assert sum(lengths) == (sharded / "a/c/0/0").stat().st_size - index
        assert lengths[4:] == [0, 0]

    def test_times(self, mount, sharded):
        os.utime(sharded / "a/zarr.json", ns=(0, 10**18 + 1))
        os.utime(sharded / "a/c/0/0", ns=(0, 10**18 + 5))
        m = mount(sharded)
        assert m.stat("a").mtime_ns == 10**18 + 1
        assert m.stat("a/zarr.json").mtime_ns == 10**18 + 1
        assert m.stat("a/chunks/1/1").mtime_ns == 10**18 + 5
        assert m.stat("a/chunks/4/1").mtime_ns == 10**18 + 1
        assert m.stat("a/array.bin").mtime_ns == 10**18 + 5
        assert m.stat("a/array.npy").mtime_ns == 10**18 + 5

    def test_a_change_shows_in_the_time(self, mount, sharded):
        m = mount(sharded, recheck=0)
        before = m.stat("a/array.bin").mtime_ns
        m.read("a/array.bin")
        assert m.stat("a/array.bin").mtime_ns == before
        zarr.open_array(sharded / "a")[0, 0] = 77
        m.open("a/array.bin").close()
        assert m.stat("a/array.bin").mtime_ns > before

    def test_a_remote_store_is_not_asked(self, mount, sharded):
        store = FaultStore(LocalStore(sharded), near=False)
        m = mount(store)
        m.stat("a")
        store.calls.clear()
        assert m.stat("a/array.bin").size == 320
        assert m.ls("a/chunks/1") == ["0", "1"]
        assert m.stat("a/shards/1/0").size == 192
        assert store.calls == []

    def test_one_object_that_cannot_be_looked_at(self, mount, sharded):
        os.mkfifo(sharded / "a/c/1")
        (sharded / "a/c/1").unlink()
        (sharded / "a/c/1").mkdir()
        os.mkfifo(sharded / "a/c/1/0")
        m = mount(sharded)
        assert m.stat("a/array.bin").size == 320
        assert m.ls("a/shards") == ["0", "1"]
        assert m.ls("a/shards/1") == ["0"]
        with pytest.raises(ChunkError, match="regular"):
            m.read("a/shards/1/0")
        assert m.read("a/shards/0/0")[:4] == np.int32(1).tobytes()

    def test_documents_and_status_may_not_be_cached_for_their_size(self, mount, sharded):
        m = mount(sharded, attribute_seconds=5)
        assert m.stat(".zarrfs/stats.json").fresh_seconds == 0
        assert m.stat("a/array.bin").fresh_seconds == 5
        assert m.open(".zarrfs/stats.json").opened.direct
        assert m.open("a/zarr.json").opened.direct
        assert not m.open("a/array.bin").opened.direct
        assert not m.open("a/chunks/0/0").opened.direct

    def test_a_status_file_is_never_shorter_than_its_size_was(self, mount, sharded):
        m = mount(sharded, memory=1 << 40)
        size = m.stat(".zarrfs/stats.json").size
        m.loop.run(m.fs.set_memory, 32 << 20)  # some digits fewer
        assert len(m.read(".zarrfs/stats.json")) >= size

    def test_inodes_are_the_same_in_every_mount(self, mount, sharded):
        paths = ["", "a", "a/array.bin", "a/array.npy", "a/zarr.json", "a/chunks/4/1", "a/shards/1",
                 ".zarrfs", ".zarrfs/stats.json"]  # fmt: skip
        zarr.create_group(sharded / "b")
        first = mount(sharded)
        second = mount(sharded)
        second.stat("b")
        inodes = [first.stat(path).inode for path in paths]
        assert [second.stat(path).inode for path in reversed(paths)] == inodes[::-1]
        assert len(set(inodes)) == len(inodes)
        assert inodes[0] == 1

    def test_an_inode_that_was_never_given_out(self, m):
        for inode in (0, 3, 33, 10**6, 1 << 63):
            with pytest.raises(EntryNotFound):
                m.loop.run(m.fs.getattr, inode)
            with pytest.raises(EntryNotFound):
                m.open_inode(inode)

    def test_space(self, mount, m):
        space = m.loop.run(m.fs.statfs)
        assert 0 < space.free < space.total
        m = mount(MemoryStore({"zarr.json": group_document()}))
        space = m.loop.run(m.fs.statfs)
        assert (space.total, space.free) == (0, 0)


class TestExtendedAttributes:
    def test_of_an_array(self, m, sharded):
        values = m.xattrs("a")
        assert m.xattrs("a/array.bin") == values
        assert m.xattrs("a/array.npy") == values
        document = json.loads((sharded / "a/zarr.json").read_text())
        assert values["user.zarrfs.path"] == b"/a"
        assert values["user.zarr.node_type"] == b"array"
        assert values["user.zarr.zarr_format"] == b"3"
        assert values["user.zarr.data_type"] == b"int32"
        assert values["user.zarr.attributes.units"] == b"m"
        assert json.loads(values["user.zarr.attributes.nested"]) == {"a": [1, None]}
        for name in ("shape", "codecs", "chunk_grid", "fill_value", "attributes"):
            assert json.loads(values[f"user.zarr.{name}"]) == document[name]
        assert json.loads(values["user.zarr.dimension_names"]) == ["y", "x"]
        assert json.loads(values["user.zarrfs.chunk_shape"]) == [2, 4]
        assert json.loads(values["user.zarrfs.chunk_counts"]) == [5, 2]
        assert json.loads(values["user.zarrfs.shard_shape"]) == [6, 8]
        assert json.loads(values["user.zarrfs.shard_counts"]) == [2, 1]
        assert values["user.zarrfs.dtype"] == b"<i4"

    def test_of_chunks_and_shards(self, m):
        def values(path):
            return {name: value.decode() for name, value in m.xattrs(path).items()}

        assert values("a/chunks/4/1") == {
            "user.zarrfs.index": "[4, 1]",
            "user.zarrfs.origin": "[8, 4]",
            "user.zarrfs.shape": "[2, 4]",
            "user.zarrfs.valid_shape": "[2, 4]",
            "user.zarrfs.store_key": "a/c/1/0",
        }
        assert values("a/shards/1/0") == {
            "user.zarrfs.index": "[1, 0]",
            "user.zarrfs.origin": "[6, 0]",
            "user.zarrfs.shape": "[6, 8]",
            "user.zarrfs.valid_shape": "[4, 8]",
            "user.zarrfs.store_key": "a/c/1/0",
        }
        assert values("a/chunks/4") == {}

    def test_what_the_kernel_cannot_carry_is_left_out(self, mount):
        attributes = {
            "n" * 300: 1,
            "long": "v" * 70_000,
            "zero\0": 1,
            "surrogate\ud800": 1,
            "value": "\ud800",
            "": "empty",
            "ok": "ä",
            "nan": float("nan"),
        }
        m = mount(MemoryStore({"zarr.json": array_document((4,), (2,), attributes=attributes)}))
        values = m.xattrs("")
        ours = {name for name in values if name.startswith("user.zarr.attributes.")}
        assert ours == {f"user.zarr.attributes.{name}" for name in ("", "ok", "nan")}
        assert values["user.zarr.attributes.ok"] == "ä".encode()
        for name, value in values.items():
            assert len(os.fsencode(name)) <= 255
            assert len(value) <= 65536

    def test_large_attributes_are_encoded_once_and_not_on_the_event_loop(self, mount, monkeypatch):
        attributes = {"text": "v" * 60_000, "list": list(range(10_000)), "other": "w" * 60_000}
        m = mount(MemoryStore({"zarr.json": array_document((4,), (2,), attributes=attributes)}))
        values = m.xattrs("")
        assert values["user.zarr.attributes.text"] == b"v" * 60_000
        assert json.loads(values["user.zarr.attributes.list"]) == list(range(10_000))
        assert "user.zarr.attributes" not in values  # more than the kernel could carry
        parsed = []
        unpacked = kept._unpacked

        def counted(data):
            parsed.append(threading.current_thread())
            return unpacked(data)

        monkeypatch.setattr(kept, "_unpacked", counted)
        inode = m.stat("").inode
        loop = m.loop.run(current_thread)
        for _ in range(3):
            assert m.loop.run(m.fs.listxattr, inode) == list(values)
            with pytest.raises(NoSuchAttribute):
                m.loop.run(m.fs.getxattr, inode, "user.zarr.attributes.none")
        assert parsed == []
        assert m.loop.run(m.fs.getxattr, inode, "user.zarr.attributes.other") == b"w" * 60_000
        assert len(parsed) <= len(attributes)
        assert loop not in parsed

    def test_a_list_that_the_kernel_cannot_carry(self, mount):
        attributes = {f"{i:0200}": i for i in range(1000)}
        m = mount(MemoryStore({"zarr.json": array_document((4,), (2,), attributes=attributes)}))
        values = m.xattrs("")
        assert sum(len(name) + 1 for name in values) <= 65536
        # What zarrfs adds is not what is left out.
        assert values["user.zarrfs.dtype"] == b"<i2"
        assert len(values) > 200

    def test_no_store_is_asked(self, mount, sharded):
        store = FaultStore(LocalStore(sharded))
        m = mount(store)
        inode = m.stat("a/chunks/1/1").inode
        store.calls.clear()
        assert m.loop.run(m.fs.listxattr, inode)
        assert store.calls == []


class TestStoresThatRefuse:
    """A document that one node's store does not give out."""

    @pytest.fixture
    def store(self):
        array = array_document((4,), (2,))
        inner = MemoryStore({
            "zarr.json": group_document(), "a/zarr.json": array, "b/zarr.json": array
        })  # fmt: skip
        return FaultStore(inner)

    def refuse(self, store, error):
        def before(call):
            if call.operation == "get" and call.key == "a/zarr.json":
                raise error

        store.before = before

    def test_one_that_is_refused_says_why(self, mount, store):
        self.refuse(store, StoreError("a/zarr.json", "permission denied"))
        m = mount(store)
        assert m.ls() == ["zarr.json", ".zarrfs", "a", "b"]
        assert m.read("a/zarrfs-note.txt") == b"a/zarr.json: permission denied\n"
        assert m.read("b/array.bin") == np.full(4, 7, "<i2").tobytes()
        # That the node cannot be served, and what its reader was told.
        refused = ("a", "a/zarr.json: permission denied")
        assert m.errors() == [refused]
        with pytest.raises(StoreError):
            m.open("a/zarr.json")
        assert m.errors() == [refused, ("a/zarr.json", "permission denied")]

    def test_one_that_does_not_answer_now_is_tried_again(self, mount, store):
        self.refuse(store, StoreTimeout("a/zarr.json", "no answer"))
        m = mount(store)
        with pytest.raises(StoreTimeout):
            m.stat("a")
        assert m.errors() == [("a/zarr.json", "no answer")]
        store.before = lambda _call: None
        assert m.read("a/array.bin") == np.full(4, 7, "<i2").tobytes()


def test_attributes_of_the_system_cost_nothing(m, monkeypatch):
    """As `ls -l` asks for of each entry: nothing is encoded, and no thread is asked."""
    inode = m.stat("a").inode
    monkeypatch.setattr(xattrs, "_encoded", None)
    monkeypatch.setattr(m.fs._threads, "run", None)
    for name in ("security.selinux", "system.posix_acl_access", "trusted.x"):
        with pytest.raises(NoSuchAttribute):
            m.loop.run(m.fs.getxattr, inode, name)
