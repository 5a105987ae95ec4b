"""Scans of a flat file: whole rows of chunks are made ahead of the reader, and each only once."""

import contextlib
import os
import threading
from collections import defaultdict

import numcodecs
import numpy as np
import pytest

from tests.fs.documents import LITTLE, ZSTD, array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from tests.waiting import wait_until
from zarrfs.errors import ChunkError, StoreError
from zarrfs.memory.arena import Arena
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.views import flat
from zarrfs.views.elements.elements import Elements
from zarrfs.views.slabs import slab_grid, slab_plan, staged_rows
from zarrfs.views.slabs.staged_rows import StagedRows

SHAPE, CHUNKS = (96, 64, 512), (8, 32, 512)
VALUES = np.random.default_rng(0).integers(0, 1 << 16, SHAPE, np.uint16)


@pytest.fixture
def store(monkeypatch) -> MemoryStore:
    # Each row of chunks is a slab, and the first request begins a scan.
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
    monkeypatch.setattr(flat, "_BELIEVED", 1)
    document = array_document(SHAPE, CHUNKS, data_type="uint16", codecs=[LITTLE])
    objects = {"zarr.json": document}
    for index in np.ndindex(12, 2, 1):
        where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, CHUNKS, strict=True))
        objects["/".join(map(str, ("c", *index)))] = VALUES[where].astype("<u2").tobytes()
    return MemoryStore(objects)


def settle(m) -> None:
    """Until the loaders have made all that is to be made ahead."""
    pool = m.tree.cache.pool

    def idle() -> bool:
        with pool._lock:
            busy = len(pool._threads) - len(pool._asleep)
            return not (busy or pool._urgent or pool._ahead)

    wait_until(idle)


def wait_for_loads(m, count: int) -> None:
    wait_until(lambda: m.tree.stats.loads >= count)
    settle(m)


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_a_bad_chunk_in_the_way_of_scans(mount, store, byteorder):
    """Whatever is read ahead, only what needs the bad chunk fails."""
    store.put("c/9/1/0", b"broken")
    m = mount(store, byteorder=byteorder)
    expected = VALUES.astype("<u2" if byteorder == "little" else ">u2").tobytes()
    needs = np.zeros(SHAPE, "u2")
    needs[72:80, 32:] = 1
    block = 32 << 10
    files = [m.open("array.bin") for _ in range(2)]
    failed = 0
    for offset in range(0, VALUES.nbytes, block):
        for file in files:
            if needs.data.cast("B")[offset : offset + block].tobytes().strip(b"\0"):
                failed += 1
                with pytest.raises(ChunkError) as caught:
                    file.read(offset, block)
                assert caught.value.key == "c/9/1/0"
            else:
                assert file.read(offset, block) == expected[offset : offset + block]
    assert failed == 2 * 8
    assert {key for key, _ in m.errors()} == {"c/9/1/0"}


@pytest.mark.parametrize("readers", [1, 2])
def test_a_slow_reader_has_each_chunk_decoded_once(mount, store, readers):
    m = mount(store)
    stats = m.tree.stats
    files = [m.open("array.bin") for _ in range(readers)]
    expected = VALUES.astype("<u2").tobytes()
    block = 128 << 10
    for offset in range(0, VALUES.nbytes, block):
        for file in files:
            assert file.read(offset, block) == expected[offset : offset + block]
        settle(m)
    assert stats.loads == 12 * 2


@pytest.mark.parametrize(("first", "scans"), [(0, True), (8 * 64 * 512 * 2, False)])
def test_a_reader_from_the_start_scans_after_two_short_requests(
    mount, store, monkeypatch, first, scans
):
    """The kernel asks for 128 KiB at once if nobody has raised its read-ahead."""
    monkeypatch.setattr(flat, "_BELIEVED", 1 << 20)
    m = mount(store)
    stats = m.tree.stats
    expected = VALUES.astype("<u2").tobytes()
    block = 128 << 10
    file = m.open("array.bin")
    assert file.read(first, block) == expected[first : first + block]
    settle(m)
    # All requests until here, and the next one from elsewhere, are for two chunks.
    assert stats.loads <= 2
    assert file.read(first + block, block) == expected[first + block : first + 2 * block]
    settle(m)
    assert (stats.loads > 2) == scans


