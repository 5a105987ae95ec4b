"""The store changes while a load is under way: programs that open afterwards see the change."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import numpy as np
import pytest

from tests.fs.documents import array_document, group_document, sharding
from tests.fs.fault_store import Call, FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.cache.read.chunk_loads import ChunkLoads
from zarrfs.fs.nodes.nodes import Local
from zarrfs.views import flat
from zarrfs.views.elements import elements as elements_module
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs import slab_grid

pytestmark = pytest.mark.timeout(120)

SIDE = 4
OLD, NEW = 1, 2
_SECONDS = 60


def run(work: Callable[[], object]) -> Future[object]:
    """Work in a thread of its own."""
    future: Future[object] = Future()

    def call() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


class SlowStore(FaultStore):
    """Keeps one answer back, which it has already from the store around which it is.

    hold : the number of the answer among those that hold data, from 0 on.
    """

    def __init__(self, inner: MemoryStore, hold: int) -> None:
        super().__init__(inner)
        self._left = hold
        self._lock = threading.Lock()
        self.held = threading.Event()
        self.release = threading.Event()
        self.after = self._keep_back

    def _keep_back(self, call: Call) -> None:
        if call.operation not in ("get", "ranges") or "c/" not in call.key:
            return
        with self._lock:
            self._left -= 1
            if self._left != -1:
                return
        self.held.set()
        assert self.release.wait(_SECONDS)


def held(store: SlowStore, reading: Future[object]) -> bool:
    """Waits until an answer is kept back; False if all was read without it."""
    while not store.held.wait(0.01):
        if reading.done():
            reading.result()
            return False
    return True


def see_the_change(
    mount: Callable[..., object],
    stored: Callable[[int], dict[str, bytes]],
    path: str,
    expected: bytes,
    read: Callable[..., bytes] = lambda file: file.read_all(),
    *,
    cheap: bool,
    late: bool,
    **config: object,
) -> int:
    """Change all objects in the middle of each request of a read, and read the file again.

    stored : the objects with the one value or the other.
    late : whether the first read ends before the second begins.

    Returns how many requests of the read were tried.
    """
    for number in range(1000):
        store = SlowStore(MemoryStore(stored(OLD), cheap=cheap), number)
        m = mount(store, recheck=0, **config)
        first = m.open(path)
        reading = run(partial(read, first))
        if not held(store, reading):
            return number
        for key, data in stored(NEW).items():
            if "c/" in key:
                store.inner.put(key, data)
        second = m.open(path)
        if late:
            store.release.set()
            reading.result(_SECONDS)
        again = run(partial(read, second))
        if not late:
            threading.Event().wait(0.05)
            store.release.set()
        assert again.result(_SECONDS) == expected, f"request {number}"
        reading.result(_SECONDS)
        first.close()
        second.close()
        third = m.open(path)
        assert read(third) == expected, f"request {number}, opened once more"
        third.close()
    raise AssertionError("the read did not end")


both = [
    pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"]),
    pytest.mark.parametrize("late", [False, True], ids=["during", "after"]),
]


def for_both(test):
    for mark in both:
        test = mark(test)
    return test


def data(value: int, count: int = SIDE) -> bytes:
    return np.full(count, value, "<i2").tobytes()


def plain(value: int) -> dict[str, bytes]:
    document = array_document((3 * SIDE,), (SIDE,))
    return {"zarr.json": document, "c/0": data(value), "c/1": data(value), "c/2": data(value)}


@pytest.mark.parametrize("recheck", [0, 0.05])
@pytest.mark.parametrize("path", ["array.bin", "chunks/1"])
def test_a_program_that_opens_while_another_one_has_found_the_change(
    mount, monkeypatch, path, recheck
):
    """The first check has not dropped the old chunks yet."""
    m = mount(MemoryStore(plain(OLD)), recheck=recheck)
    m.read(path)
    store = m.store
    for key, content in plain(NEW).items():
        store.put(key, content)
    threading.Event().wait(recheck)
    drop = ChunkLoads.drop_stored
    dropping, go_on = threading.Event(), threading.Event()

    def slow(self: ChunkLoads, *arguments: object, **keywords: object) -> None:
        if not dropping.is_set():
            dropping.set()
            assert go_on.wait(_SECONDS)
        drop(self, *arguments, **keywords)

    monkeypatch.setattr(ChunkLoads, "drop_stored", slow)
    first = run(partial(m.read, path))
    assert dropping.wait(_SECONDS)
    second = run(partial(m.read, path))
    threading.Event().wait(0.05)
    go_on.set()
    expected = plain(NEW)["c/1"] * (3 if path == "array.bin" else 1)
    assert second.result(_SECONDS) == expected
    assert first.result(_SECONDS) == expected


def test_the_store_keeps_an_answer_back(mount):
    store = SlowStore(MemoryStore(plain(OLD)), 0)
    m = mount(store, recheck=0)
    reading = run(lambda: m.read("array.bin"))
    assert held(store, reading)
    store.inner.put("c/0", data(NEW))
    store.release.set()
    assert reading.result(_SECONDS)[: 2 * SIDE] == data(OLD)


@for_both
@pytest.mark.parametrize("path", ["array.bin", "array.npy", "array.h5", "chunks/1"])
def test_chunks(mount, path, cheap, late):
    def body(file):
        return file.read_all()[-2 * SIDE :]

    config = {"views": ("h5",)} if path == "array.h5" else {}
    tried = see_the_change(mount, plain, path, data(NEW), body, cheap=cheap, late=late, **config)
    assert tried == (1 if path == "chunks/1" else 3)


def sharded(value: int, *, some: bool = False) -> dict[str, bytes]:
    """
    some : whether the old state lacks an inner chunk.
    """
    document = array_document((4 * SIDE,), (4 * SIDE,), codecs=[sharding((SIDE,))])
    inner = [data(value + number) for number in range(4)]
    if some and value == OLD:
        inner[1] = None
    return {"zarr.json": document, "c/0": shard(inner)}


@for_both
@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
@pytest.mark.parametrize(
    ("path", "first"), [("array.bin", 0), ("shards/0", 0), ("chunks/1", 1), ("chunks/3", 3)]
)
def test_inner_chunks(mount, path, first, cheap, late, some):
    stop = 4 if first == 0 else first + 1
    expected = b"".join(data(NEW + number) for number in range(first, stop))
    stored = partial(sharded, some=some)
    assert see_the_change(mount, stored, path, expected, cheap=cheap, late=late)


@for_both
def test_an_index_that_another_read_uses(mount, cheap, late):
    """One read waits for an inner chunk; the index of its shard is in memory by then."""

    def read(file):
        return b"".join(file.read(2 * SIDE * number, 2 * SIDE) for number in (0, 2))

    expected = data(NEW) + data(NEW + 2)
    stored = partial(sharded, some=True)
    assert see_the_change(mount, stored, "array.bin", expected, read, cheap=cheap, late=late)


ROWS, WIDTH = 12, 1 << 16


def rows(value: int) -> dict[str, bytes]:
    document = array_document((ROWS, WIDTH), (2, WIDTH // 2))
    chunk = data(value, WIDTH)
    objects = {f"c/{i}/{j}": chunk for i in range(ROWS // 2) for j in range(2)}
    return {"zarr.json": document, **objects}


@pytest.fixture
def scans(monkeypatch):
    """Each row of chunks is a slab, and the first request begins a scan."""
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
    monkeypatch.setattr(flat, "_BELIEVED", 1)


def one_state(file) -> bytes:
    """The values that a file holds; each request crosses two slabs."""
    found = b"".join(file.read(at, 6 * WIDTH) for at in range(0, 2 * ROWS * WIDTH, 6 * WIDTH))
    assert len(found) == 2 * ROWS * WIDTH
    return bytes(np.unique(np.frombuffer(found, "<i2")).astype(np.uint8))


@for_both
def test_slabs(mount, scans, cheap, late):
    assert see_the_change(mount, rows, "array.bin", bytes([NEW]), one_state, cheap=cheap, late=late)


@for_both
def test_rows_in_a_scratch_file(mount, scans, cheap, late, tmp_path):
    """Memory has no room for a row of chunks."""

    def stored(value: int) -> dict[str, bytes]:
        document = array_document((8, 1 << 18), (8, 1 << 15))
        objects = {f"c/0/{j}": data(value, 1 << 18) for j in range(8)}
        return {"zarr.json": document, **objects}

    def read(file):
        request = 1 << 19
        found = {file.read(at, request) for at in range(0, 4 << 20, request)}
        return b"".join(sorted({part[:2] for part in found} | {part[-2:] for part in found}))

    memory = {"memory": 4 << 20, "spill": str(tmp_path)}
    new = data(NEW, 1)
    assert see_the_change(mount, stored, "array.bin", new, read, cheap=cheap, late=late, **memory)


@pytest.mark.parametrize("late", [False, True], ids=["during", "after"])
def test_parts_of_chunks(mount, late):
    def stored(value: int) -> dict[str, bytes]:
        document = array_document((2 << 20,), (1 << 20,))
        return {"zarr.json": document, "c/0": data(value, 1 << 20), "c/1": data(value, 1 << 20)}

    mounts = []

    def watched(*args, **config):
        mounts.append(mount(*args, **config))
        return mounts[-1]

    def read(file):
        return file.read(1000, 64) + file.read((3 << 20) + 1000, 64)

    expected = data(NEW, 64)
    assert see_the_change(watched, stored, "array.bin", expected, read, cheap=True, late=late)
    assert mounts[0].tree.stats.parts


@for_both
def test_strings(mount, cheap, late):
    def stored(value: int) -> dict[str, bytes]:
        document = array_document(
            (2, 2), (1, 2), data_type="string", fill_value="", codecs=[{"name": "vlen-utf8"}]
        )

        def chunk(text: str) -> bytes:
            element = len(text).to_bytes(4, "little") + text.encode()
            return (2).to_bytes(4, "little") + 2 * element

        text = "old" if value == OLD else "newer"
        return {"zarr.json": document, "c/0/0": chunk(text), "c/1/0": chunk(text)}

    def read(file):
        return file.read_all()

    for number in range(10):
        store = SlowStore(MemoryStore(stored(OLD), cheap=cheap), number)
        m = mount(store, recheck=0)
        reading = run(lambda m=m: m.read("array.jsonl"))
        if not held(store, reading):
            break
        for key, content in stored(NEW).items():
            store.inner.put(key, content)
        again = run(lambda m=m: m.read("array.jsonl"))
        if late:
            store.release.set()
            reading.exception(_SECONDS)
        threading.Event().wait(0.05)
        store.release.set()
        reading.exception(_SECONDS)
        assert again.result(_SECONDS) == 4 * b'"newer"\n', number
        assert m.read("array.jsonl") == 4 * b'"newer"\n', number
    assert number


@for_both
def test_files_of_groups(mount, cheap, late):
    def stored(value: int) -> dict[str, bytes]:
        array = {f"a/{key}": content for key, content in plain(value).items()}
        return {"zarr.json": group_document(), **array}

    def body(file):
        return file.read_all()[-6 * SIDE :]

    config = {"views": ("h5",)}
    tried = see_the_change(
        mount, stored, "group.h5", 3 * data(NEW), body, cheap=cheap, late=late, **config
    )
    assert tried == 3


class TestOneState:
    """The store changes, and a check finds that, in the middle of one read of several pieces."""

    @staticmethod
    def change(m, stored: Callable[[int], dict[str, bytes]]) -> None:
        for key, content in stored(NEW).items():
            if "c/" in key:
                m.store.put(key, content)
        m.tree.nodes.peek("").array.check()

    def test_of_slabs(self, mount, scans, monkeypatch, tmp_path):
        line = 1 << 18

        def stored(value: int) -> dict[str, bytes]:
            document = array_document((64, line // 2), (64, line // 4))
            return {"zarr.json": document} | {
                f"c/0/{j}": data(value, 64 * line // 4) for j in range(2)
            }

        m = mount(MemoryStore(stored(OLD)), recheck=0, memory=16 << 20, spill=str(tmp_path))
        changed: list[int] = []
        take = flat.StreamView.take

        def take_then(view, slab, offset, stop):
            piece = take(view, slab, offset, stop)
            if len(piece) < stop - offset and not changed:
                changed.append(offset)
                self.change(m, stored)
            return piece

        monkeypatch.setattr(flat.StreamView, "take", take_then)
        file = m.open("array.bin")
        found = file.read(0, 8 * line)
        assert changed
        assert len(changed) == 1
        assert set(np.frombuffer(found, "<i2").tolist()) == {NEW}

    def elements(self, mount, monkeypatch, then: Callable[[object], None]) -> Elements:
        """Elements that are in memory; after the first piece of a read, ``then`` happens."""

        def stored(value: int) -> dict[str, bytes]:
            document = array_document((8, 4 * 100), (8, 4))
            return {"zarr.json": document} | {f"c/0/{j}": data(value, 32) for j in range(100)}

        m = mount(MemoryStore(stored(OLD)), recheck=0)
        m.read("array.bin", request=99)
        copy, copied = Elements._copy_cached, []

        def copy_then(elements, row):
            copied.append(row)
            if len(copied) == 2:
                self.change(m, stored)
                then(m)
            return copy(elements, row)

        monkeypatch.setattr(Elements, "_copy_cached", copy_then)
        return m.tree.nodes.peek("").view(Local.FLAT).view.elements

    def test_of_chunks_in_memory(self, mount, monkeypatch):
        elements = self.elements(mount, monkeypatch, lambda m: m.read("array.bin", request=99))
        assert elements.get(1, elements.count) is None
        assert set(elements.get(1, elements.count).view("<i2").tolist()) == {NEW}

    def test_of_chunks_in_memory_and_others(self, mount, monkeypatch):
        # As if the read were of very many chunks, which are first looked for in a thread.
        monkeypatch.setattr(elements_module, "MOST_NOW", 50)
        elements = self.elements(mount, monkeypatch, lambda _: None)
        answer: Future[object] = Future()
        elements.fetch(1, elements.count, answer.set_result)
        found = answer.result(_SECONDS)
        assert set(found.view("<i2").tolist()) == {NEW}


class TestPages:
    def test_not_kept_for_a_program_that_opens_during_a_read(self, mount):
        """The kernel has both programs wait for the same pages, which may be old."""
        store = SlowStore(MemoryStore(plain(OLD)), 0)
        m = mount(store, recheck=0)
        m.open("array.bin").close()
        first = m.open("array.bin")
        assert first.keep_cache
        reading = run(first.read_all)
        assert held(store, reading)
        assert not m.open("array.bin").keep_cache
        assert not m.open("array.bin").keep_cache
        store.release.set()
        reading.result(_SECONDS)
        m.open("array.bin").close()
        assert m.open("array.bin").keep_cache
