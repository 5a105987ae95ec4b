"""Open files: handles, requests of any size, missing chunks, status."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numcodecs
import numpy as np
import pytest
import trio
import zarr

from tests.fs.documents import array_document, group_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import BadHandle, BudgetExceeded, ChunkError, StoreError
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def source(tmp_path):
    zarr.create_array(
        tmp_path / "a", data=np.arange(1200, dtype="<i4").reshape(30, 40), chunks=(7, 9)
    )
    return tmp_path / "a"


WHOLE = np.arange(1200, dtype="<i4").tobytes()


def test_requests_of_any_size_anywhere(mount, source):
    file = mount(source).open("array.bin")
    size = len(WHOLE)
    for offset in (0, 1, 3, 158, 160, 161, size - 5, size - 1, size, size + 1, 10**15):
        for length in (0, 1, 2, 4, 7, 159, 161, 1000, 10**6):
            assert file.read(offset, length) == WHOLE[offset : offset + length]


def test_the_header_and_the_elements_behind_it(mount, source):
    m = mount(source)
    whole = m.read("array.npy")
    header = len(whole) - len(WHOLE)
    file = m.open("array.npy")
    for offset in (0, 1, header - 3, header - 1, header, header + 1, len(whole) - 1, len(whole)):
        for length in (0, 1, 2, 3, 4, 5, header, len(whole)):
            assert file.read(offset, length) == whole[offset : offset + length]


def test_a_hit_does_not_yield(mount, source):
    """So that no other request can come between, and none has to wait for it."""
    m = mount(source)
    file = m.open("array.bin")
    file.read_all()

    async def read():
        with trio.CancelScope() as scope:
            scope.cancel()
            return await m.fs.read(file.opened.handle, 0, len(WHOLE))

    assert bytes(m.loop.run(read)) == WHOLE


def test_handles(mount, source):
    m = mount(source)
    first, second = m.open("array.bin"), m.open("array.bin")
    assert first.opened.handle != second.opened.handle
    first.close()
    with pytest.raises(BadHandle):
        first.read(0, 1)
    assert second.read(0, 4) == WHOLE[:4]
    first.close()
    with pytest.raises(BadHandle):
        m.loop.run(m.fs.read, 10**9, 0, 1)


def test_a_reader_that_gives_up_does_not_disturb_the_others(mount, source):
    store = FaultStore(LocalStore(source))
    m = mount(store)
    file = m.open("array.bin")
    go = threading.Event()
    store.before = lambda _call: go.wait(20) or None

    async def give_up():
        with trio.move_on_after(0.05):
            await m.fs.read(file.opened.handle, 0, 100)
            return False
        return True

    assert m.loop.run(give_up)
    go.set()
    assert file.read_all() == WHOLE
    assert m.stats()["memory"]["used"] < 1 << 20


class TestMissingChunks:
    def test_as_an_error(self, mount, source):
        (source / "c/2/1").unlink()
        m = mount(source, fill_missing=False)
        row = 40 * 4
        file = m.open("array.bin")
        assert file.read(0, 14 * row + 9 * 4) == WHOLE[: 14 * row + 9 * 4]
        with pytest.raises(ChunkError) as caught:
            file.read(14 * row + 9 * 4, 4)
        assert caught.value.key == "c/2/1"
        assert "not stored" in caught.value.reason
        with pytest.raises(ChunkError):
            m.read("chunks/2/1")
        assert m.read("chunks/2/0")
        assert ("c/2/1", "chunk [2, 1] is not stored") in m.errors()

    def test_an_inner_chunk_as_an_error(self, mount, tmp_path):
        array = zarr.create_array(
            tmp_path / "a", shape=(8,), chunks=(2,), shards=(8,), dtype="i2", fill_value=0
        )
        array[:4] = [1, 2, 3, 4]
        m = mount(tmp_path / "a", fill_missing=False)
        assert m.read("chunks/1") == np.array([3, 4], "<i2").tobytes()
        with pytest.raises(ChunkError, match="not stored"):
            m.read("chunks/2")


class TestStatus:
    def test_what_is_in_force(self, mount, source):
        m = mount(source, {"source": "somewhere", "memory": 5})
        assert json.loads(m.read(".zarrfs/config.json")) == {"source": "somewhere", "memory": 5}
        assert m.stat(".zarrfs/config.json").size == len(m.read(".zarrfs/config.json"))

    def test_what_happened(self, mount, source):
        m = mount(source, memory=1 << 20)
        before = m.stats()
        assert before["cache"]["loads"] == 0
        assert before["arrays"] == 1
        file = m.open("array.bin")
        file.read_all()
        file.read_all()
        file.read(0, 5)
        after = m.stats()
        assert after["cache"]["misses"] == after["cache"]["loads"] == 25
        assert after["cache"]["hits"] >= 25
        assert after["cache"]["decoded_bytes"] == 25 * 7 * 9 * 4
        assert after["memory"]["chunks"] == 25
        assert after["memory"]["budget"] == 1 << 20
        assert 25 * 7 * 9 * 4 <= after["memory"]["used"] <= after["memory"]["highest"] <= 1 << 20
        assert after["open_files"] == 1
        assert after["dirty_bytes"] == 0
        assert after["errors"] == {"count": 0, "last": []}
        assert after["reads"]["bytes"] > 2 * len(WHOLE)
        # Three whole files, the first one these counts, each up to an empty reply; and 5 bytes.
        assert after["reads"]["count"] - before["reads"]["count"] == 3 * 2 + 1
        assert m.fs.describe_state()

    def test_errors_are_remembered_but_not_all(self, mount, source):
        store = FaultStore(LocalStore(source))
        m = mount(store)

        def fail(call):
            raise StoreError(call.key, "broken")

        store.before = fail
        trees = m.tree.find(m.fs.root_inode).node._trees
        for _ in range(10):
            for i in range(5):
                for j in range(5):
                    # Found without asking the store for attributes.
                    file = m.open_inode(m.fs.root_inode + trees[0].number((i, j)))
                    with pytest.raises(ChunkError):
                        file.read(0, 1)
                    file.close()
        store.before = lambda _call: None
        errors = m.stats()["errors"]
        assert errors["count"] == 250
        assert len(errors["last"]) == 64
        assert {error["reason"] for error in errors["last"]} == {"broken"}


class TestMemory:
    """Whatever the budget is, an array is either refused with a reason or can be read."""

    @pytest.mark.parametrize("codecs", [None, [{"name": "bytes"}, {"name": "gzip",
                                               "configuration": {"level": 1}}]])  # fmt: skip
    def test_around_what_one_chunk_takes(self, mount, codecs):
        members = {} if codecs is None else {"codecs": codecs}
        document = array_document((3000,), (1000,), **members)
        store = MemoryStore({"zarr.json": document})
        outcomes = []
        for memory in [*range(1500, 6000, 197), *range(60_000, 90_000, 1011)]:
            try:
                m = mount(store, memory=memory, loaders=1)
            except BudgetExceeded:
                outcomes.append(False)
                continue
            outcomes.append(True)
            assert m.read("array.bin") == np.full(3000, 7, "<i2").tobytes()
            assert m.stats()["memory"]["highest"] <= memory
        assert outcomes == sorted(outcomes)
        assert {True, False} == set(outcomes)

    @pytest.mark.parametrize("chunk_share", [0.2, 0.45, 0.9])
    @pytest.mark.parametrize("readers", [1, 3])
    def test_scans_of_chunks_that_take_much_of_the_budget(self, mount, chunk_share, readers):
        """More than a megabyte in a row is a scan, which is read ahead of."""
        rows, columns, chunk = 1024, 2048, (8, 2048)
        document = array_document((rows, columns), chunk, data_type="uint8",
                                  codecs=["bytes", {"name": "zstd", "configuration":
                                                    {"level": 0, "checksum": False}}])  # fmt: skip
        numbers = np.arange(rows * columns, dtype="<u4").view("u1")[::4].reshape(rows, columns)
        objects = {
            f"c/{i}/0": numcodecs.Zstd(1).encode(numbers[8 * i : 8 * i + 8].tobytes())
            for i in range(rows // 8)
        }
        one_chunk = 4 * 8 * 2048 + (1 << 16) + 1024
        memory = int(one_chunk / chunk_share * 8 / 7)
        m = mount(MemoryStore({"zarr.json": document, **objects}), memory=memory)
        wrong = []

        def scan():
            file = m.open("array.bin")
            if file.read_all(1 << 17) != numbers.tobytes():
                wrong.append(file)
            file.close()

        with ThreadPoolExecutor(readers) as pool:
            for scanning in [pool.submit(scan) for _ in range(readers)]:
                scanning.result()
        assert wrong == []
        assert m.stats()["memory"]["highest"] <= memory


def test_a_scan_that_pauses_does_not_block_a_large_chunk(mount):
    """What is lent out for the one is more than the other leaves of the budget."""
    memory = 8 << 20
    zstd = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}
    # Four times the chunk and a little is what decoding it takes.
    large = int(0.8 * memory * 7 / 8 / 4)
    m = mount(
        MemoryStore({
            "zarr.json": group_document(),
            "scanned/zarr.json": array_document((16 << 20,), (1 << 16,), data_type="int8"),
            "large/zarr.json": array_document(
                (large,), (large,), data_type="int8", codecs=["bytes", zstd]
            ),
            "large/c/0": numcodecs.Zstd(1).encode(bytes(large)),
        }),
        memory=memory,
    )  # fmt: skip
    scanned = m.open("scanned/array.bin")
    for i in range(32):
        assert scanned.read(i << 17, 1 << 17) == b"\7" * (1 << 17)
    assert m.stats()["memory"]["used"] > memory // 4
    assert m.read("large/array.bin") == bytes(large)
    for i in range(32, 64):
        assert scanned.read(i << 17, 1 << 17) == b"\7" * (1 << 17)
    assert m.stats()["memory"]["highest"] <= memory


@pytest.mark.parametrize("name", ["array.bin", "array.npy"])
def test_the_kernel_gets_whole_chunks_where_they_lie_together(mount, name):
    chunks = {
        f"c/{i}/0": np.arange(i * 600, i * 600 + 600, dtype="<i2").tobytes() for i in range(3)
    }
    m = mount(MemoryStore({"zarr.json": array_document((5, 300), (2, 300)), **chunks}))
    content = m.read(name)
    header = len(content) - 3000
    file = m.open(name)
    # Nobody may come back to what was read once.
    file.read(header + 1300, 100)
    file.read(header + 2500, 10)
    assert m.dropped.given == []
    file.read(header + 1900, 100)
    given = (m.stat(name).inode, header + 1200, content[header + 1200 : header + 2400])
    assert m.dropped.given == [given]
    # The kernel may not have kept it.
    file.read(header + 1500, 100)
    assert m.dropped.given == [given]
    file.read(header + 1500, 100)
    assert m.dropped.given == [given, given]


def test_the_kernel_gets_a_chunk_whenever_it_is_decoded_again(mount):
    """Programs come back to it, and there is no room for it in the cache."""
    chunks = {f"c/{i}/0": bytes([i]) * 1200 for i in range(3)}
    m = mount(MemoryStore({"zarr.json": array_document((5, 300), (2, 300)), **chunks}))
    file = m.open("array.bin")
    for number in range(5):
        file.read(1300, 100)
        assert len(m.dropped.given) == number
        m.tree.nodes.peek("").array._loads.drop(None)


def test_the_kernel_gets_nothing_where_chunks_are_scattered(mount):
    m = mount(MemoryStore({"zarr.json": array_document((4, 6), (2, 2))}))
    file = m.open("array.bin")
    for _ in range(10):
        file.read(3, 5)
    assert m.dropped.given == []


@pytest.mark.parametrize(
    ("shape", "chunks", "shards"),
    [
        # A row of chunks takes 6 MB.
        ((40, 512, 300), (20, 64, 64), None),
        ((40, 512, 300), (20, 64, 64), (20, 128, 128)),
        # Chunks that span the first axis, and short rows.
        ((100, 800, 60), (100, 16, 18), None),
        ((90, 15000, 3), (90, 1000, 2), (90, 2000, 4)),
        # Rows that are single elements of a chunk.
        ((4000, 20, 30), (4000, 1, 1), None),
        # To load a chunk takes more than half of the memory, or nearly all of it.
        ((50, 100, 480), (50, 100, 48), None),
        ((80, 100, 480), (80, 100, 48), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_scan_that_needs_more_than_memory_decodes_each_chunk_once(
    mount, tmp_path, shape, chunks, shards, order
):
    """What it comes back to is kept in a file."""
    numbers = np.arange(np.prod(shape), dtype="<u4").astype("<u2").reshape(shape)
    zarr.create_array(
        tmp_path / "a", data=numbers, chunks=chunks, shards=shards,
        compressors=zarr.codecs.ZstdCodec(level=1),
    )  # fmt: skip
    (tmp_path / "spill").mkdir()
    expected = numbers.tobytes(order)
    count = math.prod(-(-s // c) for s, c in zip(shape, chunks, strict=True))
    m = mount(tmp_path / "a", memory=4 << 20, spill=str(tmp_path / "spill"), order=order)
    assert m.read("array.bin", 1 << 17) == expected
    # Before it is known to be a scan, its first chunks are decoded another time.
    assert count <= m.stats()["cache"]["loads"] <= 2 * count
    assert m.stats()["memory"]["highest"] <= 4 << 20
    if order == "F" or shards is not None or chunks[0] != 20:
        return
    without = mount(tmp_path / "a", memory=4 << 20)
    assert without.read("array.bin", 1 << 17) == expected
    assert without.stats()["cache"]["loads"] > 3 * count
