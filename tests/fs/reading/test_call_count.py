"""How many calls requests take, and how many modules and threads: each call costs time."""

import sys
import threading

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from tests.fs.arrays import open_array
from tests.fs.call_count import CallCount
from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from tests.fs.writable import Writable
from zarrfs import locks
from zarrfs.array.block import Block
from zarrfs.array.block_reader import read_block
from zarrfs.cache.write.due_objects import DueObjects
from zarrfs.errors import EntryNotFound
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore
from zarrfs.views.elements.window import Window, boxes

pytestmark = pytest.mark.timeout(60)

VALUES = np.random.default_rng(0).integers(0, 99, (64, 128, 128), np.uint16)
BYTES = VALUES.tobytes()
# Planes are of 32 KiB, so that none of these places is a neighbour of another.
FIRST, SECOND = 0, 33 * 32768 + 70 * 256
SIZE = 4096


@pytest.fixture(autouse=True)
def plain_locks(monkeypatch):
    """Checks of their order are calls, too."""
    monkeypatch.setattr(locks, "checked", False)


@pytest.fixture
def count():
    with CallCount() as count:
        yield count


@pytest.fixture
def own_loop(count):
    """Its threads start while calls are counted."""
    loop = Loop()
    yield loop
    loop.close()


ALONE, ACROSS = (16, 32, 128), (16, 32, 32)


@pytest.mark.parametrize(
    ("chunks", "shards", "codec", "most", "modules"),
    [
        (ALONE, None, None, 140, 25),
        (ALONE, None, ZstdCodec(), 145, 26),
        (ALONE, None, BloscCodec(), 155, 26),
        (ALONE, (32, 64, 128), ZstdCodec(), 200, 30),
        (ACROSS, None, ZstdCodec(), 400, 33),
        (ACROSS, (32, 64, 64), ZstdCodec(), 540, 37),
    ],
    ids=["uncompressed", "zstd", "blosc", "shard", "four chunks", "four chunks of a shard"],
)
def test_a_small_read_of_a_chunk_that_is_not_in_memory(
    own_loop, count, tmp_path, chunks, shards, codec, most, modules
):
    zarr.create_array(tmp_path / "a", data=VALUES, chunks=chunks, shards=shards, compressors=codec)
    # On a busy machine chunks come one by one, which takes more calls; so there are more turns.
    for turns_left in reversed(range(6)):
        mount = Mounted(own_loop, LocalStore(tmp_path / "a"), FileSystemConfig(memory=64 << 20))
        try:
            file = mount.open("array.bin")
            file.read(FIRST, SIZE)
            count.begin()
            data = file.read(SECOND, SIZE)
            count.end()
            assert data == BYTES[SECOND : SECOND + SIZE]
            assert mount.stats()["cache"]["misses"] >= 2
            file.close()
        finally:
            mount.close()
        assert count.total > 50
        if count.total <= most and len(count.modules) <= modules:
            break
        assert turns_left, (count.report(), sorted(count.modules))


@pytest.mark.parametrize(
    ("codec", "most"),
    [(None, 6), (Crc32cCodec(), 7), (ZstdCodec(), 8), (GzipCodec(), 8), (BloscCodec(), 9)],
    ids=["uncompressed", "crc32c", "zstd", "gzip", "blosc"],
)
def test_a_scan_of_chunks_of_one_element_in_shards(count, tmp_path, codec, most):
    """Each call for a chunk costs as much as copying some KiB."""
    chunks = 512
    array = zarr.create_array(
        tmp_path / "a", shape=(chunks,), dtype="u2", chunks=(1,), shards=(chunks // 2,),
        filters=None, compressors=codec,
    )  # fmt: skip
    values = np.random.default_rng(0).integers(1, 999, chunks, np.uint16)
    array[...] = values
    opened = open_array(LocalStore(tmp_path / "a"))
    target = np.zeros(chunks, "<u2")
    window = Window.whole(opened.layout.read)
    (box,) = boxes(window.shape, 0, chunks)
    block = Block(tuple(window.runs(box)), target, target.dtype)
    thread = threading.Thread(target=read_block, args=(opened, block))
    count.begin()
    thread.start()
    thread.join()
    count.end()
    assert target.tobytes() == values.tobytes()
    assert 4 * chunks < count.total <= most * chunks, count.report()


def test_a_slab_of_shards_that_is_handed_over(own_loop, count, tmp_path, monkeypatch):
    """The tiles are made in groups, and not one by one."""
    array = zarr.create_array(
        tmp_path / "a", shape=(64, 256, 256), dtype="u2", chunks=(8, 16, 16), shards=(32, 64, 64)
    )
    slab = np.random.default_rng(0).integers(0, 99, (32, 256, 256), np.uint16).tobytes()
    chunks = 4 * 16 * 16
    mount = Writable(own_loop, LocalStore(tmp_path / "a"))
    try:
        file = mount.edit("array.bin")
        for start in range(0, len(slab), 256 << 10):
            file.write(start, slab[start : start + (256 << 10)])
        gathering = mount.array().gathering
        assert gathering.nbytes == len(slab)
        # What is due is left to `fsync`, and is not counted.
        with monkeypatch.context() as patch:
            patch.setattr(DueObjects, "add", lambda *_: None)
            thread = threading.Thread(target=gathering.scatter)
            count.begin()
            thread.start()
            thread.join()
            count.end()
        assert not gathering.pending
        assert chunks < count.total <= 3000, count.report()
        file.fsync()
        assert array[:32].tobytes() == slab
        file.close()
    finally:
        mount.close()


@pytest.mark.parametrize("writable", [False, True])
def test_threads_start_when_something_is_asked_for(own_loop, tmp_path, writable):
    zarr.create_array(tmp_path / "a", data=np.full(64, 7, "u2"), chunks=(32,))
    before = set(threading.enumerate())
    kind = Writable if writable else Mounted
    config = {} if writable else {"config": FileSystemConfig(loaders=32)}
    mount = kind(own_loop, LocalStore(tmp_path / "a"), **config)
    try:
        file = mount.open("array.bin")
        started = {each.name for each in threading.enumerate() if each not in before}
        assert not [name for name in started if name.startswith("loader")]
        assert file.read(0, 4) == b"\7\0\7\0"
        file.close()
    finally:
        mount.close()


def test_a_missing_name_imports_no_reader_of_older_versions(own_loop, tmp_path, monkeypatch):
    """Programs look for files beside those that they open; the first look takes no 20 ms."""
    zarr.create_group(tmp_path / "g").create_array("a", data=VALUES[0])
    for name in ("v1", "v2"):
        monkeypatch.setitem(sys.modules, f"zarrfs.format.metadata.older.{name}", None)
    mount = Mounted(own_loop, LocalStore(tmp_path / "g"), FileSystemConfig())
    try:
        with pytest.raises(EntryNotFound):
            mount.stat("a.aux.xml")
        assert mount.stat("a/array.bin").size == VALUES[0].nbytes
    finally:
        mount.close()
