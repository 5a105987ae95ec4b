"""What stores changes: nothing is taken for stored that is not, and nothing waits for ever."""

import contextlib
import itertools
import threading

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.write_store import Request, WriteStore
from zarrfs.cache.write.dirty_objects import DirtyObjects
from zarrfs.cache.write.flusher import Flusher
from zarrfs.errors import ChunkError

pytestmark = pytest.mark.timeout(60)

ROW = 16 * 8 * 2


@pytest.fixture(params=["chunks", "shards"])
def store(request):
    codecs = {} if request.param == "chunks" else {"codecs": [sharding((2,))]}
    return WriteStore({"zarr.json": array_document((16,), (4,), **codecs)})


def stored(opened, store: WriteStore) -> bytes:
    return opened(WriteStore(store.objects)).read("array.bin")


def test_a_bug_beside_storing_fails_fsync(opened, store, monkeypatch):
    """It is no success either."""
    mount = opened(store)
    monkeypatch.setattr(Flusher, "_share", lambda self, count: count)
    file = mount.edit("array.bin")
    for i in range(4):
        file.write(8 * i, b"\1\2")

    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(DirtyObjects, "begin", bug)
        with pytest.raises(ChunkError, match="ZeroDivisionError"):
            file.fsync()
    assert mount.write_back.dirty_bytes
    file.fsync()
    assert stored(opened, store)[:2] == b"\1\2"


@pytest.mark.parametrize("operation", ["put", "get"])
@pytest.mark.parametrize("count", [1, 4], ids=["one object", "several"])
def test_a_bug_while_storing_fails_fsync_and_loses_nothing(opened, store, operation, count):
    """An exception that nobody expects is no success."""
    mount = opened(store)
    before = stored(opened, store)
    file = mount.edit("array.bin")
    for i in range(count):
        file.write(8 * i, b"\1\2")

    def bug(request: Request) -> None:
        # A chunk that is not there need not be read, but is asked for.
        if request.key.startswith("c/") and (request.operation == "put") == (operation == "put"):
            raise ZeroDivisionError("a bug")

    store.before = bug
    for _ in range(2):
        with pytest.raises(ChunkError, match=r"c/.* failed: it is damaged"):
            file.fsync()
    with pytest.raises(ChunkError, match=r"c/.* failed: it is damaged"):
        file.flush()
    assert mount.write_back.dirty_bytes
    assert stored(opened, store) == before
    store.before = lambda _request: None
    file.fsync()
    assert not mount.write_back.dirty_bytes
    new = bytearray(before)
    for i in range(count):
        new[8 * i : 8 * i + 2] = b"\1\2"
    assert stored(opened, store) == new


def test_a_conflict_is_settled_by_what_is_stored_now(opened):
    """And not by what was known of the shard before it."""
    codecs = [sharding((2,))]
    store = WriteStore({"zarr.json": array_document((16,), (8,), codecs=codecs)})
    first = opened(store)
    first.write("array.bin", 0, bytes(range(1, 17)))
    mount = opened(store)
    # The index of the shard is known.
    assert mount.read("array.bin", 64)[:16] == bytes(range(1, 17))
    file = mount.edit("array.bin")
    file.write(0, b"\x77")
    once = threading.Semaphore(1)

    def interfere(request: Request) -> None:
        if request.operation == "put" and once.acquire(blocking=False):
            # Longer inner chunks, and others.
            first.array().write(
                (0,), (slice(4, 5),), np.array([0x6655], "<u2"), np.dtype("<u2"), True
            )
            first.array().flush()

    store.before = interfere
    mount.array().flush()
    store.before = lambda _request: None
    data = bytearray(range(1, 17))
    data[0] = 0x77
    data[8:10] = b"\x55\x66"
    assert stored(opened, store)[:16] == data
    file.close()


def test_conflicts_of_objects_that_are_stored_together_are_settled(opened, store):
    """Each is stored once more, and fsync succeeds."""
    mount = opened(store)
    before = bytearray(stored(opened, store))
    file = mount.edit("array.bin")
    for i in range(4):
        file.write(8 * i, b"\1\2")
        before[8 * i : 8 * i + 2] = b"\1\2"
    other = opened(WriteStore(store.objects))
    other.write("array.bin", 4, b"\3\4")
    other.write("array.bin", 20, b"\5\6")
    before[4:6], before[20:22] = b"\3\4", b"\5\6"
    theirs = dict(other.store.objects)

    def interfere(request: Request) -> None:
        if request.operation == "put" and request.key in theirs:
            store.replace(request.key, theirs.pop(request.key))

    store.before = interfere
    file.fsync()
    assert stored(opened, store) == before


