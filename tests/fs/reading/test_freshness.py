"""A source that others change while it is mounted."""

import json
import os
import shutil
from contextlib import closing

import numpy as np
import pytest
import zarr

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, LITTLE, array_document, group_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.array import presence
from zarrfs.array.making.array_documents import StoredEncoding
from zarrfs.errors import ChunkError, EncodingChanged, EntryNotFound
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)

SIDE = 4


def data(value):
    return np.full(SIDE, value, "<i2").tobytes()


@pytest.fixture(params=["local", "remote"])
def store(request):
    array = array_document((4 * SIDE,), (SIDE,))
    inner = MemoryStore({
        "zarr.json": group_document(),
        "a/zarr.json": array, "a/c/0": data(0), "a/c/1": data(1),
        "b/zarr.json": array, "b/c/0": data(5),
    })  # fmt: skip
    return FaultStore(inner, near=request.param == "local")


def blocks(content):
    return [int(v) for v in np.frombuffer(content, "<i2")[::SIDE]]


def test_seen_when_it_is_opened_again(mount, store):
    m = mount(store, recheck=0)
    assert blocks(m.read("a/array.bin")) == [0, 1, 7, 7]
    store.inner.put("a/c/0", data(10))
    store.inner.delete("a/c/1")
    store.inner.put("a/c/2", data(12))
    assert blocks(m.read("a/array.bin")) == [10, 7, 12, 7]
    assert m.read("a/chunks/2") == data(12)
    assert m.read("a/chunks/1") == data(7)


