"""What every store that can be written to does, whatever is behind it."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from zarrfs.errors import StoreConflict, StoreError, StoreReadOnly
from zarrfs.store.base import ANY, ByteRange, Put

DATA = bytes(range(256)) * 20

pytestmark = pytest.mark.timeout(60)


def read(store, key: str) -> bytes | None:
    blob = store.get(key, limit=1 << 30)
    return None if blob is None else bytes(blob.data)


@pytest.fixture
def store(writable):
    return writable.store


def test_what_was_put_is_read(store):
    assert store.read_only is None
    info = store.put("c/0/1", [DATA], expected=None)
    assert (info.size, info.generation) == (len(DATA), store.info("c/0/1").generation)
    blob = store.get("c/0/1", limit=len(DATA))
    assert (bytes(blob.data), blob.info.generation) == (DATA, info.generation)
    assert info.mtime_ns is not None
    assert list(store.list_dir("")) == ["c/"]
    assert list(store.list_dir("c/0")) == ["1"]


def test_parts_of_any_kind_and_number_are_joined(writable):
    array = memoryview(bytearray(DATA)).cast("B", (16, len(DATA) // 16))
    numbers = memoryview(bytearray(DATA)).cast("q")
    parts = [b"", b"a", bytearray(b"bc"), memoryview(DATA)[5:9], array, numbers, memoryview(b"")]
    writable.store.put("x", parts, expected=ANY)
    assert read(writable.store, "x") == b"abc" + DATA[5:9] + DATA + DATA
    many = [DATA[i : i + 1 + i % 3] for i in range(5000)]
    assert len(many) > os.sysconf("SC_IOV_MAX")
    writable.store.put("x", many, expected=ANY)
    assert read(writable.store, "x") == b"".join(many)


@pytest.mark.parametrize("parts", [[], [b""], [memoryview(b""), b""]])
def test_an_empty_object_can_be_put(writable, parts):
    info = writable.store.put("x", parts, expected=None)
    assert info.size == 0
    assert writable.store.info("x").generation == info.generation
    assert read(writable.store, "x") == b""


def test_a_large_object_can_be_put_and_replaced(writable):
    data = os.urandom((11 << 20) + 17)
    parts = [data[:3], data[3 : 6 << 20], data[6 << 20 :]]
    first = writable.store.put("x", parts, expected=None)
    assert read(writable.store, "x") == data
    with pytest.raises(StoreConflict):
        writable.store.put("x", [data[::-1]], expected=None)
    second = writable.store.put("x", [data[::-1]], expected=first.generation)
    blob = writable.store.get("x", limit=len(data))
    assert (bytes(blob.data), blob.info.generation) == (data[::-1], second.generation)


def test_several_objects_or_none_can_be_put_together(store):
    assert store.put_many([]) == []
    infos = store.put_many([Put(key, [key.encode()], None) for key in "xy"])
    assert [info.generation for info in infos] == [store.info(key).generation for key in "xy"]
    (again,) = store.put_many([Put("x", [b"other"], None)])
    assert isinstance(again, StoreConflict)


def test_a_put_replaces_only_what_it_expects(store):
    first = store.put("x", [b"one"], expected=None)
    second = store.put("x", [b"two"], expected=first.generation)
    assert second.generation != first.generation
    for stale in (None, first.generation, ("nonsense",), ()):
        with pytest.raises(StoreConflict):
            store.put("x", [b"three"], expected=stale)
    with pytest.raises(StoreConflict):
        store.put("missing", [b"three"], expected=second.generation)
    assert (read(store, "x"), read(store, "missing")) == (b"two", None)
    store.put("x", [b"three"], expected=ANY)
    assert read(store, "x") == b"three"


def test_a_generation_that_was_read_can_be_expected(store, writable):
    writable.put("x", DATA)
    store.put("x", [b"1"], expected=store.info("x").generation)
    store.put("x", [b"2"], expected=store.get("x", limit=9).info.generation)
    (blob,) = store.get_ranges("x", [ByteRange(0, 1)])
    store.put("x", [b"3"], expected=blob.info.generation)
    assert read(store, "x") == b"3"


def test_a_change_behind_our_back_is_a_conflict(store, writable):
    ours = store.put("x", [b"ours"], expected=None)
    writable.put("x", b"theirs")
    with pytest.raises(StoreConflict):
        store.put("x", [b"again"], expected=ours.generation)
    with pytest.raises(StoreConflict):
        store.delete("x", expected=ours.generation)
    assert read(store, "x") == b"theirs"
    writable.delete("x")
    with pytest.raises(StoreConflict):
        store.put("x", [b"again"], expected=ours.generation)
    assert read(store, "x") is None


def test_delete(store):
    for expected in (ANY, None, ("nonsense",)):
        store.delete("x", expected=expected)
        store.delete("no/such/directory", expected=expected)
    first = store.put("x", [b"one"], expected=None)
    for stale in (None, ("nonsense",)):
        with pytest.raises(StoreConflict):
            store.delete("x", expected=stale)
    store.delete("x", expected=first.generation)
    assert store.info("x") is None
    store.delete("x", expected=first.generation)
    store.put("x", [b"two"], expected=None)
    store.delete("x", expected=ANY)
    assert (store.info("x"), list(store.list_dir(""))) == (None, [])


def test_of_64_racing_puts_one_wins(store):
    start = threading.Barrier(64)
    expected = None
    for turn in range(2):

        def race(i: int, expected=expected, turn=turn) -> object:
            start.wait()
            try:
                return store.put("c/x", [b"%d of turn %d" % (i, turn)], expected=expected)
            except StoreConflict:
                return None

        with ThreadPoolExecutor(64) as pool:
            results = list(pool.map(race, range(64)))
        (winner,) = [i for i, info in enumerate(results) if info is not None]
        assert read(store, "c/x") == b"%d of turn %d" % (winner, turn)
        expected = store.info("c/x").generation
        assert expected == results[winner].generation


def test_every_writer_that_reads_merges_and_puts_again_is_heard(store):
    """What keeps two mounts from losing each other's elements."""
    store.put("x", [bytes(16)], expected=None)

    def write(i: int) -> None:
        while True:
            blob = store.get("x", limit=16)
            data = bytearray(blob.data)
            data[i] = i + 1
            try:
                store.put("x", [data], expected=blob.info.generation)
            except StoreConflict:
                continue
            return

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    assert read(store, "x") == bytes(range(1, 17))


