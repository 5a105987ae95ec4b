"""What is gathered of writes in a row is there for everybody, whichever way they look."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.fs.documents import LITTLE, array_document
from tests.fs.write_store import WriteStore
from tests.waiting import wait_until
from zarrfs.cache.write import gathering as gathering_module
from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.journal.journal import Journal
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.memory.arena import Arena
from zarrfs.views.slabs import sequential_writes, slab_chunks
from zarrfs.views.slabs.slab_chunks import SlabChunks

pytestmark = pytest.mark.timeout(60)

SHAPE, CHUNKS = (64, 16, 8), (16, 8, 8)
OLD = np.arange(64 * 16 * 8, dtype="<u2").reshape(SHAPE)
NEW = OLD + 1000
# Ends in the first row of chunks, so that it is not full.
WRITTEN = 16 * 8 * 2 * 10
PLANE = np.dtype("<u2")


@pytest.fixture(params=[True, False], ids=["decoded before", "not decoded"])
def gathering(opened, gathers_at_once, request):
    """An array of which the first ten planes are gathered and nothing is spread."""
    store = WriteStore({"zarr.json": array_document(SHAPE, CHUNKS, codecs=[LITTLE])})
    for index in np.ndindex(4, 2, 1):
        where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, CHUNKS, strict=True))
        store.replace("/".join(map(str, ("c", *index))), OLD[where].tobytes())
    mount = opened(store)
    if request.param:
        assert mount.read("array.bin", 4096) == OLD.tobytes()
        for index in np.ndindex(4, 2, 1):
            mount.read("/".join(map(str, ("chunks", *index))))
    # Before: to open a file may bring what is gathered into its chunks.
    mount.other = mount.edit("chunks/0/0/0")
    mount.writer = file = mount.edit("array.bin")
    block = WRITTEN // 10
    for offset in range(0, WRITTEN, block):
        file.write(offset, NEW.tobytes()[offset : offset + block])
    (place,) = mount.tree.nodes.all()
    array = place.node.array
    assert isinstance(array, WritableArray)
    assert array.gathering.pending
    assert array.gathering.nbytes >= WRITTEN - 2 * block
    return mount, array


def test_gathered_bytes_win_over_a_small_write_that_is_not_stored_yet(opened, gathers_at_once):
    """Also in the second box of the file that crosses the same chunk."""
    shape = (64, 32, 32)
    mount = opened(WriteStore({"zarr.json": array_document(shape, (64, 16, 16))}))
    file = mount.edit("array.bin")
    now = np.full(64 * 32 * 32, 7, "<u2")
    first, last = 5 * 32 + 3, 20 * 1024 + 77
    for element in (first, 1023, 4096, 5000, 20 * 1024 + 40, last - 1, last + 9):
        file.write(2 * element, b"\2\0")
        now[element] = 2
    new = np.full(last - first, 3, "<u2").tobytes()
    for start in range(0, len(new), 1000):
        file.write(2 * first + start, new[start : start + 1000])
    now[first:last] = 3
    (place,) = mount.tree.nodes.all()
    assert place.node.array.gathering.pending
    assert np.flatnonzero(np.frombuffer(mount.read("array.bin"), "<u2") != now).tolist() == []
    file.close()
    assert np.flatnonzero(np.frombuffer(mount.read("array.bin"), "<u2") != now).tolist() == []


def expected() -> np.ndarray:
    data = OLD.copy()
    data.reshape(-1)[: WRITTEN // 2] = NEW.reshape(-1)[: WRITTEN // 2]
    return data


def test_seen_by_get(gathering):
    _, array = gathering
    chunk = array.get((0, 0, 0))
    # It takes too long for the event loop to have it at once; what is old it never has.
    assert chunk is None or np.array_equal(chunk.view(PLANE)[:10], NEW[:10, :8])
    assert array.get_all([(0, 0, 0)]) is None


@pytest.mark.parametrize("request_size", [64, 4096, 1 << 20])
@pytest.mark.parametrize("path", ["array.bin", "array.npy", "chunks/0/0/0", "chunks/0/1/0"])
def test_seen_through_every_file(gathering, path, request_size):
    mount, _ = gathering
    data = expected()
    content = mount.read(path, request_size)
    if path.startswith("chunks"):
        row = int(path.split("/")[2])
        assert content == data[:16, row * 8 : row * 8 + 8].tobytes()
    else:
        assert content[len(content) - data.nbytes :] == data.tobytes()


def test_not_over_what_is_written_later(gathering):
    mount, _ = gathering
    mount.other.write(0, b"\1\2" * 64)
    data = expected()
    data[0, :8] = 0x0201
    assert mount.read("array.bin") == data.tobytes()
    mount.other.close()
    assert mount.read("array.bin") == data.tobytes()


@pytest.mark.parametrize("way", ["fsync", "close", "end"])
def test_stored_when_asked(gathering, way):
    mount, array = gathering
    {"fsync": mount.other.fsync, "close": mount.writer.close, "end": array.flush}[way]()
    assert not array.gathering.pending
    for row in range(2):
        stored = np.frombuffer(mount.store.objects[f"c/0/{row}/0"], PLANE).reshape(CHUNKS)
        assert np.array_equal(stored, expected()[:16, row * 8 : row * 8 + 8])


def test_kept_in_the_journal(gathering, tmp_path):
    mount, _ = gathering
    journal = Journal(str(tmp_path))
    mount.write_back.keep(journal)
    kept = {entry.header.index: entry for entry in journal.entries()}
    assert set(kept) == {(0, 0, 0), (0, 1, 0)}
    for row in range(2):
        new = kept[0, row, 0].load().elements.view(PLANE)[:10]
        assert np.array_equal(new, expected()[:10, row * 8 : row * 8 + 8])


@pytest.mark.parametrize("staged", [True, False])
def test_who_does_not_wait_gathers_in_memory_only(opened, staged):
    """To touch a staging file may take as long as the disk."""
    mount = opened(WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)}))

    class File:
        nbytes, beside = 4096, 1024

        def put(self, memory, offset, data) -> None:
            memory[offset : offset + len(data)] = data

        def changes(self, memory, marks, start, stop):
            return iter(())

    file = File()
    file.staged = staged
    gathering = mount.array().gathering
    assert gathering.begin(file, 0, 4096, wait=False) != staged
    assert gathering.pending != staged
    assert not gathering.begin(file, 0, 4096, wait=False)
    gathering.scatter()
    mount.wait_for_memory()


def test_makes_room_for_others(gathering):
    mount, array = gathering
    # All there is: only what is gathered, once it is in its chunks, can be stored for that.
    mount.write_back.relieve(mount.write_back.budget.total)
    assert not array.gathering.pending
    mount.write_back.budget.release(mount.write_back.budget.total)


@pytest.mark.parametrize(
    ("shape", "chunks"),
    # Grids that end in a chunk, or in the middle of one, along each axis.
    [
        ((64, 16, 8), (16, 8, 8)),
        ((37, 19, 11), (8, 5, 4)),
        ((20, 7), (6, 3)),
        ((5, 9, 6), (8, 4, 4)),
    ],
)
def test_the_first_axis_fastest(opened, gathers_at_once, monkeypatch, shape, chunks):
    """From a place within a slab to another one, over what was there."""
    size = 2 * int(np.prod(shape))
    monkeypatch.setattr(sequential_writes, "_LARGEST_SLAB", size // shape[-1] * chunks[-1])
    store = WriteStore({"zarr.json": array_document(shape, chunks)})
    mount = opened(store, order="F")
    rng = np.random.default_rng(1)
    data = bytearray(rng.bytes(size))
    mount.write("array.bin", 0, bytes(data))
    start, stop = 2 * (size // 14), 2 * (size // 3)
    data[start:stop] = rng.bytes(stop - start)
    file = mount.edit("array.bin")
    for offset in range(start, stop, 14):
        file.write(offset, data[offset : min(stop, offset + 14)])
    assert mount.array().gathering.pending
    assert mount.read("array.bin") == data
    file.close()
    assert opened(WriteStore(store.objects), order="F").read("array.bin") == data


@pytest.fixture
def puts(monkeypatch):
    """How many bytes each copy to gathered memory has taken; fails where that is told to."""
    sizes: list[int] = []
    put = SlabChunks.put

    def note(self, memory, offset, data) -> None:
        if sizes and sizes[-1] < 0:
            sizes.pop()
            raise MemoryError
        put(self, memory, offset, data)
        sizes.append(len(data))

    monkeypatch.setattr(SlabChunks, "put", note)
    return sizes


@pytest.fixture
def writer(opened, gathers_at_once):
    mount = opened(WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)}))
    file = mount.edit("array.bin")
    file.write(0, NEW.tobytes()[:512])
    return file


@pytest.fixture
def copies(monkeypatch):
    """What a thread would copy soon; nothing is copied unless that is called."""
    due: list[Callable[[], None]] = []

    def copy_soon(_self, _size, keep, work, *, quick) -> bool:
        keep()
        due.append(work)
        return True

    monkeypatch.setattr(gathering_module, "_AT_ONCE", 0)
    monkeypatch.setattr(WriteBack, "copy_soon", copy_soon)
    return due


def test_copied_once_the_write_is_answered(writer, puts, copies):
    writer.write(512, NEW.tobytes()[512:1024])
    assert puts == []
    for copy in copies * 2:
        copy()
    assert puts == [512]
    assert writer.read(0, 1024) == NEW.tobytes()[:1024]


def test_whoever_needs_what_is_not_copied_copies_it(writer, puts, copies):
    for offset in range(512, 2048, 256):
        writer.write(offset, NEW.tobytes()[offset : offset + 256])
    assert puts == []
    assert writer.read(0, 2048) == NEW.tobytes()[:2048]
    assert puts == [256] * 6
    for copy in copies:
        copy()
    assert puts == [256] * 6


def test_the_memory_is_prepared_once_by_the_thread_that_copies_first(writer, copies, monkeypatch):
    """To ask for huge pages may take milliseconds, in which the event loop answers nobody."""
    backed: list[NDArray] = []
    monkeypatch.setattr(Arena, "back", lambda _, memory: backed.append(memory))
    for offset in range(0, 2048, 512):
        writer.write(offset, NEW.tobytes()[offset : offset + 512])
    assert backed == []
    for copy in copies:
        copy()
    assert len(backed) == 1
    assert backed[0].nbytes >= 2048
    assert writer.read(0, 2048) == NEW.tobytes()[:2048]


@pytest.mark.parametrize(
    ("long", "exist", "by_loop"), [(1, True, True), (1 << 20, True, False), (1, False, False)]
)
def test_the_loop_copies_what_is_quick_after_its_reply(
    opened, monkeypatch, gathers_at_once, long, exist, by_loop
):
    monkeypatch.setattr(slab_chunks, "_LONG", long)
    monkeypatch.setattr(gathering_module, "_AT_ONCE", 0)
    put_by: dict[int, int] = {}

    def put(self, memory, offset, data, put=SlabChunks.put) -> None:
        put(self, memory, offset, data)
        put_by[offset // 2] = threading.get_ident()

    def putter(first: int) -> int:
        wait_until(lambda: first in put_by)
        return put_by[first]

    monkeypatch.setattr(SlabChunks, "put", put)
    monkeypatch.setattr(Arena, "back", lambda *_: exist)
    mount = opened(WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)}))
    after = mount.fs.after_reply
    after.begin()
    file = mount.edit("array.bin")
    for number, offset in enumerate(range(0, 2048, 512)):
        file.write(offset, NEW.tobytes()[offset : offset + 512])
        if not number:
            # A thread prepares the memory, which may take long.
            assert putter(0) != threading.get_ident()
            continue
        assert not (by_loop and offset // 2 in put_by)
        after.run()
        assert (putter(offset // 2) == threading.get_ident()) == by_loop
    assert file.read(0, 2048) == NEW.tobytes()[:2048]
    # What is not copied yet is copied by the reader.
    file.write(2048, NEW.tobytes()[2048:2560])
    assert file.read(2048, 512) == NEW.tobytes()[2048:2560]
    after.run()
    assert file.read(0, 2560) == NEW.tobytes()[:2560]
    file.close()


@pytest.mark.parametrize(
    ("shape", "chunks", "order", "longest"),
    [
        ((8, 6, 10), (4, 3, 5), "C", 5),
        ((8, 6, 10), (4, 3, 10), "C", 30),
        ((8, 6, 10), (4, 6, 10), "C", 240),
        ((8, 6, 10), (4, 6, 10), "F", 1),
    ],
)
def test_pieces_of_a_write_in_gathered_memory(opened, shape, chunks, order, longest, monkeypatch):
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
    monkeypatch.setattr(sequential_writes, "_LEAST_WRITES", 0)
    found = []
    begin = Gathering.begin

    def note(self, file, *given, **named):
        found.append(file.longest)
        return begin(self, file, *given, **named)

    monkeypatch.setattr(Gathering, "begin", note)
    mount = opened(WriteStore({"zarr.json": array_document(shape, chunks)}), order=order)
    file = mount.edit("array.bin")
    file.write(0, bytes(64))
    file.write(64, bytes(64))
    file.close()
    assert set(found) == {2 * longest}


def test_threads_copy_beside_each_other_and_a_reader_waits_for_them(writer, copies, monkeypatch):
    """Each copies another write; the reader copies the third."""
    for offset in 512, 1024, 1536:
        writer.write(offset, NEW.tobytes()[offset : offset + 512])
    at_once, go_on = threading.Barrier(3), threading.Event()

    def put(self, *where, put=SlabChunks.put) -> None:
        if not go_on.is_set():
            at_once.wait(20)
            assert go_on.wait(20)
            # Whoever finishes early would read what is not copied yet.
            time.sleep(0.1)
        put(self, *where)

    monkeypatch.setattr(SlabChunks, "put", put)
    threads = [threading.Thread(target=copy) for copy in copies[:2]]
    for thread in threads:
        thread.start()
    at_once.wait(20)
    monkeypatch.setattr(SlabChunks, "put", lambda *_, put=put: (go_on.set(), put(*_)))
    assert writer.read(0, 2048) == NEW.tobytes()[:2048]
    for thread in threads:
        thread.join(20)


def test_a_copy_that_fails_while_a_reader_waits_for_it_is_made_by_the_reader(
    writer, copies, monkeypatch
):
    writer.write(512, NEW.tobytes()[512:1024])
    begun, go_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def put(self, *where, put=SlabChunks.put) -> None:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(20)
            raise MemoryError
        put(self, *where)

    def copy() -> None:
        try:
            copies[0]()
        except MemoryError as error:
            failures.append(error)

    monkeypatch.setattr(SlabChunks, "put", put)
    thread = threading.Thread(target=copy)
    thread.start()
    assert begun.wait(20)
    threading.Timer(0.1, go_on.set).start()
    assert writer.read(0, 1024) == NEW.tobytes()[:1024]
    thread.join(20)
    assert len(failures) == 1


@pytest.mark.parametrize("way", ["fsync", "flush"])
def test_what_could_not_be_copied_is_when_it_is_stored(writer, puts, copies, way):
    writer.write(512, NEW.tobytes()[512:1024])
    puts.append(-1)
    with pytest.raises(MemoryError):
        copies.pop()()
    assert -1 not in puts
    getattr(writer, way)()
    assert writer.read(0, 1024) == NEW.tobytes()[:1024]


def test_whole_chunks_take_what_was_gathered(opened, monkeypatch, gathers_at_once):
    """Nothing is copied, and the memory is used again when all of its chunks are stored."""
    made: list[bool] = []
    init = TileChanges.__init__

    def note(self, form, since=None, memory=None) -> None:
        init(self, form, since, memory)
        made.append(memory is not None and np.shares_memory(self.chunk, memory))

    monkeypatch.setattr(TileChanges, "__init__", note)
    store = WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)})
    mount = opened(store)
    budget = mount.write_back.budget
    file = mount.edit("array.bin")
    for offset in range(0, NEW.nbytes, 512):
        file.write(offset, NEW.tobytes()[offset : offset + 512])
    file.fsync()
    assert made == [True] * 8
    # One slab, or two where the first one was not stored yet when the second one began.
    assert budget.used <= NEW.nbytes
    mount.wait_for_memory()
    assert mount.read("array.bin") == NEW.tobytes()


def test_changes_while_gathered_chunks_are_stored_are_paid_for(opened, gathers_at_once):
    """They take memory of their own, as the chunks' is being stored."""
    store = WriteStore({"zarr.json": array_document((16, 8), (16, 8))})
    mount = opened(store)
    file, array = mount.edit("array.bin"), mount.array()
    where = (slice(0, 1), slice(0, 1))
    block = bytes(range(64))
    changed = threading.Event()

    def change(request) -> None:
        if request.operation == "put" and not changed.is_set():
            changed.set()
            array.write((0, 0), where, np.full((1, 1), 0x0201, PLANE), PLANE, True)

    store.before = change
    for offset in range(0, 256, 64):
        file.write(offset, block)
    file.fsync()
    assert changed.is_set()
    file.fsync()
    assert mount.read("array.bin") == b"\1\2" + (block * 4)[2:]
    assert store.objects["c/0/0"] == b"\1\2" + (block * 4)[2:]
    mount.wait_for_memory()
