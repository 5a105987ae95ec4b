"""What is written while something else goes on is neither lost nor hidden, nor undoes anything."""

import threading

import numpy as np
import pytest

from tests.fs.documents import array_document, sharding
from tests.fs.write_store import Request, WriteStore, refusing
from tests.waiting import wait_until
from zarrfs.cache.write.gather_memory import GatherMemory
from zarrfs.cache.write.journal.journal import Journal
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.errors import StoreFull

pytestmark = pytest.mark.timeout(60)

SHAPE = (64, 64)
CHUNK = (32, 32)
KINDS = {
    "chunks": array_document(SHAPE, CHUNK),
    "shards": array_document(SHAPE, (64, 32), codecs=[sharding(CHUNK)]),
    "tiles": array_document(SHAPE, (64, 32), codecs=[sharding((2, 2))]),
}


@pytest.fixture(params=KINDS)
def store(request):
    return WriteStore({"zarr.json": KINDS[request.param]})


def filled(opened, store):
    """A mount of an array in which everything is stored; and what."""
    data = np.arange(64 * 64, dtype="<i2").reshape(SHAPE) + 100
    opened(store).write("array.bin", 0, data.tobytes())
    return opened(store), data


# --- small changes of large chunks ------------------------------------------------


def test_a_small_change_that_cannot_be_stored_is_kept_in_the_journal(opened, store, tmp_path):
    mount, _ = filled(opened, store)

    store.before = refusing(StoreFull, "put")
    mount.edit("array.bin").write(4, b"\1\2\3\4")
    assert mount.fs.drain()
    journal = Journal(str(tmp_path))
    kept = mount.write_back.keep(journal)
    assert len(kept.files) == 1
    (entry,) = journal.entries()
    change = entry.load()
    assert change.new.sum() == 2
    assert change.units[change.new].tobytes() == b"\1\2\3\4"


def test_a_small_change_is_seen_in_every_file_at_once(opened, store):
    mount, data = filled(opened, store)
    shape = mount.array().array.layout.read.largest_chunk
    mount.read("array.bin")
    mount.read("chunks/0/0")
    file = mount.edit("array.bin")
    file.write(4, b"\1\2\3\4")
    data.reshape(-1)[2:4] = 0x0201, 0x0403
    assert mount.read("array.bin", 64) == data.tobytes()
    assert mount.read("array.bin") == data.tobytes()
    for request in (16, 1 << 20):
        found = mount.read("chunks/0/0", request)
        assert found == data[: shape[0], : shape[1]].tobytes()
        column = 0 if shape[1] > 2 else 1
        found = mount.read(f"chunks/0/{column}", request)
        start = column * shape[1]
        assert found == data[: shape[0], start : start + shape[1]].tobytes()


