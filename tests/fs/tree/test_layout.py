"""What a mount looks like: names and sizes."""

import json
from typing import ClassVar

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document, group_document, sharding
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import (
    BudgetExceeded,
    EntryNotFound,
    IsADirectory,
    NotADirectory,
    ReadOnly,
    ZarrfsError,
)

pytestmark = pytest.mark.timeout(60)

NUMBERS = np.arange(5 * 7, dtype="<i4").reshape(5, 7)


def write(path, numbers, **options):
    options = {"chunks": (2, 3), "fill_value": 9, **options}
    zarr.create_array(path, data=numbers, **options)
    return path


class TestArray:
    def test_names(self, mount, tmp_path):
        m = mount(write(tmp_path / "a", NUMBERS))
        assert m.ls() == ["array.bin", "array.npy", "chunks", "zarr.json", ".zarrfs"]
        assert m.ls(".zarrfs") == ["stats.json", "config.json", "metrics"]
        assert m.ls("chunks") == ["0", "1", "2"]
        assert m.ls("chunks/2") == ["0", "1", "2"]

    def test_sharded_names(self, mount, tmp_path):
        m = mount(write(tmp_path / "a", NUMBERS, shards=(4, 6)))
        assert m.ls() == ["array.bin", "array.npy", "chunks", "shards", "zarr.json", ".zarrfs"]
        assert m.ls("shards") == ["0", "1"]
        assert m.ls("shards/1") == ["0", "1"]
        assert m.ls("chunks") == ["0", "1", "2"]

    def test_sizes(self, mount, tmp_path):
        m = mount(write(tmp_path / "a", NUMBERS, shards=(4, 6)))
        npy = m.read("array.npy")
        sizes = {entry.name: entry.attributes.size for entry in m.entries()}
        assert sizes == {
            "array.bin": NUMBERS.nbytes,
            "array.npy": len(npy),
            "chunks": 0,
            "shards": 0,
            "zarr.json": (tmp_path / "a/zarr.json").stat().st_size,
            ".zarrfs": 0,
        }
        assert m.stat("chunks/2/2").size == 2 * 3 * 4
        assert m.stat("shards/1/1").size == 4 * 6 * 4
        for name in ("chunks", "chunks/0", "shards", "", ".zarrfs"):
            assert m.stat(name).is_directory
        for name in ("array.bin", "chunks/0/0", "shards/0/0", "zarr.json", ".zarrfs/stats.json"):
            assert not m.stat(name).is_directory

    def test_a_scalar(self, mount, tmp_path):
        path = write(tmp_path / "a", np.array(5, "<f8"), chunks=())
        m = mount(path)
        assert m.stat("array.bin").size == 8
        assert m.read("array.bin") == np.float64(5).tobytes()
        assert m.ls("chunks") == ["0"]
        assert m.read("chunks/0") == np.float64(5).tobytes()
        with pytest.raises(EntryNotFound):
            m.stat("chunks/1")

    def test_a_scalar_that_is_not_stored(self, mount, tmp_path):
        zarr.create_array(tmp_path / "a", shape=(), dtype="<f8", fill_value=3)
        assert mount(tmp_path / "a").read("array.bin") == np.float64(3).tobytes()

    @pytest.mark.parametrize("shape", [(0,), (0, 7), (5, 0), (0, 0)])
    @pytest.mark.parametrize("shards", [None, (4, 6)])
    def test_a_zero_in_the_shape(self, mount, tmp_path, shape, shards):
        rank = len(shape)
        zarr.create_array(
            tmp_path / "a", shape=shape, dtype="<i4", chunks=(2, 3)[:rank],
            shards=None if shards is None else shards[:rank],
        )  # fmt: skip
        m = mount(tmp_path / "a")
        assert m.stat("array.bin").size == 0
        assert m.read("array.bin") == b""
        (tmp_path / "a.npy").write_bytes(m.read("array.npy"))
        assert np.load(tmp_path / "a.npy").shape == shape
        counts = [-(-n // c) for n, c in zip(shape, (2, 3), strict=False)]
        assert m.ls("chunks") == [str(i) for i in range(counts[0])]
        if shape == (5, 0):
            assert m.ls("chunks/1") == []

    def test_read_only(self, mount, tmp_path):
        m = mount(write(tmp_path / "a", NUMBERS))
        for name in ("array.bin", "chunks/0/0", "zarr.json", ".zarrfs/stats.json"):
            with pytest.raises(ReadOnly):
                m.open(name, write=True)
        with pytest.raises(IsADirectory):
            m.open("chunks")
        with pytest.raises(NotADirectory):
            m.stat("array.bin/x")
        with pytest.raises(NotADirectory):
            m.ls("array.bin")


class TestHierarchy:
    @pytest.fixture
    def group(self, tmp_path):
        root = zarr.open_group(tmp_path / "g", mode="w")
        write(tmp_path / "g/b", NUMBERS)
        root.create_group("deep/er/est")
        write(tmp_path / "g/deep/er/est/a", NUMBERS)
        (tmp_path / "g/no-node").mkdir()
        (tmp_path / "g/file").write_text("x")
        return tmp_path / "g"

    def test_groups_nest(self, mount, group):
        m = mount(group)
        assert m.ls() == ["zarr.json", ".zarrfs", "b", "deep"]
        assert m.ls("deep") == ["zarr.json", "er"]
        assert m.ls("deep/er/est") == ["zarr.json", "a"]
        assert m.read("deep/er/est/a/array.bin") == NUMBERS.tobytes()
        assert m.read("deep/er/zarr.json") == (group / "deep/er/zarr.json").read_bytes()

    @pytest.mark.parametrize("name", ["no-node", "file", "c", "B", "array.bin", "chunks", "x"])
    def test_what_is_no_node_is_not_there(self, mount, group, name):
        with pytest.raises(EntryNotFound):
            mount(group).stat(name)

    @pytest.mark.parametrize("name", ["..", ".", "", "\0", "b/array.bin", "n" * 256, "\ud800"])
    def test_what_is_no_name_is_not_there(self, mount, group, name):
        m = mount(group)
        with pytest.raises(EntryNotFound):
            m.loop.run(m.fs.lookup, m.fs.root_inode, name)
        assert m.errors() == []

    def test_a_node_that_appears_later(self, mount, group):
        m = mount(group)
        with pytest.raises(EntryNotFound):
            m.stat("late")
        write(group / "late", NUMBERS)
        assert m.ls() == ["zarr.json", ".zarrfs", "b", "deep", "late"]
        assert m.read("late/array.bin") == NUMBERS.tobytes()

    def test_names_that_clash_with_ours(self, mount):
        array = array_document((4,), (2,))
        names = dict.fromkeys((".zarrfs/zarr.json", "array.bin/zarr.json"), array)
        m = mount(MemoryStore({"zarr.json": group_document(), **names}))
        assert m.ls() == ["zarr.json", ".zarrfs", "array.bin"]
        assert m.stat("array.bin").is_directory
        assert m.ls(".zarrfs") == ["stats.json", "config.json", "metrics"]


class TestConsolidated:
    @pytest.fixture
    def store(self):
        array = json.loads(array_document((4,), (2,)))
        metadata = {
            "a": array,
            "deep/only/here": array,
            "group": json.loads(group_document()),
            "group/b": array,
            "bad": {"zarr_format": 3, "node_type": "array"},
            "worse": 5,
            "../out": array,
            "/": array,
            "x\0y": array,
            "n" * 300: array,
            "\ud800": array,
        }
        return MemoryStore({
            "zarr.json": group_document(
                consolidated_metadata={"kind": "inline", "must_understand": False,
                                       "metadata": metadata}
            ),
            "a/zarr.json": b"is not looked at",
            "a/c/0": np.array([1, 2], "<i2").tobytes(),
            "unlisted/zarr.json": array_document((4,), (2,)),
        })  # fmt: skip

    def test_decides_what_there_is(self, mount, store):
        m = mount(store)
        assert m.ls() == ["zarr.json", ".zarrfs", "a", "bad", "deep", "group", "worse"]
        assert m.ls("deep/only") == ["here"]
        assert m.ls("group") == ["b"]
        with pytest.raises(EntryNotFound):
            m.stat("unlisted")

    def test_is_used_without_asking_the_store(self, mount, store):
        m = mount(store)
        assert m.read("a/array.bin") == np.array([1, 2, 7, 7], "<i2").tobytes()
        assert m.read("deep/only/here/array.bin") == np.full(4, 7, "<i2").tobytes()
        assert m.read("group/b/array.bin") == np.full(4, 7, "<i2").tobytes()

    def test_documents_that_are_not_stored_are_not_listed(self, mount, store):
        m = mount(store)
        assert m.ls("group/b") == ["array.bin", "array.npy", "chunks"]
        with pytest.raises(EntryNotFound):
            m.stat("group/b/zarr.json")
        assert m.read("a/zarr.json") == b"is not looked at"

    def test_a_bad_entry_says_why(self, mount, store):
        m = mount(store)
        for name in ("bad", "worse"):
            assert m.ls(name) == ["zarrfs-note.txt"]
            assert m.read(f"{name}/zarrfs-note.txt").strip()

    @pytest.mark.filterwarnings("ignore:Consolidated metadata")
    def test_written_by_zarr_python(self, mount, tmp_path):
        root = zarr.open_group(tmp_path / "g", mode="w")
        root.create_group("inner")
        write(tmp_path / "g/inner/a", NUMBERS)
        zarr.consolidate_metadata(tmp_path / "g")
        write(tmp_path / "g/inner/late", NUMBERS)
        m = mount(tmp_path / "g")
        assert m.ls("inner") == ["zarr.json", "a"]
        assert m.read("inner/a/array.bin") == NUMBERS.tobytes()


class TestUnservable:
    BAD: ClassVar = {
        "malformed": b"{",
        "empty": b"",
        "not-json": b"\xff\xfe",
        "a-list": b"[]",
        "codec": array_document((4,), (2,), codecs=["nobody.knows"]),
        "data-type": array_document((4,), (2,), data_type="\ud800"),
        "member": array_document((4,), (2,), must_know={"a": 1}),
        "too-large": array_document((2**62, 4), (2, 2)),
        "negative": array_document((-4,), (2,)),
        "zero-chunk": array_document((4,), (0,)),
        "huge-chunk": array_document((2**40,), (2**40,)),
        "huge-index": array_document((2**40,), (2**40,), codecs=[sharding((1,))]),
        "rank": array_document((4, 4), (2,)),
        "many-axes": array_document((1,) * 100, (1,) * 100),
    }

    @pytest.fixture
    def mounted(self, mount):
        objects = {f"{name}/zarr.json": document for name, document in self.BAD.items()}
        objects |= {"zarr.json": group_document(), "good/zarr.json": array_document((4,), (2,))}
        return mount(MemoryStore(objects))

    def test_the_others_work(self, mounted):
        assert mounted.ls() == ["zarr.json", ".zarrfs", *sorted([*self.BAD, "good"])]
        assert mounted.read("good/array.bin") == np.full(4, 7, "<i2").tobytes()

    @pytest.mark.parametrize("name", BAD)
    def test_shows_the_metadata_and_the_reason(self, mounted, name):
        assert mounted.ls(name) == ["zarr.json", "zarrfs-note.txt"]
        assert mounted.read(f"{name}/zarr.json") == self.BAD[name]
        note = mounted.read(f"{name}/zarrfs-note.txt").decode()
        assert len(note.splitlines()) == 1
        assert len(note) > 10
        xattrs = mounted.xattrs(name)
        assert xattrs["user.zarrfs.path"] == f"/{name}".encode()
        if name != "data-type":
            assert xattrs["user.zarrfs.note"].decode() == note.strip()

    @pytest.mark.parametrize("name", BAD)
    def test_at_the_root_nothing_is_mounted(self, mount, name):
        with pytest.raises(ZarrfsError) as caught:
            mount(MemoryStore({"zarr.json": self.BAD[name]}))
        assert len(str(caught.value).splitlines()) == 1

    def test_one_chunk_larger_than_the_memory(self, mount):
        with pytest.raises(BudgetExceeded, match="memory"):
            mount(MemoryStore({"zarr.json": self.BAD["huge-chunk"]}))


def test_a_group_whose_document_is_damaged_shows_what_is_below(mount):
    damaged = b'{"zarr_format": 3, "node_type": "tree"}'
    store = MemoryStore({"zarr.json": damaged, "a/zarr.json": array_document((4,), (2,))})
    assert "a" in mount(store).ls()
