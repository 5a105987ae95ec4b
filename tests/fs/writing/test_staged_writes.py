"""What is written in order to rows of chunks that take half of the memory for changes, or more."""

import os

import numpy as np
import pytest

from tests.fs.documents import LITTLE, ZSTD, array_document, sharding
from tests.fs.write_store import WriteStore, refusing
from tests.waiting import wait_until
from zarrfs.errors import StoreFull
from zarrfs.memory.scratch_file import ScratchBuffers

pytestmark = pytest.mark.timeout(100)

SHAPE = (48, 200, 300)
SIZE = 2 * 48 * 200 * 300
BLOCK = 1 << 17

KINDS = {
    "chunks": array_document(SHAPE, (40, 50, 60), codecs=[LITTLE, ZSTD]),
    "shards": array_document(SHAPE, (48, 100, 300), codecs=[sharding((48, 25, 50))]),
    "shards of several rows": array_document(SHAPE, (48, 100, 300), codecs=[sharding((8, 25, 50))]),
    "shards of several planes": array_document(
        SHAPE, (24, 100, 300), codecs=[sharding((1, 25, 50))]
    ),
    "all of the first axes": array_document(SHAPE, (48, 200, 30)),
}


# With this part of a row of chunks as memory for changes; marks have room in neither.
WHERE = {"in a file": 0.7, "in memory": 1.2}


def memory_for(where, rows=1):
    """Memory of a mount that gathers a row of chunks so. ``rows`` : of the array."""
    return int(WHERE[where] * SIZE / rows * 16 / 5)


IN_A_FILE = [(kind, "in a file") for kind in KINDS]
IN_MEMORY = [(kind, "in memory") for kind in ("chunks", "shards of several planes")]


@pytest.fixture(params=IN_A_FILE + IN_MEMORY, ids=" ".join)
def case(request):
    """A kind of array, and where its rows are gathered."""
    return request.param


@pytest.fixture
def store(case):
    return WriteStore({"zarr.json": KINDS[case[0]]})


@pytest.fixture
def data():
    return np.random.default_rng(2).integers(-99, 99, SHAPE, "<i2").tobytes()


@pytest.fixture
def small(opened, store, tmp_path, case):
    """A mount with little memory for changes, and a directory for what it has none for."""

    def mount(**config):
        memory = memory_for(case[1], rows=2 if case[0] == "shards of several planes" else 1)
        return opened(store, memory=memory, spill=str(tmp_path), **config)

    return mount


def write(file, data, start=0, stop=None):
    for offset in range(start, len(data) if stop is None else stop, BLOCK):
        file.write(offset, data[offset : min(offset + BLOCK, stop or len(data))])


def filled(opened, store):
    mount = opened(store, memory=1 << 30)
    file = mount.edit("array.bin")
    write(file, np.full(SHAPE, 5, "<i2").tobytes())
    file.close()
    keys = set(store.objects) - {"zarr.json"}
    store.requests.clear()
    return keys


def test_a_sequential_overwrite_puts_each_object_once_and_reads_none(opened, store, small, data):
    keys = filled(opened, store)
    mount = small()
    store.requests.clear()
    file = mount.edit("array.bin")
    write(file, data)
    file.fsync()
    assert store.counted("put") == dict.fromkeys(keys, 1)
    assert not store.counted("get")
    budget = mount.write_back.budget
    assert budget.highest <= budget.total
    assert opened(WriteStore(store.objects)).read("array.bin") == data
    mount.wait_for_memory()


@pytest.mark.parametrize("where", WHERE)
def test_shards_of_several_rows_of_the_last_axis_in_a_file_of_the_other_order(
    opened, tmp_path, where, data
):
    codecs = [sharding((50, 25, 8))]
    store = WriteStore({"zarr.json": array_document(SHAPE[::-1], (300, 100, 48), codecs=codecs)})
    mount = opened(store, memory=memory_for(where), spill=str(tmp_path), order="F")
    file = mount.edit("array.bin")
    write(file, data)
    file.fsync()
    assert store.counted("put") == {"c/0/0/0": 1, "c/0/1/0": 1}
    assert opened(WriteStore(store.objects), order="F").read("array.bin") == data


