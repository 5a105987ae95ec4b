"""A write through one file is seen through all others, in every mount that should."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest

from tests.fs.documents import CRC32C, GZIP, LITTLE, array_document, sharding
from tests.fs.write_store import Request, WriteStore, refusing
from zarrfs.cache.read import array_chunks
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import StoreUnavailable
from zarrfs.fs.attributes import OpenMode

pytestmark = pytest.mark.timeout(100)

SHAPE = (10, 8)
LAYOUTS = {
    "chunks": ((4, 3), [LITTLE, GZIP]),
    "shards": ((8, 6), [sharding((4, 3))]),
    "nested": ((8, 6), [sharding((4, 6), codecs=[sharding((2, 3))])]),
    "around": ((8, 6), [sharding((4, 3)), CRC32C]),
}


@pytest.fixture(params=LAYOUTS, ids=LAYOUTS)
def document(request):
    shape, codecs = LAYOUTS[request.param]
    return array_document(SHAPE, shape, codecs=codecs, data_type="int32")


def all_files(mount):
    trees = [name for name in ("chunks", "shards") if name in mount.ls()]
    return ["array.bin", "array.npy"] + [
        f"{tree}/{i}/{j}"
        for tree in trees
        for i, j in product(range(len(mount.ls(tree))), range(len(mount.ls(f"{tree}/0"))))
    ]


def elements(mount):
    return np.frombuffer(mount.read("array.bin"), "<i4").reshape(SHAPE)


def test_a_write_sets_the_time_of_all_files_at_once(opened, document):
    """Before anything is stored: make and rsync look at it."""
    mount = opened(WriteStore({"zarr.json": document}))
    file = mount.edit("array.bin")
    begun = time.time_ns()
    assert all(mount.stat(path).mtime_ns < begun for path in all_files(mount))
    file.write(0, b"\1")
    assert all(mount.stat(path).mtime_ns >= begun for path in all_files(mount))


@pytest.mark.parametrize("through", ["array.bin", "array.npy", "chunks/1/1"])
def test_a_write_is_seen_through_all_files_at_once(opened, document, through):
    """Even half of an element, and before anything is stored."""
    mount = opened(WriteStore({"zarr.json": document}))
    handles = {path: mount.edit(path) for path in all_files(mount)}
    for file in handles.values():
        file.read(0, 1 << 20)
    writer = handles[through]
    offset = 133 if through != "array.npy" else 133 + mount.stat(through).size - 320
    if through == "chunks/1/1":
        offset = 1
    before = elements(mount).copy()
    writer.write(offset, b"\xee\xdd")
    now = elements(mount)
    (place,) = np.argwhere(now != before).tolist()
    index = [
        i // n for i, n in zip(place, mount.array().array.layout.read.largest_chunk, strict=True)
    ]
    for path, file in handles.items():
        seen = b"\xee\xdd" in file.read(0, 1 << 20)
        expected = path[0] == "a" or path == f"chunks/{index[0]}/{index[1]}"
        if path.startswith("shards"):
            expected = path == f"shards/{place[0] // 8}/{place[1] // 6}"
        assert seen == expected, path
    # The other half, through another file.
    mount.edit("array.bin").write(4 * (8 * place[0] + place[1]), b"\1")
    assert elements(mount)[tuple(place)] & 0xFF == 1
    writer.close()
    assert (elements(opened(WriteStore(mount.store.objects))) == elements(mount)).all()


def test_a_scan_sees_writes_behind_and_before_it(opened):
    """Slabs that have been assembled are made again."""
    shape = (64, 64, 512)
    document = array_document(shape, (8, 32, 100), data_type="uint8", fill_value=0)
    mount = opened(WriteStore({"zarr.json": document}))
    model = bytearray(64 * 64 * 512)
    reader, writer = mount.edit("array.bin"), mount.edit("array.bin")
    random = np.random.default_rng(1)
    for offset in range(0, len(model), 1 << 17):
        assert reader.read(offset, 1 << 17) == model[offset : offset + (1 << 17)]
        place = int(random.integers(0, len(model) - 100))
        data = random.bytes(int(random.integers(1, 100)))
        writer.write(place, data)
        model[place : place + len(data)] = data
    for offset in range(0, len(model), 1 << 17):
        assert reader.read(offset, 1 << 17) == model[offset : offset + (1 << 17)]


# --- what the kernel keeps --------------------------------------------------------


@pytest.mark.parametrize("end", ["fsync", "close"])
def test_the_kernel_forgets_what_it_has_of_other_files(opened, document, end):
    mount = opened(WriteStore({"zarr.json": document}))
    files = {path: mount.open(path) for path in ("array.npy", "chunks/0/0")}
    files["array.bin"] = mount.edit("array.bin")
    files["array.bin"].write(0, b"\1")
    assert mount.dropped.inodes == []
    getattr(files["array.bin"], end)()
    others = {files["array.npy"].inode, files["chunks/0/0"].inode}
    assert set(mount.dropped.inodes) == others


@pytest.mark.parametrize("way", ["fsync", "flush", "unlink", "truncate"])
def test_who_writes_waits_for_the_pages_of_that_array_alone(opened, document, way):
    """The kernel waits for pages of others that are being read."""
    root = {"zarr_format": 3, "node_type": "group"}
    store = {f"{name}/zarr.json": document for name in "ab"}
    mount = opened(WriteStore({"zarr.json": json.dumps(root).encode(), **store}))
    other = mount.open("b/array.bin")
    files = [mount.edit(f"a/{name}") for name in ("array.bin", "array.npy", "chunks/0/0")]
    files[0].write(0, b"\1")
    mount.dropped.waited_for.clear()
    if way == "unlink":
        mount.unlink("a/chunks/0/0")
    elif way == "truncate":
        files = files[:1]
        mode = OpenMode(write=True, truncate=True)
        mount.loop.run(mount.fs.open_file, files[0].inode, mode)
    else:
        getattr(files[0], way)()
    assert mount.dropped.waited_for
    last = mount.dropped.waited_for[-1]
    assert all(file.inode in last for file in files)
    assert other.inode not in last


def test_a_file_that_alone_was_written_keeps_its_pages(opened, document):
    mount = opened(WriteStore({"zarr.json": document}))
    mount.write("array.bin", 0, b"\1")
    mount.write("array.bin", 0, b"\2")
    assert mount.open("array.bin").keep_cache
    assert not mount.open("array.npy").keep_cache
    mount.write("chunks/0/0", 0, b"\3")
    assert not mount.open("array.bin").keep_cache


def test_pages_are_not_kept_when_others_have_changed_the_array(opened, document):
    """Merging their changes with ours must not make old pages look current."""
    store = WriteStore({"zarr.json": document})
    mount, other = opened(store, recheck=3600.0), opened(store)
    mount.write("array.bin", 0, b"\1")
    assert mount.open("array.bin").keep_cache
    other.write("array.bin", 4, b"\2")
    mount.write("array.bin", 8, b"\3")
    assert not mount.open("array.bin").keep_cache
    assert elements(mount)[0, :3].tolist() == [1, 2, 3]


def test_a_mapping_that_writes_after_the_last_flush(opened, document):
    """Pages of other files are forgotten at the end of it."""
    mount = opened(WriteStore({"zarr.json": document}))
    other = mount.open("chunks/0/0")
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    file.release()
    assert mount.dropped.inodes == [other.inode]


@pytest.mark.parametrize("fails", [False, True], ids=["removed", "removed later"])
def test_removing_a_chunk_makes_the_kernel_forget_what_readers_have_of_it(opened, document, fails):
    """Of a removal that fails, it may be some of the chunk that is gone."""
    mount = opened(WriteStore({"zarr.json": document}))
    mount.write("array.bin", 0, bytes(320))
    readers = [mount.open(path) for path in ("array.bin", "array.npy", "chunks/0/0")]
    mount.dropped.inodes.clear()

    if fails:
        mount.store.before = refusing(StoreUnavailable, "put", "delete")
        with pytest.raises(StoreUnavailable):
            mount.unlink("chunks/0/0")
        mount.store.before = lambda _request: None
        file = mount.edit("chunks/0/0", read=False)
        file.fsync()
        file.close()
    else:
        mount.unlink("chunks/0/0")
    assert {file.inode for file in readers} <= set(mount.dropped.inodes)
    assert elements(mount)[:2, :3].tolist() == [[7] * 3] * 2


# --- neighbours -------------------------------------------------------------------


def test_neighbours_survive_a_write_that_looks_for_their_index_too_early(opened):
    """An inner chunk that one adds while the other has the old index in memory."""
    document = array_document((8,), (8,), codecs=[sharding((2,))])
    store = WriteStore({"zarr.json": document})
    one, two = opened(store), opened(store)
    one.write("array.bin", 0, b"\1\0\1\0")
    assert one.read("array.bin")[:4] == b"\1\0\1\0"
    two.write("array.bin", 4, b"\2\0\2\0")
    # Of the inner chunk that is missing in the index it knows, and only in part.
    one.write("array.bin", 4, b"\3\0")
    assert opened(store).read("array.bin")[:8] == b"\1\0\1\0\3\0\2\0"


# --- what is on its way while an object is replaced -------------------------------


@contextmanager
def under_way(store: WriteStore, operation: str, read: Callable[[], object]) -> Iterator[None]:
    """Reads in a thread: the bytes have left the store, and come when this is over."""
    reading, going_on = threading.Event(), threading.Event()

    def wait(request: Request) -> None:
        if request.operation == operation and not reading.is_set():
            reading.set()
            assert going_on.wait(20)

    store.after = wait
    reader = threading.Thread(target=read)
    reader.start()
    assert reading.wait(20)
    yield
    going_on.set()
    reader.join()


@pytest.mark.parametrize("operation", ["get", "ranges"])
def test_a_load_that_began_before_a_flush_brings_nothing_old(opened, operation):
    codecs = [LITTLE] if operation == "get" else [sharding((2,))]
    old = WriteStore({"zarr.json": array_document((4,), (4,), codecs=codecs)})
    opened(old).write("array.bin", 0, b"\1\0\1\0\1\0\1\0")
    store = WriteStore(old.objects)
    mount = opened(store)
    found = []
    file = mount.edit("array.bin")
    with under_way(store, operation, lambda: found.append(file.read(0, 8))):
        file.write(0, b"\2\0")
        file.fsync()
    assert found[0] in (b"\1\0" * 4, b"\2\0" + b"\1\0" * 3)
    assert file.read(0, 8) == b"\2\0\1\0\1\0\1\0"
    mount.drop_caches()
    assert file.read(0, 8) == b"\2\0\1\0\1\0\1\0"


def test_a_load_that_ends_while_a_flush_does(opened, monkeypatch):
    """Between its last look at the flight and the end of that."""
    store = WriteStore({"zarr.json": array_document((4,), (4,)), "c/0": bytes(8)})
    mount = opened(store, recheck=3600.0)
    file = mount.edit("array.bin")
    measure = array_chunks._base_size
    flushes = iter([mount.array().flush])

    def flush_once(chunk):
        for flush in flushes:
            flush()
        return measure(chunk)

    monkeypatch.setattr(array_chunks, "_base_size", flush_once)
    file.write(0, b"\1\0")
    assert file.read(0, 8) == b"\1" + bytes(7)
    assert file.read(0, 8) == b"\1" + bytes(7)


def test_an_index_that_was_read_before_a_flush_is_not_remembered(opened):
    """It says of an inner chunk that is there now that it is missing."""
    store = WriteStore({"zarr.json": array_document((8,), (8,), codecs=[sharding((2,))])})
    mount = opened(store, recheck=3600.0)
    mount.write("array.bin", 0, b"\1\0")
    mount.drop_caches()
    mount.tree.parts._items.clear()
    mount.array().array.forget_others()
    file = mount.edit("array.bin")
    with under_way(store, "ranges", lambda: file.read(8, 4)):
        file.write(8, b"\2\0\2\0")
        file.fsync()
    assert file.read(8, 4) == b"\2\0\2\0"


def test_a_chunk_loaded_while_its_changes_are_stored_has_them(opened, monkeypatch):
    """The load ends after the put, and the chunk is not dirty any more when it is handed over."""
    store = WriteStore({"zarr.json": array_document((4,), (4,)), "c/0": bytes(8)})
    mount = opened(store)
    array = mount.array()
    file = mount.edit("array.bin")
    file.write(0, b"\1\0")
    request = CachedArray.request

    def flush_between(self, indices, deliver, done, **how):
        def late(delivery):
            array.flush()
            deliver(delivery)

        request(self, indices, late, done, **how)

    monkeypatch.setattr(CachedArray, "request", flush_between)
    assert file.read(0, 8) == b"\1" + bytes(7)