@pytest.mark.parametrize(("fit", "made"), [(0.5, 1), (3, 3), (9, 3)])
def test_so_many_slabs_are_made_ahead_as_their_size_allows(mount, store, monkeypatch, fit, made):
    monkeypatch.setattr(slab_plan, "_AHEAD", int(fit * 8 * 64 * 512 * 2))
    m = mount(store)
    stats = m.tree.stats
    file = m.open("array.bin")
    file.read(0, 64 << 10)
    wait_for_loads(m, 2 * (1 + made))
    assert stats.loads == 2 * (1 + made)


def test_what_is_made_ahead_takes_as_many_requests_as_the_store_prefers(mount, store):
    """Each slab is two requests."""
    slab = 8 * 64 * 512 * 2
    store.traits = store.traits._replace(in_flight=12)
    m = mount(store)
    stats = m.tree.stats
    file = m.open("array.bin")
    file.read(0, 64 << 10)
    wait_for_loads(m, 2 * (1 + 6))
    assert stats.loads == 2 * (1 + 6)
    store.traits = store.traits._replace(in_flight=16)
    file.read(64 << 10, slab)
    wait_for_loads(m, 2 * (2 + 8))
    assert stats.loads == 2 * (2 + 8)


def test_a_distant_store_gets_requests_before_the_first_slab_is_there(mount, store):
    store.traits = store.traits._replace(in_flight=12)
    faults = FaultStore(store)
    later = threading.Event()

    def before(call):
        if call.operation == "info":
            return  # for the size of the file
        if call.key == "c/6/1/0":
            later.set()
        elif call.key.startswith("c/0/") and not later.wait(20):
            raise StoreError(call.key, "nothing else was asked for meanwhile")

    faults.before = before
    m = mount(faults)
    file = m.open("array.bin")
    assert file.read_all(64 << 10) == VALUES.astype("<u2").tobytes()
    assert m.errors() == []
    # Nothing had to make room for what was loaded early.
    assert m.tree.stats.loads == 12 * 2


@pytest.mark.parametrize(("in_flight", "first"), [(6, "requests"), (1, "pages")])
def test_a_distant_store_gets_requests_before_memory_gets_pages(
    mount, store, monkeypatch, in_flight, first
):
    store.traits = store.traits._replace(in_flight=in_flight)
    steps = defaultdict(list)
    scan, back = Elements.scan, Arena.back

    def scanned(*args, **more):
        steps[threading.get_ident()].append("requests")
        scan(*args, **more)

    def backed(*args):
        steps[threading.get_ident()].append("pages")
        return back(*args)

    monkeypatch.setattr(Elements, "scan", scanned)
    monkeypatch.setattr(Arena, "back", backed)
    file = mount(store).open("array.bin")
    assert file.read_all(64 << 10) == VALUES.astype("<u2").tobytes()
    file.close()
    wait_until(lambda: any(len(set(each)) == 2 for each in list(steps.values())))
    assert {each[0] for each in list(steps.values())} == {first}


@pytest.fixture
def distant(store) -> FaultStore:
    """The same array in a distant store, in six shards of four rows of chunks each."""
    store.traits = store.traits._replace(near=False, in_flight=6)
    document = array_document(
        SHAPE, (32, 32, 512), data_type="uint16", codecs=[sharding(CHUNKS, codecs=[LITTLE, ZSTD])]
    )
    objects = {"zarr.json": document}
    for z, y in np.ndindex(3, 2):
        inner = [
            numcodecs.Zstd(1).encode(VALUES[at : at + 8, 32 * y : 32 * y + 32].astype("<u2"))
            for at in range(32 * z, 32 * z + 32, 8)
        ]
        objects[f"c/{z}/{y}/0"] = shard(inner)
    store.objects.clear()
    for key, data in objects.items():
        store.put(key, data)
    return FaultStore(store)


def test_each_shard_of_a_distant_store_is_one_request(mount, distant):
    m = mount(distant)
    file = m.open("array.bin")
    assert file.read_all(64 << 10) == VALUES.astype("<u2").tobytes()
    file.close()
    assert m.errors() == []
    # Beside what a lookup of the file asks for.
    asked = [call.key for call in distant.calls if call.operation in ("get", "ranges")]
    shards = [key for key in asked if key != "zarr.json"]
    assert sorted(shards) == [f"c/{z}/{y}/0" for z in range(3) for y in (0, 1)]


def test_with_little_memory_a_shard_of_a_distant_store_is_read_in_parts(mount, distant):
    slab = 32 * 64 * 512 * 2
    m = mount(distant, memory=2 * slab)
    file = m.open("array.bin")
    assert file.read_all(64 << 10) == VALUES.astype("<u2").tobytes()
    file.close()
    assert m.errors() == []
    assert distant.count("ranges") >= 12


