"""A store that fails: whoever wrote is told, and nothing is lost."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fs.documents import GZIP, LITTLE, array_document, sharding
from tests.fs.write_store import Request, WriteStore
from tests.waiting import wait_until
from zarrfs.cache.write import write_back
from zarrfs.cache.write.due_objects import DueObjects
from zarrfs.cache.write.flusher import Flusher
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.errors import (
    BadHandle,
    BudgetExceeded,
    ChunkError,
    InvalidElement,
    NotPermitted,
    StoreAccessDenied,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreTimeout,
)
from zarrfs.format.codecs.members import BoundStream
from zarrfs.threads import ThreadPool

pytestmark = pytest.mark.timeout(60)

FAILURES = [StoreFull, StoreAccessDenied, StoreTimeout, StoreError]


class Failing:
    """Makes some requests of a store fail.

    errors : by key, or by "" for all.
    """

    def __init__(self, store: WriteStore) -> None:
        self.errors: dict[str, type[StoreError]] = {}
        self.operations = {"put", "delete"}
        self.failed = 0
        store.before = self

    def __call__(self, request: Request) -> None:
        error = self.errors.get(request.key) or self.errors.get("")
        if error is not None and request.operation in self.operations:
            self.failed += 1
            raise error(request.key, "by this test")


@pytest.fixture(params=["chunks", "shards"])
def store(request):
    codecs = {} if request.param == "chunks" else {"codecs": [sharding((2,))]}
    return WriteStore({"zarr.json": array_document((16,), (4,), **codecs)})


def room_for(mount, chunks):
    """Memory for the changes of so many chunks."""
    mount.write_back.budget.total = mount.write_back.budget.most = (
        chunks * mount.array().largest_change
    )


@pytest.mark.parametrize("failure", FAILURES)
def test_fsync_tells_and_a_later_one_succeeds(opened, store, failure):
    failing = Failing(store)
    mount = opened(store)
    file = mount.edit("array.bin")
    data = np.arange(100, 116, dtype="<i2").tobytes()
    file.write(0, data[:-3])
    failing.errors[""] = failure
    for _ in range(3):
        with pytest.raises(failure):
            file.fsync()
        assert file.read(0, 29) == data[:29]
        assert mount.write_back.dirty_bytes
    with pytest.raises(failure):
        file.flush()
    with pytest.raises(failure):
        file.flush()
    failing.errors.clear()
    file.write(29, data[29:])
    file.fsync()
    assert not mount.write_back.dirty_bytes
    assert not mount.write_back.budget.used
    other = opened(WriteStore(store.objects))
    assert other.read("array.bin") == data


def test_a_store_that_does_not_answer_is_not_waited_for_once_an_object(opened):
    store = WriteStore({"zarr.json": array_document((400,), (4,))})
    failing = Failing(store)
    mount = opened(store)
    failing.errors[""] = StoreTimeout
    file = mount.edit("array.bin")
    for i in range(100):
        file.write(8 * i, b"\1")
    with pytest.raises(StoreTimeout):
        file.fsync()
    assert failing.failed <= 4


def test_a_failure_nobody_waited_for_is_told_at_close(opened, store):
    failing = Failing(store)
    failing.errors[""] = StoreFull
    mount = opened(store, flush_delay=0.02)
    file = mount.edit("array.bin")
    file.write(0, bytes(32))
    file.write(0, b"\1")
    wait_until(lambda: failing.failed >= 6)
    assert any(key == "c/0" and "tried again" in why for key, why in mount.errors())
    with pytest.raises(StoreFull):
        file.flush()
    file.release()
    assert mount.read("array.bin") == b"\1" + bytes(31)
    failing.errors.clear()
    wait_until(lambda: not mount.write_back.dirty_bytes)
    assert opened(WriteStore(store.objects)).read("array.bin") == b"\1" + bytes(31)


def test_a_handle_that_is_closed_or_not_for_writing_writes_nothing(opened, store):
    mount = opened(store)
    file = mount.edit("array.bin")
    file.close()
    with pytest.raises(BadHandle):
        file.write(0, b"\1")
    with pytest.raises(BadHandle):
        file.fsync()
    # The kernel may flush a file that it has released, as the daemon sees it.
    file.flush()
    reader = mount.open("array.bin")
    with pytest.raises(BadHandle):
        mount.loop.run(mount.fs.write, reader.opened.handle, 0, b"\1")
    reader.close()
    assert not mount.write_back.dirty_bytes


def test_what_was_released_without_fsync_is_stored_at_the_end(opened, store):
    """Parts of elements too, whose rest nobody has written."""
    mount = opened(store)
    file = mount.edit("chunks/1")
    file.write(1, b"\1\2\3")
    file.release()
    content = mount.read("array.bin")
    assert mount.fs.drain() == []
    assert opened(WriteStore(store.objects)).read("array.bin") == content
    assert b"\1\2\3" in content


# --- memory for changes is short --------------------------------------------------


def test_a_writer_that_needs_memory_is_told_why_there_is_none(opened, store):
    failing = Failing(store)
    mount = opened(store)
    room_for(mount, 1)
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    failing.errors[""] = StoreFull
    with pytest.raises(StoreFull):
        file.write(16, b"\2")
    assert file.read(0, 1) == b"\1"
    failing.errors.clear()
    file.write(16, b"\2")
    assert file.read(0, 1) == b"\1"
    file.close()
    content = opened(WriteStore(store.objects)).read("array.bin")
    assert (content[0], content[16]) == (1, 2)


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_damaged_chunk_does_not_stand_in_the_way(opened, chunks):
    store = WriteStore({"zarr.json": array_document((64,), (4,)), "c/0": b"short"})
    mount = opened(store)
    room_for(mount, chunks)
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    if chunks == 1:
        with pytest.raises(ChunkError, match="c/0"):
            file.write(8, b"\1")
        return
    for i in range(1, 16):
        file.write(8 * i, b"\1")
    with pytest.raises(ChunkError, match="c/0"):
        file.fsync()
    assert set(store.counted("put")) == {f"c/{i}" for i in range(1, 16)}
    # Whoever writes all of it, or removes it, gets it stored.
    file.write(0, bytes(8))
    file.close()
    assert store.objects["c/0"] == bytes(8)


def test_a_damaged_chunk_can_be_removed(opened, store):
    store.replace("c/0", b"damaged")
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    with pytest.raises(ChunkError):
        file.fsync()
    mount.unlink("chunks/0" if "shards" not in mount.ls() else "shards/0")
    file.fsync()
    assert "c/0" not in store.objects


def test_a_chunk_for_whose_changes_there_is_never_memory(opened, store):
    mount = opened(store)
    mount.write_back.budget.total = mount.write_back.budget.most = 3
    file = mount.edit("array.bin")
    with pytest.raises(BudgetExceeded, match="memory="):
        file.write(0, b"\1")
    assert mount.write_back.budget.used == 0


def test_a_change_that_fails_keeps_no_memory(opened, store, monkeypatch):
    mount = opened(store)
    file = mount.edit("array.bin")

    def fail(*_) -> bool:
        raise MemoryError

    (place,) = mount.tree.nodes.all()
    array, byte = place.node.array, np.ones(1, np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(TileChanges, "write", fail)
        with pytest.raises(MemoryError):
            array.write((0,), (slice(0, 1),), byte, byte.dtype, wait=True)
    assert mount.write_back.budget.used == 0
    file.write(5, b"\1")
    file.fsync()
    assert mount.read("array.bin")[5] == 1


def test_writers_wait_for_a_slow_store_and_none_is_lost(loop, opened, store):
    """Many at once, with room for two chunks."""
    store.before = lambda request: (
        time.sleep(0.003) if request.operation in ("put", "get") else None
    )
    mount = opened(store)
    room_for(mount, 2)
    files = [mount.edit("array.bin") for _ in range(8)]

    def write(number):
        for i in range(number, 32, 8):
            files[number].write(i, bytes([i]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    files[0].fsync()
    # Each of the two chunks may be copied to be changed while it is stored.
    copied = 2 * 4 * 2
    assert mount.write_back.budget.highest <= mount.write_back.budget.total + copied
    assert not mount.write_back.budget.used
    assert opened(WriteStore(store.objects)).read("array.bin") == bytes(range(32))


def test_waiting_for_memory_does_not_spin(opened, store, monkeypatch):
    """Each writer looks once what it could store, and then waits for memory."""
    monkeypatch.setattr(write_back, "_LOOK_AGAIN", 30.0)
    mount = opened(store)
    room_for(mount, 1)
    going_on = threading.Event()
    begun = threading.Event()

    def wait(request: Request) -> None:
        if request.operation == "put":
            begun.set()
            assert going_on.wait(20)

    file = mount.edit("array.bin")
    file.write(0, bytes(7))
    store.before = wait
    threads = [
        threading.Thread(target=action, daemon=True)
        for action in (file.fsync, lambda: file.write(16, b"\1"), lambda: file.write(24, b"\1"))
    ]
    threads[0].start()
    assert begun.wait(20)
    asked: list[float] = []
    waiting: list[float] = []
    budget = mount.write_back.budget
    attempt = budget.attempt

    def noted(take, wait=0.0):
        asked.append(wait)
        if not wait:
            return attempt(take)
        waiting.append(wait)
        try:
            return attempt(take, wait)
        finally:
            waiting.pop()

    monkeypatch.setattr(budget, "attempt", noted)
    threads[1].start()
    threads[2].start()
    wait_until(lambda: waiting == [30.0] * 2)
    for _ in range(100):
        mount.stat("array.bin")
    assert len(asked) <= 12
    going_on.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_no_clock_spins_without_delay(opened, store, monkeypatch):
    pauses: list[float] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if threading.current_thread().name == "write-back":
                assert timeout is not None
                pauses.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(write_back, "Event", Noted)
    mount = opened(store, flush_delay=0.0)
    wait_until(lambda: len(pauses) >= 3)
    mount.edit("array.bin").write(0, b"\1")
    wait_until(lambda: not mount.write_back.dirty_bytes)
    assert min(pauses) >= 0.01


def test_a_store_that_hangs_does_not_pile_up_work(opened, monkeypatch):
    """What is waiting to be stored is asked for once, however often the clock ticks."""
    store = WriteStore({"zarr.json": array_document((400,), (4,))})
    going_on = threading.Event()
    store.before = lambda request: request.operation != "put" or bool(going_on.wait(20))
    ticks: list[float] = []
    flush_older = Flusher.flush_older
    monkeypatch.setattr(
        Flusher, "flush_older", lambda self, limit: (flush_older(self, limit), ticks.append(limit))
    )
    submitted: list[object] = []
    add = DueObjects.add
    monkeypatch.setattr(
        DueObjects, "add", lambda self, due: (submitted.extend(due), add(self, due))
    )
    mount = opened(store, flush_delay=0.02)
    file = mount.edit("array.bin")
    for i in range(100):
        file.write(8 * i, b"\1")
    written = len(ticks)
    wait_until(lambda: len(ticks) > written + 20)
    assert 0 < len(submitted) <= 100
    going_on.set()
    file.close()
    assert not mount.write_back.dirty_bytes


def test_without_threads_fsync_stores_and_the_clock_goes_on(opened, store, monkeypatch):
    mount = opened(store, flush_delay=0.02)
    file = mount.edit("array.bin")
    with monkeypatch.context() as patch:
        patch.setattr(ThreadPool, "_start", lambda _: False)
        file.write(0, b"\1" * 32)
        file.fsync()
        assert not mount.write_back.dirty_bytes
        file.write(0, b"\2" * 32)
        time.sleep(0.1)
        assert mount.write_back.dirty_bytes
    wait_until(lambda: not mount.write_back.dirty_bytes)
    file.close()
    assert mount.read("array.bin") == b"\2" * 32


# --- conflicts --------------------------------------------------------------------


def test_conflicts_without_end_are_told(opened, store):
    failing = Failing(store)
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1")
    failing.errors[""] = StoreConflict
    with pytest.raises(StoreConflict):
        file.fsync()
    failing.errors.clear()
    file.close()
    assert not mount.write_back.dirty_bytes


def test_what_was_stored_once_does_not_undo_what_others_stored_since(opened, store):
    """A chunk that is written to while it is stored stays dirty: only what is new in it."""
    mount, other = opened(store), opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1")

    def write_more(request: Request) -> None:
        if request.operation == "put":
            store.after = lambda _request: None
            mount.array().write((0,), (slice(1, 2),), np.array([5], "<u2"), np.dtype("<u2"), True)

    store.after = write_more
    mount.array().flush()
    assert mount.write_back.dirty_bytes
    other.write("array.bin", 0, b"\2")
    file.fsync()
    content = opened(WriteStore(store.objects)).read("array.bin")
    assert (content[0], content[2]) == (2, 5)


# --- what may not be written ------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("bool", b"\0\1", b"\2\xff"),
        ("int4", b"\x07\xf8", b"\x08\x7f"),
        ("int2", b"\1\xfe", b"\2\x04"),
        ("uint4", b"\x0f\0", b"\x10\xff"),
        ("float4_e2m1fn", b"\x0f\0", b"\x10\xff"),
        ("complex_float4_e2m1fn", b"\x0f\0", b"\x10\xff"),
    ],
)
def test_bytes_that_are_no_element_are_refused(opened, dtype, good, bad):
    fill = False if dtype == "bool" else [0, 0] if dtype[0] == "c" else 0
    if "float" in dtype:
        fill = [0.0, 0.0] if dtype[0] == "c" else 0.0
    document = array_document((8,), (4,), data_type=dtype, fill_value=fill)
    store = WriteStore({"zarr.json": document})
    mount = opened(store)
    file = mount.edit("array.bin")
    for byte in bad:
        for data, offset in (bytes([byte]), 0), (good + bytes([byte]), 1):
            with pytest.raises(InvalidElement):
                file.write(offset, data)
    file.write(1, good)
    file.close()
    expected = b"\0" + good
    assert mount.read("array.bin")[:3] == expected
    assert opened(WriteStore(store.objects)).read("array.bin")[:3] == expected


def test_the_header_of_npy_may_only_be_written_as_it_is(opened, store):
    mount = opened(store)
    whole = mount.read("array.npy")
    file = mount.edit("array.npy")
    file.write(0, whole[:-2] + b"\5\5")
    file.write(3, whole[3:10])
    with pytest.raises(NotPermitted):
        file.write(0, b"X" + whole[1:])
    assert file.read(0, 1000) == whole[:-2] + b"\5\5"
    # It may have been a page of a mapping, with elements that are missing now.
    with pytest.raises(NotPermitted):
        file.fsync()
    file.write(0, whole[:-2] + b"\5\5")
    file.close()


def test_with_missing_chunks_as_errors_fill_is_stored(opened, store):
    mount = opened(store, fill_missing=False)
    mount.write("chunks/0", 0, b"\7\0" * (mount.stat("chunks/0").size // 2))
    other = opened(WriteStore(store.objects), fill_missing=False)
    assert other.read("chunks/0")[:2] == b"\7\0"


def test_a_missing_chunk_that_is_an_error_can_be_written_in_part(opened, store):
    mount = opened(store, fill_missing=False)
    with pytest.raises(ChunkError):
        mount.read("chunks/0")
    mount.write("chunks/0", 0, b"\1\0")
    assert mount.read("chunks/0")[:4] == b"\1\0\7\0"


@pytest.mark.parametrize("together", [True, False], ids=["one write each", "two writes each"])
def test_more_elements_are_new_in_part_than_are_kept(opened, together):
    """Those before are stored, which brings the rest of each element from the store."""
    old = np.arange(256, 256 + 128, dtype="<i4")
    document = array_document((128,), (128,), data_type="int32")
    store = WriteStore({"zarr.json": document, "c/0": old.tobytes()})
    mount = opened(store)
    file = mount.edit("array.bin")
    for number in range(128):
        if together:
            file.write(4 * number + 1, b"\7\7")
        else:
            file.write(4 * number + 2, b"\7")
            file.write(4 * number + 1, b"\7")
    new = (old & 0xFF | 0x070700).tobytes()
    assert mount.read("array.bin") == new
    file.close()
    assert store.objects["c/0"] == new
    assert 2 <= store.counted("put")["c/0"] <= 3


def test_parts_of_elements_go_through_the_journal(opened, store, tmp_path):
    """They are merged with what is stored by then."""
    failing = Failing(store)
    mount = opened(store, journal=str(tmp_path / "journal"))
    file = mount.edit("array.bin")
    file.write(3, b"\1\2\3")
    failing.errors[""] = StoreFull
    assert len(mount.fs.drain()) >= 2
    failing.errors.clear()
    opened(store, journal=str(tmp_path / "journal"))
    content = opened(WriteStore(store.objects)).read("array.bin")
    assert content[:8] == b"\7\0\7\1\2\3\7\0"
    assert not (tmp_path / "journal").exists()


class PanicException(BaseException):
    """The name that panics of packages written in Rust have; they are no `Exception`."""


def panic(*_arguments):
    raise PanicException("by this test")


@pytest.mark.parametrize(
    "codecs", [[LITTLE, GZIP], [sharding((2,), codecs=[LITTLE, GZIP])]], ids=["chunks", "shards"]
)
def test_a_panic_of_a_codec_is_an_error_of_its_chunk(opened, codecs, monkeypatch):
    store = WriteStore({"zarr.json": array_document((16,), (4,), codecs=codecs)})
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1\0")
    with monkeypatch.context() as patched:
        patched.setattr(BoundStream, "encode", panic)
        for _ in range(2):
            with pytest.raises(ChunkError, match="by this test"):
                file.fsync()
        assert file.read(0, 2) == b"\1\0"
    file.fsync()
    other = opened(WriteStore(store.objects)).open("array.bin")
    with monkeypatch.context() as patched:
        patched.setattr(BoundStream, "decode", panic)
        for _ in range(2):
            with pytest.raises(ChunkError, match="by this test"):
                other.read(0, 8)
        assert other.read(8, 8) == b"\7\0" * 4
    assert other.read(0, 8) == b"\1\0" + b"\7\0" * 3