@pytest.mark.parametrize("size", [4, 2048], ids=["small", "large"])
def test_what_is_changed_while_its_chunk_is_stored_is_stored_next(opened, store, size):
    mount, data = filled(opened, store)
    file, other = mount.edit("array.bin"), mount.edit("array.bin")
    seen: list[Request] = []

    def change(request: Request) -> None:
        if request.operation == "put" and not seen:
            seen.append(request)
            array = mount.array()
            value = np.full((1, 1), 0x0605, "<u2")
            assert array.write((0, 0), (slice(1, 2), slice(0, 1)), value, value.dtype, True)

    store.before = change
    file.write(0, b"\1" * size)
    data.reshape(-1)[: size // 2] = 0x0101
    file.fsync()
    assert seen
    data[1, 0] = 0x0605
    assert mount.read("array.bin") == data.tobytes()
    other.fsync()
    assert not mount.write_back.dirty_bytes
    assert opened(WriteStore(store.objects)).read("array.bin") == data.tobytes()


# --- others beside us ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chunks", "shards"])
def test_a_chunk_that_becomes_fill_value_is_not_deleted_over_what_others_store(opened, kind):
    """Deleting is as conditional as storing."""
    codecs = {"codecs": [sharding((4,))]} if kind == "shards" else {}
    document = array_document((4,), (4,), **codecs)
    store, elsewhere = (WriteStore({"zarr.json": document}) for _ in range(2))
    opened(store).write("array.bin", 0, np.array([7, 7, 7, 5], "<i2").tobytes())
    opened(elsewhere).write("array.bin", 0, np.array([1, 7, 7, 5], "<i2").tobytes())
    mount = opened(store)
    deleted: list[Request] = []

    def replace(request: Request) -> None:
        if request.operation == "delete" and not deleted:
            deleted.append(request)
            store.replace("c/0", elsewhere.objects["c/0"])

    store.before = replace
    mount.write("array.bin", 6, np.array([7], "<i2").tobytes())
    assert deleted
    found = opened(WriteStore(store.objects)).read("array.bin")
    assert np.frombuffer(found, "<i2").tolist() == [1, 7, 7, 7]


# --- what nobody foresaw --------------------------------------------------------------


# --- what is gathered -------------------------------------------------------------------


@pytest.fixture
def gathering(opened, gathers_at_once):
    """A mount in whose ``array.bin`` the first rows are gathered, and its file."""

    def begin(**config):
        mount = opened(WriteStore({"zarr.json": KINDS["chunks"]}), **config)
        file = mount.edit("array.bin")
        for row in range(4):
            file.write(128 * row, bytes([row + 1]) * 128)
        assert mount.array().gathering.pending
        return mount, file

    return begin


def rows(count: int) -> bytes:
    return b"".join(bytes([row + 1]) * 128 for row in range(count))


def test_what_is_gathered_is_stored_after_the_delay(gathering):
    mount, _ = gathering(flush_delay=0.02)
    wait_until(lambda: not mount.write_back.dirty_bytes)
    assert mount.read("array.bin")[:512] == rows(4)


def test_every_gathered_write_is_noticed(gathering):
    """Slabs that readers have hold for one state."""
    mount, file = gathering()
    array = mount.array()
    states = {array.state}
    for row in range(4, 8):
        file.write(128 * row, bytes([row + 1]) * 128)
        states.add(array.state)
    assert array.gathering.pending
    assert len(states) == 5


def test_a_change_is_told_when_it_can_be_seen_and_not_before(opened, store, monkeypatch):
    mount, _ = filled(opened, store)
    array = mount.array()
    before = array.state
    seen: list[tuple[int, ...]] = []
    write = TileChanges.write

    def note(self, *args) -> None:
        seen.append(array.state)
        write(self, *args)

    monkeypatch.setattr(TileChanges, "write", note)
    mount.edit("array.bin").write(0, b"\1\1")
    assert seen == [before]
    assert array.state != before


def test_what_is_gathered_is_there_until_the_last_chunk_has_it(gathering, monkeypatch):
    mount, file = gathering()
    array = mount.array()
    pending: list[bool] = []
    write = TileChanges.write_boxes

    def note(self, *args) -> None:
        write(self, *args)
        pending.append(array.gathering.pending)

    monkeypatch.setattr(TileChanges, "write_boxes", note)
    file.fsync()
    assert pending == [True, True]
    assert not array.gathering.pending


def test_what_others_gather_while_one_waits_for_memory_is_not_lost(gathering, monkeypatch):
    mount, file = gathering()
    array = mount.array()
    other = mount.edit("array.bin")
    lend = GatherMemory.lend_for_whole
    waited: list[bool] = []

    def lend_late(self, *args, **keywords):
        memory = lend(self, *args, **keywords)
        if not waited:
            # Meanwhile another one comes first.
            waited.append(True)
            view = mount.tree.find(mount.stat("array.bin").inode).node._flat
            assert view._sequential.write(32 * 128, rows(2), wait=True) == 256
            assert array.gathering.pending
        return memory

    monkeypatch.setattr(GatherMemory, "lend_for_whole", lend_late)
    view = mount.tree.find(mount.stat("array.bin").inode).node._flat
    assert view._sequential.write(40 * 128, rows(1), wait=True) == 128
    assert waited
    found = mount.read("array.bin")
    assert found[32 * 128 :][:256] == rows(2)
    assert found[40 * 128 :][:128] == rows(1)
    assert found[:512] == rows(4)
    other.close()
    file.close()


def test_the_event_loop_waits_for_nobody_who_copies(gathering):
    """Whoever holds the lock of what is gathered, or of a chunk, may take long."""
    mount, _ = gathering()
    array = mount.array()
    answers: list[object] = []

    def loop() -> None:
        value = np.zeros((1, 1), "<u2")
        where = (slice(0, 1), slice(0, 1))
        answers.append(array.get((0, 0)))
        answers.append(array.get_all([(0, 0)]))
        answers.append(array.write((0, 0), where, value, value.dtype, False))
        data = memoryview(b"\1" * 128)
        answers.append(array.gathering.append(None, 512, data, wait=False))

    def asked() -> list[object]:
        answers.clear()
        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        return list(answers)

    with array.gathering._lock:
        assert asked() == [None, None, False, 0]
    array.gathering.scatter()
    with array._dirty.find((0, 0)).lock:
        assert asked() == [None, None, False, 0]
