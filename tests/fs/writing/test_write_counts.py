"""How often a store is asked: each chunk or shard is written once, and read only if it must be."""

import threading

import numpy as np
import pytest

from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, sharding
from tests.fs.write_store import WriteStore
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.views.slabs import sequential_writes

pytestmark = pytest.mark.timeout(60)

SHAPE = (96, 80, 70)
CHUNKS = (16, 20, 30)
SHARDS = (32, 40, 60)
SIZE = 2 * 96 * 80 * 70

CODECS = {
    "chunks": [LITTLE, GZIP],
    "shards": [sharding(CHUNKS, codecs=[LITTLE, ZSTD])],
    "shards at start": [sharding(CHUNKS, index_location="start")],
    "nested": [sharding((16, 40, 30), codecs=[sharding((16, 20, 30))])],
    "around": [sharding(CHUNKS), CRC32C],
}


@pytest.fixture(params=CODECS, ids=CODECS)
def store(request):
    """An array of which everything is stored already."""
    codecs = CODECS[request.param]
    shape = CHUNKS if request.param == "chunks" else SHARDS
    store = WriteStore({"zarr.json": array_document(SHAPE, shape, codecs=codecs)})
    counts = [-(-n // c) for n, c in zip(SHAPE, shape, strict=True)]
    store.keys = ["/".join(map(str, ("c", *i))) for i in np.ndindex(*counts)]
    for key in store.keys:
        store.replace(key, b"nobody may read this")
    return store


@pytest.mark.parametrize(
    ("path", "block"),
    [("array.bin", 1 << 17), ("array.npy", 1 << 20), ("array.bin", 131_071), ("array.npy", SIZE)],
)
def test_a_sequential_overwrite_puts_each_object_once_and_reads_none(opened, store, block, path):
    mount = opened(store)
    data = np.random.default_rng(1).bytes(SIZE)
    start = mount.stat(path).size - SIZE
    store.requests.clear()
    file = mount.edit(path)
    for offset in range(0, SIZE, block):
        file.write(start + offset, data[offset : offset + block])
    file.close()
    assert store.counted("put") == dict.fromkeys(store.keys, 1)
    assert not store.counted("get", "ranges")
    assert mount.read("array.bin") == data


@pytest.mark.parametrize("store", ["chunks", "nested"], indirect=True)
def test_blocks_in_a_row_touch_each_chunk_a_few_times(opened, store, monkeypatch):
    """They cross many chunks and fill none."""
    data = np.random.default_rng(1).bytes(SIZE)
    touched: list[None] = []
    write = TileChanges.write
    monkeypatch.setattr(TileChanges, "write", lambda *args: touched.append(write(*args)))

    def touches(block: int) -> int:
        mount = opened(store)
        touched.clear()
        file = mount.edit("array.bin")
        for offset in range(0, SIZE, block):
            file.write(offset, data[offset : offset + block])
        file.close()
        assert mount.read("array.bin") == data
        return len(touched)

    gathered = touches(4096)
    monkeypatch.setattr(sequential_writes, "_BELIEVED", SIZE)
    assert gathered < touches(4096) / 2


def test_the_same_with_hardly_more_memory_than_one_slab(opened, store):
    """A row of objects, as bytes and marks; the writer waits for memory and does not store
    what is new in part."""
    mount = opened(store)
    rows = SHARDS[0] if "sharding" in store.objects["zarr.json"].decode() else CHUNKS[0]
    budget = mount.write_back.budget
    # Overhang takes memory too.
    budget.total = budget.most = rows * 80 * 90 * 3 * 5 // 4
    data = np.random.default_rng(1).bytes(SIZE)
    file = mount.edit("array.bin")
    for offset in range(0, SIZE, 131_072):
        file.write(offset, data[offset : offset + 131_072])
    file.close()
    assert store.counted("put") == dict.fromkeys(store.keys, 1)
    assert not store.counted("get", "ranges")
    assert budget.highest <= budget.total


def test_whole_objects_are_stored_before_anybody_asks(opened, store):
    """At most one row of them waits for its end."""
    mount = opened(store)
    stored = threading.Event()
    row = store.keys[: len(store.keys) // (3 if len(store.keys) < 40 else 6)]
    store.after = lambda _request: stored.set() if set(row) <= set(store.counted("put")) else None
    file = mount.edit("array.bin")
    rows = 32 if len(store.keys) < 40 else 16
    file.write(0, bytes(range(256)) * (2 * rows * 80 * 70 // 256))
    assert stored.wait(20)
    file.release()


def test_a_partial_chunk_is_read_once_and_a_shard_written_once_a_flush(opened):
    document = array_document((8, 8), (8, 8), codecs=[sharding((2, 2))])
    store = WriteStore({"zarr.json": document})
    mount = opened(store)
    mount.write("array.bin", 0, np.arange(64, dtype="<i2").tobytes())
    mount.drop_caches()
    store.requests.clear()
    file = mount.edit("array.bin")
    for offset in (2, 4, 6, 40, 60, 90, 120, 3):
        file.write(offset, b"\1\2")
    file.fsync()
    assert store.counted("put") == {"c/0/0": 1}
    # The index, the inner chunks that are new in part, and the shard to be rewritten.
    assert store.counted("ranges")["c/0/0"] <= 2
    assert store.counted("get") == {"c/0/0": 1}
    file.fsync()
    file.close()
    assert store.counted("put") == {"c/0/0": 1}


def test_random_writes_take_what_they_are(opened):
    """Far more chunks than fit into memory are changed, and each shard is rewritten once."""
    shape, shard, inner = (256, 64, 64), (64, 64, 64), (16, 32, 32)
    document = array_document(shape, shard, codecs=[sharding(inner)])
    store = WriteStore({"zarr.json": document})
    mount = opened(store)
    old = np.random.default_rng(1).integers(0, 1000, shape, "<u2")
    mount.write("array.bin", 0, old.tobytes())
    store.requests.clear()
    mount.wait_for_memory()
    mount.write_back.budget.total = mount.write_back.budget.most = 12 * 16 * 32 * 32 * 3
    file = mount.edit("array.bin")
    data = bytearray(old.tobytes())
    for offset in np.random.default_rng(2).permutation(len(data) // 256)[:160] * 256:
        file.write(int(offset), b"\1\2" * 50)
        data[offset : offset + 100] = b"\1\2" * 50
    assert not store.counted("put")
    # It is not kept for being read.
    assert mount.read("array.bin") == bytes(data)
    assert not store.counted("put")
    file.close()
    assert set(store.counted("put").values()) == {1}
    assert mount.read("array.bin") == bytes(data)
    assert opened(WriteStore(store.objects)).read("array.bin") == bytes(data)
    mount.wait_for_memory()


@pytest.mark.parametrize("where", ["start", "end"])
def test_a_shard_that_is_changed_in_part_is_read_once(opened, where):
    """For what is kept of it, and for what is completed."""
    document = array_document(SHAPE, SHARDS, codecs=[sharding(CHUNKS, index_location=where)])
    store = WriteStore({"zarr.json": document})
    mount = opened(store)
    data = bytearray(np.random.default_rng(1).bytes(SIZE))
    mount.write("array.bin", 0, bytes(data))
    store.requests.clear()
    file = mount.edit("array.bin")
    for offset in (1000, 1001, 1600):
        file.write(offset, b"\1\2\3")
        data[offset : offset + 3] = b"\1\2\3"
    file.close()
    assert set(store.counted("put").values()) == {1}
    assert store.counted("get") == store.counted("put")
    assert not store.counted("ranges")
    assert opened(WriteStore(store.objects)).read("array.bin") == bytes(data)