@pytest.mark.parametrize(("memory", "slab"), [(40 << 20, 2048), (30 << 20, None)])
def test_a_file_of_one_slab_may_have_half_of_the_memory(mount, monkeypatch, tmp_path, memory, slab):
    """There is no other slab that needs room beside it."""
    plans = []
    plan = slab_plan.SlabPlan.of
    monkeypatch.setattr(
        slab_plan.SlabPlan, "of", lambda *given: plans.append(plan(*given)) or plans[-1]
    )
    document = array_document((2048, 4096), (2048, 64), data_type="uint16", codecs=[LITTLE])
    store = MemoryStore({"zarr.json": document})
    file = mount(store, memory=memory, spill=str(tmp_path)).open("array.bin")
    assert file.read(0, 1 << 20) == b"\7\0" * (1 << 19)
    (made,) = plans
    whole = made.grid.slab_at(0) if made.grid is not None and made.staged is None else None
    assert whole == (slab and (0, slab * 4096))


def test_a_slab_of_a_staged_row_waits_for_the_memory_of_replies(mount, tmp_path):
    """Chunk by chunk, its read would decode most chunks of the row again."""
    shape, chunks = (80, 100, 480), (80, 100, 48)
    values = np.arange(np.prod(shape), dtype="<u4").astype("<u2").reshape(shape)
    zstd = numcodecs.Zstd(1)
    objects = {
        "zarr.json": array_document(shape, chunks, data_type="uint16", codecs=[LITTLE, ZSTD])
    }
    for number, chunk in enumerate(np.split(values, 10, axis=2)):
        objects[f"c/0/0/{number}"] = bytes(zstd.encode(chunk.tobytes()))
    m = mount(MemoryStore(objects), memory=3 << 20, spill=str(tmp_path))
    stats, cache = m.tree.stats, m.tree.cache
    file = m.open("array.bin")
    expected, block = values.tobytes(), 128 << 10
    half = len(expected) // block // 2 * block
    for offset in range(0, half, block):
        assert file.read(offset, block) == expected[offset : offset + block]
    settle(m)
    loads = stats.loads
    # Replies that the kernel has not taken yet have all memory for slabs.
    replies = []
    while (memory := cache.lend(64 << 10, shared=False, beside=0)) is not None:
        replies.append(memory)
    timer = threading.Timer(0.2, replies.clear)
    timer.start()
    del memory
    far = len(expected) - block
    assert file.read(far, block) == expected[far:]
    assert not replies
    timer.join()
    assert stats.loads == loads