def test_what_memory_has_no_room_for_is_stored_next(opened, monkeypatch):
    """Of several shards that are stored together, too."""
    # Inner chunks of 4 KiB, the smallest whose changes have memory of their own.
    document = array_document((32 << 10,), (8 << 10,), codecs=[sharding((2 << 10,))])
    store = WriteStore({"zarr.json": document})
    mount = opened(store)
    monkeypatch.setattr(Flusher, "_share", lambda self, count: count)
    monkeypatch.setattr(mount.array()._flusher, "_room", 0)
    new = bytearray(stored(opened, store))
    file = mount.edit("array.bin")
    for start in range(0, 64 << 10, 4 << 10):
        file.write(start, b"\1\2")
        new[start : start + 2] = b"\1\2"
    file.fsync()
    assert not mount.write_back.dirty_bytes
    assert set(store.counted("put").values()) == {4}
    assert stored(opened, store) == new


@pytest.mark.parametrize("written", [1, 2, 16], ids=["element", "inner chunk", "shard"])
def test_a_shard_that_is_stored_has_memory_for_its_copies_and_its_bytes(opened, written):
    """Twice as much where it keeps older elements, which are read first."""
    store = WriteStore({"zarr.json": array_document((64,), (16,), codecs=[sharding((2,))])})
    mount = opened(store)
    mount.write("array.bin", 0, bytes(64 * 2))
    used: list[int] = []

    def note(request: Request) -> None:
        if request.operation == "put":
            used.append(mount.write_back._storing.used)

    store.before = note
    file = mount.edit("array.bin")
    file.write(0, b"\1\0" * written)
    needed = mount.write_back.dirty_bytes + 16 * 2
    file.fsync()
    assert len(used) == 1
    assert used[0] >= (needed if written == 16 else 2 * needed)
    assert mount.write_back._storing.used == 0


def test_large_shards_that_are_new_as_a_whole_are_stored_beside_each_other(opened):
    """One is encoded while the other one waits for the disk."""
    length = 6 << 20
    codecs = [sharding((64 << 10,))]
    store = WriteStore({"zarr.json": array_document((2 * length,), (length,), codecs=codecs)})
    # There is memory to store 32 MiB, and a shard has 12 MiB.
    mount = opened(store, memory=256 << 20)
    both = threading.Barrier(2)

    def meet(request: Request) -> None:
        if request.operation == "put":
            both.wait(timeout=20)

    store.before = meet
    data = np.arange(2 * length, dtype="<i2").tobytes()
    mount.write("array.bin", 0, data)
    assert stored(opened, store) == data


def test_a_flush_stores_what_no_thread_stores_yet_first(opened):
    """A thread that waited for an object in storage would be missing for the other object."""
    store = WriteStore({"zarr.json": array_document((200,), (100,))})
    mount = opened(store)
    begun, other = threading.Event(), threading.Event()
    came: list[bool] = []

    def meet(request: Request) -> None:
        if request.operation == "put":
            if request.key == "c/1":
                other.set()
            else:
                begun.set()
                came.append(other.wait(timeout=20))

    store.before = meet
    data = np.arange(150, dtype="<i2").tobytes()
    file = mount.edit("array.bin")
    file.write(0, data[:200])
    assert begun.wait(20)
    # Only part of the second chunk is new, so it waits for the flush.
    file.write(200, data[200:])
    file.flush()
    assert came == [True]
    assert stored(opened, store)[:300] == data


@pytest.mark.parametrize("fails", [False, True], ids=["stored", "fails"])
def test_memory_that_only_storing_still_needs_is_charged(opened, fails):
    """A change meanwhile copies the chunk, and both count until it is stored."""
    size = 64 << 10
    codecs = [sharding((size // 2,))]
    store = WriteStore({"zarr.json": array_document((size // 2,), (size // 2,), codecs=codecs)})
    mount = opened(store)
    file = mount.edit("array.bin")
    used: list[int] = []

    def change(request: Request) -> None:
        if request.operation == "put" and not used:
            for value in 1, 2:
                used.append(mount.write_back.budget.used)
                where, new = (slice(4, 5),), np.array([value], "<i2")
                mount.array().write((0,), where, new, np.dtype("<i2"), True)
            used.append(mount.write_back.budget.used)
            if fails:
                raise ZeroDivisionError("a bug")

    store.before = change
    file.write(0, b"\5\0" * (size // 2))
    with contextlib.suppress(ChunkError):
        file.fsync()
    assert [after - before for before, after in itertools.pairwise(used)] == [size, 0]
    file.fsync()
    assert mount.write_back.budget.used == 0
    data = bytearray(b"\5\0" * (size // 2))
    data[8] = 2
    assert stored(opened, store) == data


def test_elements_from_a_journal_wait_for_memory(opened):
    """They are not left out where other changes take all of it."""
    store = WriteStore({"zarr.json": array_document((2000,), (1000,), codecs=[LITTLE])})
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1\2" * 900)
    budget = mount.write_back.budget
    taken = budget.total - budget.used
    assert budget.try_reserve(taken)
    new = np.arange(1000, dtype="<u2")
    mount.array().adopt((1,), new, new % 2 == 1)
    assert store.counted("put") == {"c/0": 1}
    budget.release(taken)
    file.close()
    data = np.frombuffer(stored(opened, store), "<u2")[1000:]
    assert (data[1::2] == new[1::2]).all()
