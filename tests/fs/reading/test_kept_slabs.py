"""Reads here and there that cross most chunks of a slab: it is made once, and kept."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document
from tests.fs.memory_store import MemoryStore
from tests.fs.write_store import WriteStore
from zarrfs.cache.read import block_cache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import ChunkError
from zarrfs.fs.nodes.nodes import Local
from zarrfs.views import flat as views_flat
from zarrfs.views.slabs import slab_grid, slabs

pytestmark = pytest.mark.timeout(60)

SHAPE, CHUNKS = (64, 32, 64), (8, 8, 16)
VALUES = np.random.default_rng(0).integers(0, 1 << 16, SHAPE, np.uint16)
EXPECTED = VALUES.astype("<u2").tobytes()
PLANE = 32 * 64 * 2
SLAB = 8 * PLANE
A_SLAB = 4 * 4  # chunks
KEY = "c/{}/{}/{}"


@pytest.fixture(autouse=True)
def small_chunks_in_slabs(monkeypatch):
    """Each row of chunks is a slab."""
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)


@pytest.fixture
def store() -> MemoryStore:
    document = array_document(SHAPE, CHUNKS, data_type="uint16", codecs=[LITTLE])
    objects = {"zarr.json": document}
    for index in np.ndindex(8, 4, 4):
        where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, CHUNKS, strict=True))
        objects[KEY.format(*index)] = VALUES[where].astype("<u2").tobytes()
    return MemoryStore(objects)


def planes(file, numbers) -> None:
    """Reads whole planes, with something else in between, so that it is no scan."""
    for number in numbers:
        start = number * PLANE
        assert file.read(start, PLANE) == EXPECTED[start : start + PLANE]


def kept_slabs(m, file, numbers=range(8)) -> set[int]:
    """The slabs of which a byte is read while no chunk is decoded or in memory."""
    drop_chunks(m)
    found = set()
    for number in numbers:
        before = m.tree.stats.loads
        assert file.read(number * SLAB + PLANE, 2) == EXPECTED[number * SLAB + PLANE :][:2]
        if m.tree.stats.loads == before:
            found.add(number)
    return found


def drop_chunks(m) -> None:
    """What was read chunk by chunk has to be had again."""
    m.tree.nodes.peek("").array._loads.drop(None)


def test_a_slab_is_made_once_and_serves_whatever_is_read_of_it(mount, store):
    m = mount(store)
    stats = m.tree.stats
    file = m.open("array.bin")
    planes(file, [20, 60, 17, 58, 23])
    assert stats.loads == 2 * A_SLAB
    assert file.read(16 * PLANE + 3, 1001) == EXPECTED[16 * PLANE + 3 :][:1001]
    file.close()
    again = m.open("array.bin")
    planes(again, [18, 61])
    assert again.read(len(EXPECTED) - 10, 100) == EXPECTED[-10:]
    assert again.read(len(EXPECTED) + 5, 100) == b""
    assert stats.loads == 2 * A_SLAB


def test_threads_that_ask_at_once_have_a_slab_made_once(mount, store):
    m = mount(store)
    made = m.tree.nodes.peek("")._slabs
    together, over = threading.Barrier(8), threading.Semaphore(0)

    def ask() -> None:
        together.wait(20)
        assert made.fetch(20 * PLANE, over.release, keep=True)

    with ThreadPoolExecutor(8) as pool:
        for asking in [pool.submit(ask) for _ in range(8)]:
            asking.result()
            assert over.acquire(timeout=20)
    assert m.tree.stats.loads == A_SLAB
    with_slab = m.open("array.bin")
    assert kept_slabs(m, with_slab) == {2}


def test_a_read_across_two_slabs(mount, store):
    m = mount(store)
    file = m.open("array.bin")
    for _ in range(2):
        start = 3 * SLAB - PLANE // 2
        assert file.read(start, PLANE) == EXPECTED[start : start + PLANE]
        assert file.read(7 * SLAB, 4) == EXPECTED[7 * SLAB :][:4]
    assert m.tree.stats.loads == 2 * A_SLAB + 1


def test_reads_that_cross_few_chunks_have_no_slab_made(mount, store):
    m = mount(store)
    file = m.open("array.bin")
    for slab in (5, 1, 6):
        # One row of chunks.
        start = slab * SLAB
        assert file.read(start, PLANE // 4) == EXPECTED[start : start + PLANE // 4]
    assert m.tree.stats.loads == 3 * 4


def test_rows_of_few_chunks_are_kept_chunk_by_chunk(mount):
    """As chunks they are found at once, and can be given to the kernel whole."""
    document = array_document((64, 2048), (1, 2048), data_type="uint16", codecs=[LITTLE])
    row = VALUES.reshape(64, 2048)[:, :2048].astype("<u2")
    objects = {f"c/{i}/0": row[i].tobytes() for i in range(64)}
    m = mount(MemoryStore({"zarr.json": document, **objects}))
    file = m.open("array.bin")
    for number in (40, 3, 60):
        assert file.read(number * 4096, 4096) == row[number].tobytes()
    assert m.tree.stats.loads == m.stats()["memory"]["chunks"] == 3


def test_where_requests_cost_money_nothing_is_fetched_unasked(mount, store):
    store.traits = store.traits._replace(near=False)
    m = mount(store)
    file = m.open("array.bin")
    assert file.read(2 * SLAB, PLANE // 2) == EXPECTED[2 * SLAB :][: PLANE // 2]
    assert m.tree.stats.loads == A_SLAB // 2


@pytest.mark.parametrize("resize", [False, True])
def test_a_writable_array_has_slabs_until_a_program_writes_to_it(opened, store, resize):
    """A slab holds one state of the array: after a write chunks are kept one by one."""
    m = opened(WriteStore(store.objects), resize=resize)
    stats = m.tree.stats
    file = m.edit("array.bin")
    planes(file, [20, 60, 17, 58, 23])
    assert (stats.loads, stats.hits) == (2 * A_SLAB, 0)
    file.write(20 * PLANE, b"\1\2")
    changed = b"\1\2" + EXPECTED[20 * PLANE + 2 :][: PLANE - 2]
    for _ in range(3):
        assert file.read(20 * PLANE, PLANE) == changed
        planes(file, [60, 18])
    assert m.stats()["memory"]["chunks"] == 2 * A_SLAB
    assert stats.loads == 4 * A_SLAB
    file.close()


@pytest.mark.parametrize("scan", [False, True])
def test_a_read_does_not_wait_until_a_program_writes_no_more(opened, store, monkeypatch, scan):
    """Each slab is of an earlier state when it is there, so the read goes on chunk by chunk."""
    m = opened(WriteStore(store.objects))
    flat = m.tree.nodes.peek("").view(Local.FLAT).view
    fill, slabs_filled = slabs.Slabs._fill, []

    def fill_while_others_write(of, slab, memory):
        slabs_filled.append(slab.start)
        # If the read waited for an end of the writes, this test would fail, and not hang.
        if len(slabs_filled) < 50:
            assert flat.write(60 * PLANE, EXPECTED[60 * PLANE :][:2]) is None
        fill(of, slab, memory)

    monkeypatch.setattr(slabs.Slabs, "_fill", fill_while_others_write)
    if scan:
        monkeypatch.setattr(views_flat, "_BELIEVED", 2)
    file = m.open("array.bin")
    start = 0 if scan else 20 * PLANE
    assert file.read(start, PLANE) == EXPECTED[start : start + PLANE]
    assert 0 < len(slabs_filled) < 20


def test_a_slab_is_made_anew_when_the_store_has_changed(mount, store):
    m = mount(store, recheck=0)
    stats = m.tree.stats
    file = m.open("array.bin")
    planes(file, [20, 60, 21])
    assert stats.loads == 2 * A_SLAB
    file.close()
    changed = VALUES[16:24, 0:8, 0:16] + 1
    store.put(KEY.format(2, 0, 0), changed.astype("<u2").tobytes())
    file = m.open("array.bin")
    expected = VALUES[20].copy()
    expected[0:8, 0:16] += 1
    assert file.read(20 * PLANE, PLANE) == expected.astype("<u2").tobytes()
    # Chunk by chunk now: other changes would be about one chunk only.
    assert stats.loads == 3 * A_SLAB
    planes(file, [60])
    assert stats.loads == 4 * A_SLAB
    store.put(KEY.format(2, 0, 0), store.objects[KEY.format(2, 0, 0)])
    file.close()
    file = m.open("array.bin")
    assert file.read(20 * PLANE, PLANE) == expected.astype("<u2").tobytes()
    planes(file, [60])
    assert stats.loads == 4 * A_SLAB + 1


def test_a_bad_chunk_is_an_error_of_its_own_and_not_looked_for_each_time(mount, store, monkeypatch):
    store.put(KEY.format(2, 3, 3), b"short")
    m = mount(store)
    stats = m.tree.stats
    file = m.open("array.bin")
    with pytest.raises(ChunkError):
        file.read(20 * PLANE, PLANE)
    start = 20 * PLANE
    # The first half of the plane is fine.
    for _ in range(3):
        assert file.read(start, PLANE // 2) == EXPECTED[start : start + PLANE // 2]
        loads = stats.loads
    assert stats.loads == loads
    planes(file, [60])
    # When it has been mended, all of it is there, in the end as a slab.
    store.put(KEY.format(2, 3, 3), VALUES[16:24, 24:32, 48:64].astype("<u2").tobytes())
    planes(file, [20])
    monkeypatch.setattr(slabs, "_FAILED", -1.0)
    drop_chunks(m)
    planes(file, [60, 17])
    assert kept_slabs(m, file) == {2, 7}


MEMORY = 10 * SLAB


def test_what_is_kept_leaves_memory_for_others(mount, store):
    m = mount(store, memory=MEMORY)
    total = m.tree.budget.total
    file = m.open("array.bin")
    for _ in range(2):
        planes(file, [8 * slab for slab in (6, 0, 4, 2, 7, 1, 3, 5)])
    assert m.stats()["memory"]["highest"] <= total
    assert 2 <= len(kept_slabs(m, file)) <= total * 5 // 8 // SLAB


def test_where_a_slab_has_no_room_only_the_chunks_in_it_are_loaded(mount, store):
    m = mount(store, memory=MEMORY)
    stats = m.tree.stats
    file = m.open("array.bin")
    planes(file, [8 * slab for slab in (6, 0, 4, 2, 7)])
    kept = kept_slabs(m, file, (6, 0, 4, 2, 7))
    assert len(kept) == 5
    drop_chunks(m)
    last = next(slab for slab in kept if slab + 1 < 8 and slab + 1 not in kept)
    before = stats.loads
    start = (last + 1) * SLAB - PLANE * 3 // 4
    assert file.read(start, PLANE) == EXPECTED[start : start + PLANE]
    # A quarter of a plane.
    assert stats.loads - before == 4


@pytest.mark.parametrize("share", [3, 4])
def test_slabs_that_are_being_made_leave_memory_to_make_them(mount, store, monkeypatch, share):
    """However many threads wait for one: decoding a chunk must never wait for all of them."""
    total = mount(store, memory=MEMORY).tree.budget.total
    largest = property(lambda _: total * share // 8)
    monkeypatch.setattr(CachedArray, "largest_load", largest)
    m = mount(store, memory=MEMORY)
    file = m.open("array.bin")
    planes(file, [20, 60])
    assert kept_slabs(m, file) == ({2, 7} if share == 3 else set())


def test_what_nobody_reads_makes_room(mount, store, monkeypatch):
    m = mount(store, memory=MEMORY)
    file = m.open("array.bin")
    planes(file, [8 * slab for slab in (6, 0, 4, 2, 7, 1, 3, 5)])
    before = kept_slabs(m, file, (6, 0, 4, 2, 7, 1, 3, 5))
    monkeypatch.setattr(block_cache, "_IDLE", 0.0)
    drop_chunks(m)
    time.sleep(0.001)
    others = [slab for slab in range(8) if slab not in before]
    planes(file, [8 * slab + 1 for slab in others[::-1]])
    assert others[0] in kept_slabs(m, file)


def test_a_scan_takes_the_memory_of_what_is_kept(mount, store):
    m = mount(store, memory=MEMORY)
    stats = m.tree.stats
    file = m.open("array.bin")
    planes(file, [8 * slab for slab in (6, 0, 4, 2, 7, 1, 3, 5)])
    assert len(kept_slabs(m, file)) >= 2
    before = stats.loads
    assert m.read("array.bin", request=PLANE) == EXPECTED
    # Each chunk once at most, but for what came before it was taken for a scan.
    assert stats.loads - before <= 8 * A_SLAB + A_SLAB
    planes(file, [50, 3])