ROW, BLOCK = 80 * 100 * 480 * 2, 128 << 10
"""Bytes of a row of ten chunks, and of one read."""
ROWS = np.arange(4 * ROW // 2, dtype="<u4").astype("<u2").reshape(4 * 80, 100, 480).copy()


@pytest.fixture
def rows() -> MemoryStore:
    """An array of four rows of ten chunks, each row larger than the memory that slabs have."""
    zstd = numcodecs.Zstd(1)
    document = array_document(ROWS.shape, (80, 100, 48), data_type="uint16", codecs=[LITTLE, ZSTD])
    objects = {"zarr.json": document}
    for row in range(4):
        for number, chunk in enumerate(np.split(ROWS[row * 80 : (row + 1) * 80], 10, axis=2)):
            objects[f"c/{row}/0/{number}"] = bytes(zstd.encode(chunk.tobytes()))
    return MemoryStore(objects)


def read(file, start: int, stop: int) -> None:
    """Read blocks from ``start`` on, each the bytes of `ROWS`."""
    expected = ROWS.data.cast("B")
    for offset in range(start, stop, BLOCK):
        assert file.read(offset, BLOCK) == expected[offset : offset + BLOCK], offset


def test_a_reader_that_stops_leaves_nothing_in_the_scratch_file(mount, rows, tmp_path):
    """Not even what was still being made for it."""
    held, go_on = threading.Event(), threading.Event()

    def hold(call):
        if call.operation == "get" and call.key.startswith("c/1/"):
            held.set()
            assert go_on.wait(20)

    store = FaultStore(rows)
    store.before = hold
    m = mount(store, memory=4 << 20, spill=str(tmp_path))
    file = m.open("array.bin")
    # Slabs of the next row are made ahead of the end of this one.
    read(file, 0, ROW - BLOCK)
    assert file.read(ROW - 4096, 4096) == ROWS.data.cast("B")[ROW - 4096 : ROW]
    assert held.wait(20)
    assert spilled(tmp_path) >= ROW
    file.close()
    go_on.set()
    wait_until(lambda: not spilled(tmp_path))
    # A later reader begins anew.
    file = m.open("array.bin")
    read(file, 0, ROWS.nbytes)


def test_a_row_of_an_earlier_state_is_not_read(mount, rows, tmp_path):
    """A reader keeps a decoded row in the scratch file, and another program replaces its chunks."""
    m = mount(rows, memory=4 << 20, spill=str(tmp_path), recheck=0)
    first = m.open("array.bin")
    read(first, 0, ROW)
    new = ROWS[:80] + 1
    for number, chunk in enumerate(np.split(new, 10, axis=2)):
        rows.put(f"c/0/0/{number}", bytes(numcodecs.Zstd(1).encode(chunk.tobytes())))
    m.tree.nodes.peek("").array.check()
    assert spilled(tmp_path) >= ROW
    second = m.open("array.bin")
    found = b"".join(second.read(offset, BLOCK) for offset in range(0, ROW, BLOCK))
    assert found[:ROW] == new.tobytes()


@pytest.mark.parametrize("checks", [1, 10**6], ids=["once", "always"])
def test_what_is_being_written_to_the_scratch_file_is_not_read(
    mount, rows, tmp_path, monkeypatch, checks
):
    """A stripe is decoded again if a check for changes began meanwhile; until then it is unread."""
    m = mount(rows, memory=4 << 20, spill=str(tmp_path), recheck=0)
    array = m.tree.nodes.peek("").array
    write, take = ScratchFile.write, StagedRows._take
    unfinished, begun, taken = [], [], []

    def write_during_a_check(*given):
        if len(begun) < checks:
            begun.append(array.check())
        write(*given)

    def watched(self, row, piece, parts, memory, done, error):
        taken.append(error)
        if error is None:
            unfinished.extend(p.stripe for p in parts if not row.stripes[p.stripe].done)
        take(self, row, piece, parts, memory, done, error)

    monkeypatch.setattr(ScratchFile, "write", write_during_a_check)
    monkeypatch.setattr(StagedRows, "_take", watched)
    file = m.open("array.bin")
    read(file, 0, 4 * BLOCK)
    file.close()
    assert taken
    assert unfinished == []
    assert any(error is None for error in taken) == (checks == 1)


def test_large_parts_are_read_from_the_scratch_file_little_by_little(
    mount, rows, tmp_path, monkeypatch
):
    m = mount(rows, memory=4 << 20, spill=str(tmp_path))
    sizes = []
    scratch = staged_rows.scratch
    monkeypatch.setattr(staged_rows, "_READ", 10_000)
    monkeypatch.setattr(staged_rows, "scratch", lambda size: sizes.append(size) or scratch(size))
    file = m.open("array.bin")
    read(file, 0, ROWS.nbytes)
    file.close()
    assert 0 < max(sizes) <= 10_000


def spilled(directory) -> int:
    """Bytes of this process's open files in a directory."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            link = f"/proc/self/fd/{number}"
            if os.readlink(link).startswith(f"{directory}/"):
                found += os.stat(link).st_blocks * 512
    return found


def test_readers_share_the_room_for_slabs(mount, store):
    """Where not all of them can have slabs made ahead, each has the one that it reads."""
    slab = 8 * 64 * 512 * 2
    m = mount(store, memory=11 * slab)
    stats = m.tree.stats
    files = [m.open("array.bin") for _ in range(4)]
    expected = VALUES.astype("<u2").tobytes()
    part = VALUES.nbytes // 4
    block = 64 << 10
    hits = 0
    for offset in range(0, part, block):
        for number, file in enumerate(files):
            start = number * part + offset
            assert file.read(start, block) == expected[start : start + block]
            if not offset:
                # The first has three more made ahead, the last of which is the second's; the
                # others have one made in the place of one of these.
                wait_for_loads(m, 2 * (4, 4, 5, 6)[number])
        settle(m)
        if offset == slab // 2:
            hits = stats.hits  # of chunks, for what came before each was taken for a scan
    assert stats.hits == hits
    # When the later ones began, some of what was made ahead for the others was dropped.
    assert stats.loads <= 12 * 2 + 2 * 2


def test_nothing_is_made_ahead_when_the_last_reader_has_stopped(mount, store):
    """A thread that has read a slab for it may ask for the next one only then."""
    m = mount(store)
    slabs = m.tree.find(m.stat("array.bin").inode).node._slabs
    slabs.enter()
    slabs.leave()
    assert not slabs.fetch(0, None)
    assert m.tree.stats.loads == 0