def test_a_reader_never_sees_a_torn_object(store):
    size = 200_000
    # A reader may begin after the first of the other puts.
    seen: dict[object, int] = {store.put("c/x", [bytes(size)], expected=None).generation: 0}
    stop = threading.Event()
    lock = threading.Lock()

    def read_on() -> int:
        reads = 0
        while not stop.is_set():
            whole = store.get("c/x", limit=size)
            parts = store.get_ranges("c/x", [ByteRange(0, 9), ByteRange(-9, 9)])
            first = whole.data[0]
            assert bytes(whole.data) == bytes([first]) * size
            assert bytes(parts[0].data) == bytes(parts[1].data) == bytes([parts[0].data[0]]) * 9
            for value, info in ((first, whole.info), (parts[0].data[0], parts[0].info)):
                with lock:
                    assert seen.setdefault(info.generation, value) == value
            reads += 1
        return reads

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read_on) for _ in range(4)]
        try:
            for value in range(1, 25):
                half = bytes([value]) * (size // 2)
                info = store.put("c/x", [half, half], expected=ANY)
                with lock:
                    assert seen.setdefault(info.generation, value) == value
        finally:
            stop.set()
        assert all(reader.result(30) for reader in readers)
    assert len(seen) > 24


def test_many_objects_of_one_directory_are_put_at_once(store):
    def put(i: int) -> object:
        return store.put(f"a/b/c/{i % 3}/{i}", [b"%d" % i], expected=None).generation

    with ThreadPoolExecutor(16) as pool:
        generations = list(pool.map(put, range(48)))
    for i in range(48):
        blob = store.get(f"a/b/c/{i % 3}/{i}", limit=9)
        assert (bytes(blob.data), blob.info.generation) == (b"%d" % i, generations[i])


def test_a_malformed_key_is_refused(writable):
    for key in ("", "/", "/c", "c/", "c//d", "..", "c/../d", ".", "a\0b", "\ud800"):
        with pytest.raises(StoreError, match="not a valid key"):
            writable.store.put(key, [b"x"], expected=ANY)
        with pytest.raises(StoreError, match="not a valid key"):
            writable.store.delete(key, expected=ANY)


def test_a_key_of_odd_characters_names_that_object(writable):
    for name in ("ä", "a b", "a%20b", "a?b#c", "a+b", "[x]*", "~", "日本"):
        writable.store.put(f"dir/{name}", [DATA], expected=None)
        assert read(writable.store, f"dir/{name}") == DATA
        assert list(writable.store.list_dir("dir")) == [name]
        writable.store.delete(f"dir/{name}", expected=ANY)
        assert writable.store.info(f"dir/{name}") is None


def test_nothing_stays_open_and_nothing_is_left(store, open_fds: Callable[[], int]):
    def use() -> None:
        generation = store.put("dir/x", [DATA], expected=ANY).generation
        with pytest.raises(StoreConflict):
            store.put("dir/x", [b"other"], expected=None)
        store.delete("dir/x", expected=generation)
        store.delete("dir/x", expected=None)

    for _ in range(2):
        use()
    before = open_fds()
    for _ in range(8):
        use()
    assert open_fds() <= before + 4  # pooled connections may come and go
    assert store.leftovers(remove=True) == []


def test_close(writable):
    writable.store.put("x", [DATA], expected=None)
    writable.store.close()
    with pytest.raises(StoreError, match="closed"):
        writable.store.put("x", [DATA], expected=ANY)
    with pytest.raises(StoreError, match="closed"):
        writable.store.delete("x", expected=ANY)
    writable.store.close()


def test_a_store_that_cannot_be_written_to_says_why(harness):
    store = harness.store
    if harness.kind in ("local", "memory", "s3", "google", "azure"):
        assert store.read_only is None
        return
    reason = store.read_only
    assert reason
    assert "\n" not in reason
    harness.put("x", DATA)
    for write in (
        lambda: store.put("x", [b"y"], expected=ANY),
        lambda: store.delete("x", expected=ANY),
    ):
        with pytest.raises(StoreReadOnly) as caught:
            write()
        assert reason in str(caught.value)
    assert read(store, "x") == DATA
    assert store.leftovers(remove=True) == []