@pytest.mark.parametrize("sharded", [False, True])
def test_an_array_that_is_deleted_has_no_fill_values(mount, tmp_path, sharded):
    codecs = {"codecs": [sharding((SIDE // 2,))]} if sharded else {}
    document = array_document((4 * SIDE,), (SIDE,), **codecs)
    (tmp_path / "a").mkdir()
    (tmp_path / "zarr.json").write_bytes(group_document())
    (tmp_path / "a/zarr.json").write_bytes(document)
    m = mount(LocalStore(tmp_path), recheck=0)
    with closing(m.open("a/array.bin")) as file:
        assert blocks(file.read_all()) == [7, 7, 7, 7]
        os.rename(tmp_path / "a", tmp_path / "moved")
        m.loop.run(m.fs.drop_caches)
        for name in ("a/array.bin", "a/array.npy", "a/chunks/1"):
            with pytest.raises(ChunkError, match="the array was deleted from the source"):
                m.read(name)
        with pytest.raises(ChunkError, match="the array was deleted from the source"):
            file.read_all()
        os.rename(tmp_path / "moved", tmp_path / "a")
        assert blocks(file.read_all()) == [7, 7, 7, 7]


BIG = {"name": "bytes", "configuration": {"endian": "big"}}


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("change", [
    {"codecs": [BIG]}, {"data_type": "uint16"}, {"fill_value": 8}, {"node_type": "group"},
    {"codecs": [BIG, {"name": "none.such"}]},
    {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": (2 * SIDE,)}}},
])  # fmt: skip
def test_an_array_that_is_encoded_anew_shows_no_other_elements(mount, tmp_path, change, group):
    """Until the metadata are read again. A new length of the array changes no encoding."""
    path = tmp_path / "a" if group else tmp_path
    path.mkdir(exist_ok=True)
    if group:
        (tmp_path / "zarr.json").write_bytes(group_document())
    document = array_document((4 * SIDE,), (SIDE,))
    (path / "zarr.json").write_bytes(document)
    m = mount(LocalStore(tmp_path), recheck=0)
    name = "a/array.bin" if group else "array.bin"
    assert blocks(m.read(name)) == [7, 7, 7, 7]
    (path / "zarr.json").write_bytes(array_document((8 * SIDE,), (SIDE,)))
    assert blocks(m.read(name)) == [7, 7, 7, 7]
    changed = json.loads(document) | change
    if change == {"node_type": "group"}:
        changed = json.loads(group_document())
    (path / "zarr.json").write_text(json.dumps(changed))
    for _ in range(2):
        with pytest.raises(EncodingChanged):
            m.open(name)
    (path / "zarr.json").write_bytes(document)
    assert blocks(m.read(name)) == [7, 7, 7, 7]


@pytest.mark.parametrize("said", [
    {"codecs": [LITTLE | {"must_understand": True}, CRC32C | {"configuration": {}}]},
    {"data_type": {"name": "int16"}},
    {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}},
    {"storage_transformers": [], "dimension_names": ["x"], "attributes": {"a": 1}},
])  # fmt: skip
@pytest.mark.parametrize("consolidated", [False, True])
def test_an_array_that_is_described_in_other_words_is_shown(mount, said, consolidated):
    """By another program since it was opened, or by the group above."""
    one = json.loads(array_document((SIDE,), (SIDE,), codecs=[LITTLE, CRC32C]))
    inline = {"kind": "inline", "must_understand": False, "metadata": {"a": one}}
    group = group_document(**{"consolidated_metadata": inline} if consolidated else {})
    own = json.dumps(one | said if consolidated else one).encode()
    store = FaultStore(MemoryStore({"zarr.json": group, "a/zarr.json": own}), near=True)
    m = mount(store, recheck=0)
    assert blocks(m.read("a/array.bin")) == [7]
    store.inner.put("a/zarr.json", json.dumps(one | said).encode())
    assert blocks(m.read("a/array.bin")) == [7]


def test_an_open_leaves_it_to_writers_how_many_rows_are_stored():
    """It may have read the metadata before rows were cut off, which it must not undo."""
    store = FaultStore(MemoryStore({"zarr.json": array_document((4 * SIDE,), (SIDE,))}), near=True)
    array = open_array(store)
    array.config = array.config._replace(document="zarr.json")
    array.stored_shape = (2 * SIDE,)
    StoredEncoding(array).check_read()
    assert array.stored_shape == (2 * SIDE,)


@pytest.mark.parametrize("fill", [0, 0.0])
def test_an_array_of_version_2_whose_fill_value_gets_a_name_is_shown(mount, fill):
    members = {"shape": [2], "chunks": [2], "dtype": "<f4", "compressor": {"id": "zlib"}}
    document = {"zarr_format": 2, "order": "C", "filters": None, "fill_value": None, **members}
    store = FaultStore(MemoryStore({".zarray": json.dumps(document).encode()}), near=True)
    m = mount(store, recheck=0)
    assert not any(m.read("array.bin"))
    store.inner.put(".zarray", json.dumps(document | {"fill_value": fill, "filters": []}).encode())
    assert not any(m.read("array.bin"))


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("own", [False, True])
def test_an_array_that_is_deleted_with_the_group_that_describes_it(
    mount, tmp_path, zarr_format, own
):
    zarr.open_group(tmp_path / "top", mode="w", zarr_format=zarr_format)
    group = zarr.open_group(tmp_path / "top/g", mode="w", zarr_format=zarr_format)
    group.create_array("a", shape=(4 * SIDE,), chunks=(SIDE,), dtype="<i2", fill_value=7)
    zarr.consolidate_metadata(tmp_path / "top/g", zarr_format=zarr_format)
    if not own:
        shutil.rmtree(tmp_path / "top/g/a")
    m = mount(LocalStore(tmp_path / "top"), recheck=0)
    with closing(m.open("g/a/array.bin")) as file:
        assert blocks(file.read_all()) == [7, 7, 7, 7]
        shutil.rmtree(tmp_path / "top/g")
        m.loop.run(m.fs.drop_caches)
        with pytest.raises(ChunkError, match="the array was deleted from the source"):
            file.read_all()


def test_an_array_is_there_if_the_store_sends_its_document(mount, tmp_path, monkeypatch):
    """Some web servers answer GET, and to HEAD that there is no such object."""
    monkeypatch.setattr(presence, "_LOOK_S", 0.0)
    monkeypatch.setattr(FaultStore, "info", lambda *_: None)
    (tmp_path / "zarr.json").write_bytes(array_document((4 * SIDE,), (SIDE,)))
    m = mount(FaultStore(LocalStore(tmp_path), near=False))
    assert blocks(m.read("array.bin")) == [7, 7, 7, 7]
    (tmp_path / "zarr.json").unlink()
    m.loop.run(m.fs.drop_caches)
    with pytest.raises(ChunkError, match="the array was deleted from the source"):
        m.read("chunks/1")


def test_not_looked_for_before_it_is_time(mount, store):
    m = mount(store, recheck=float("inf"))
    assert blocks(m.read("a/array.bin")) == [0, 1, 7, 7]
    store.inner.put("a/c/0", data(10))
    store.calls.clear()
    assert blocks(m.read("a/array.bin")) == [0, 1, 7, 7]
    assert store.count("get", "ranges") == 0


class TestKernelPages:
    def test_kept_while_nothing_changes(self, mount, store):
        m = mount(store, recheck=float("inf"))
        m.read("a/array.bin")
        assert m.open("a/array.bin").keep_cache
        m.read("a/chunks/0")
        assert m.open("a/chunks/0").keep_cache
        assert m.open("a/array.bin").keep_cache

    def test_not_kept_until_the_kernel_has_dropped_them(self, mount, store):
        """A request through a handle shows that the kernel has the answer to the open."""
        m = mount(store, recheck=float("inf"))
        first, second = m.open("a/array.bin"), m.open("a/array.bin")
        assert not first.keep_cache
        assert not second.keep_cache
        second.read(0, 1)
        assert m.open("a/array.bin").keep_cache

    def test_not_kept_if_what_was_dropped_is_old(self, mount, store):
        m = mount(store, recheck=0)
        old = m.open("a/array.bin")
        m.read("a/chunks/0")
        store.inner.put("a/c/0", data(10))
        new = m.open("a/array.bin")
        old.read(0, 1)
        assert not m.open("a/array.bin").keep_cache
        new.close()
        assert m.open("a/array.bin").keep_cache == store.traits.near

    def test_kept_after_a_check_that_found_nothing(self, mount, store):
        m = mount(store, recheck=0)
        m.read("a/array.bin")
        # A remote store is not asked for every chunk, so nothing can be vouched for.
        assert m.open("a/array.bin").keep_cache == store.traits.near

    def test_dropped_at_the_first_open_after_a_change(self, mount, store):
        m = mount(store, recheck=0)
        for value in (10, 11, 12):
            m.read("a/array.bin")
            m.read("a/chunks/0")
            m.read("b/array.bin")
            store.inner.put("a/c/0", data(value))
            assert not m.open("a/array.bin").keep_cache
            assert not m.open("a/chunks/0").keep_cache
            assert not m.open("a/chunks/1").keep_cache
            if store.traits.near:
                assert m.open("b/array.bin").keep_cache

    def test_open_files_are_told_to_drop_theirs(self, mount, store):
        m = mount(store, recheck=0)
        flat, chunk, other = m.open("a/array.bin"), m.open("a/chunks/0"), m.open("b/array.bin")
        closed = m.open("a/array.npy")
        for file in (flat, chunk, other, closed):
            file.read_all()
        closed.close()
        store.inner.put("a/c/0", data(10))
        m.dropped.inodes.clear()
        m.open("a/chunks/3")
        assert sorted(m.dropped.inodes) == sorted([flat.inode, chunk.inode])

    def test_a_change_that_a_read_found_is_told_at_the_next_open(self, mount):
        document = array_document((2 * SIDE,), (2 * SIDE,), codecs=[sharding((SIDE,))])
        store = MemoryStore({"zarr.json": document, "c/0": shard([data(0), data(1)])})
        m = mount(store, recheck=0)
        file = m.open("array.bin")
        assert file.read(0, 2 * SIDE) == data(0)
        store.put("c/0", shard([data(10), data(11)]))
        assert file.read(2 * SIDE, 2 * SIDE) == data(11)
        m.open("chunks/0")
        assert file.inode in m.dropped.inodes
        assert file.read(0, 4 * SIDE) == data(10) + data(11)
        assert not m.open("array.bin").keep_cache

    def test_documents_and_status_are_never_kept(self, mount, store):
        m = mount(store)
        for path in ("a/zarr.json", ".zarrfs/stats.json", "zarr.json"):
            for _ in range(2):
                assert not m.open(path).keep_cache

    def test_a_document_that_changes(self, mount, store):
        m = mount(store, attribute_seconds=0)
        m.read("a/zarr.json")
        store.inner.put("a/zarr.json", b"something else")
        assert m.read("a/zarr.json") == b"something else"
        assert m.stat("a/zarr.json").size == 14
        store.inner.delete("a/zarr.json")
        if store.traits.near:
            assert "zarr.json" not in m.ls("a")
        with pytest.raises(EntryNotFound):
            m.stat("a/zarr.json")


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
def test_an_inner_chunk_that_comes(mount, cheap):
    document = array_document((4 * SIDE,), (4 * SIDE,), codecs=[sharding((SIDE,))])
    objects = {"zarr.json": document, "c/0": shard([data(0), None, data(2), data(3)])}
    store = MemoryStore(objects, cheap=cheap)
    m = mount(store, recheck=0)
    assert m.read("chunks/0") == data(0)
    store.put("c/0", shard([data(0), data(1), data(2), data(3)]))
    assert m.read("chunks/1") == data(1)


def test_a_remote_file_that_is_revalidated_is_not_trusted_for_ever(mount):
    store = MemoryStore(
        {"zarr.json": array_document((SIDE,), (SIDE,)), "c/0": data(0)}, cheap=False
    )
    m = mount(store, recheck=0)
    for value in range(1, 6):
        m.read("array.bin")
        m.read("array.bin")
        store.put("c/0", data(value))
        file = m.open("array.bin")
        assert not file.keep_cache
        assert file.read_all() == data(value)


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
def test_a_change_in_what_was_read_ahead(mount, cheap):
    """A scan holds rows of chunks put together, which must not outlive a change either."""
    count, side = 8, 1 << 18
    document = array_document((count * side,), (side,))
    objects = {f"c/{i}": np.full(side, i, "<i2").tobytes() for i in range(count)}
    store = MemoryStore({"zarr.json": document, **objects}, cheap=cheap)
    m = mount(store, recheck=0)
    file = m.open("array.bin")
    request = 1 << 17
    for offset in range(0, 5 * side * 2, request):
        assert file.read(offset, request) == objects[f"c/{offset // (2 * side)}"][:request]
    for i in range(count):
        store.put(f"c/{i}", np.full(side, 100 + i, "<i2").tobytes())
    m.open("array.npy").close()
    for i in (5, 4, 6, 7):
        assert file.read(2 * i * side, request) == store.objects[f"c/{i}"][:request]