# For a quarter of it, a row of chunks fits once, twice or not at all; its marks take as much again.
@pytest.mark.parametrize("memory", [16 << 20, 44 << 20, 47 << 20, 49 << 20, 64 << 20, 96 << 20])
def test_gathered_however_much_memory_the_marks_take(opened, tmp_path, memory):
    store = WriteStore({"zarr.json": array_document(SHAPE, (48, 10, 30), data_type="uint8")})
    data = np.random.default_rng(3).integers(1, 99, SHAPE, np.uint8).tobytes()
    mount = opened(store, memory=memory, spill=str(tmp_path))
    file = mount.edit("array.bin")
    write(file, data, 0, len(data) // 2)
    gathering = mount.array().gathering
    assert gathering.pending
    # Only the first writes were not expected to continue.
    assert gathering.nbytes >= len(data) // 2 - (512 << 10)
    write(file, data, len(data) // 2)
    file.fsync()
    assert opened(WriteStore(store.objects)).read("array.bin") == data


def test_what_is_gathered_is_seen_by_readers_and_stored_by_fsync(opened, case, store, small, data):
    filled(opened, store)
    mount = small()
    file = mount.edit("array.bin")
    half = SIZE // 2 // BLOCK * BLOCK
    write(file, data, 0, half)
    gathering = mount.array().gathering
    assert gathering.pending
    assert gathering._gathered.buffer.in_file == (case[1] == "in a file")
    assert mount.read("array.bin", 1 << 20)[:half] == data[:half]
    file.fsync()
    assert not mount.write_back.dirty_bytes
    old = np.full(SHAPE, 5, "<i2").tobytes()
    assert opened(WriteStore(store.objects)).read("array.bin") == data[:half] + old[half:]
    write(file, data, half)
    assert mount.read("array.bin", 1 << 20) == data
    file.close()
    assert opened(WriteStore(store.objects)).read("array.bin") == data


@pytest.mark.parametrize("case", [IN_A_FILE[1], IN_MEMORY[0]], indirect=True)
def test_it_is_stored_when_nothing_comes_for_the_delay(store, small, data):
    mount = small(flush_delay=0.05)
    file = mount.edit("array.bin")
    write(file, data, 0, SIZE // 2)
    wait_until(lambda: not mount.write_back.dirty_bytes)
    assert mount.read("array.bin")[: SIZE // 2] == data[: SIZE // 2]


@pytest.mark.parametrize("case", [("shards", where) for where in WHERE], indirect=True)
def test_a_full_store_loses_nothing(opened, store, small, data):
    filled(opened, store)
    mount = small()

    store.before = refusing(StoreFull, "put")
    file = mount.edit("array.bin")
    write(file, data)
    with pytest.raises(StoreFull):
        file.fsync()
    assert mount.read("array.bin", 1 << 20) == data
    store.before = lambda request: None
    file.fsync()
    assert opened(WriteStore(store.objects)).read("array.bin") == data


@pytest.mark.parametrize("case", IN_A_FILE[:2], indirect=True)
def test_a_full_disk_costs_time_alone(opened, store, small, data, monkeypatch):
    filled(opened, store)
    mount = small()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    file = mount.edit("array.bin")
    write(file, data)
    file.close()
    assert opened(WriteStore(store.objects)).read("array.bin") == data


def test_the_file_has_no_name_and_its_space_comes_back(tmp_path):
    staging = ScratchBuffers(str(tmp_path))
    assert staging.reserve()
    memory = staging.make(1 << 20)
    assert not memory.any()
    memory[:] = 7
    assert not list(tmp_path.iterdir())
    assert staging.reserve()
    other = staging.make(1 << 20)
    part = memory[10:20]
    del memory
    assert not staging.reserve()
    assert (part == 7).all()
    del part
    assert staging.reserve()
    del other
    assert staging.reserve()


def test_there_is_none_without_a_directory():
    assert ScratchBuffers(None).largest == 0
    assert ScratchBuffers("/nowhere/at/all").largest == 0
