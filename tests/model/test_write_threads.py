"""Many threads that write, read and flush one array at once, with hardly any memory."""

import math
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fs.writable import Writable
from tests.fs.write_store import Request, WriteStore
from tests.model.write_arrays import KINDS, ModelFiles
from tests.soak import EXHAUSTIVE, TIMES
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.errors import StoreFull

pytestmark = pytest.mark.timeout(100)

WRITERS = 4
# Not a multiple of any element, so that writers share elements, each with bytes of its own.
STRIPE = 7
OF_KIND = ("one axis", "plain", "raw24", "complex128", "sharded", "nested", "around nested")
# For how many chunks there is room, and which share of the requests fails.
ROOMS = ((1, 0.2), (1, 0.0), (4, 0.2), (1000, 0.0))


@pytest.fixture
def hasty():
    """Threads that are interrupted all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Trouble:
    """A store that is slow, and fails, now and then."""

    def __init__(self, seed: int, failures: float) -> None:
        self.random = random.Random(seed)
        self.failures = failures

    def __call__(self, request: Request) -> None:
        draw = self.random.random()
        if draw < 0.3:
            time.sleep(0.001 * draw)
        if request.operation in ("put", "delete") and self.random.random() < self.failures:
            raise StoreFull(request.key, "by this test")


def until_done(action, *arguments):
    while True:
        try:
            return action(*arguments)
        except StoreFull:
            continue


class Writer:
    """Owns every WRITERS-th stripe of the bytes of ``array.bin``."""

    def __init__(self, number: int, mount: Writable, size: int) -> None:
        self.mount = mount
        self.random = random.Random(number)
        self.stripes = range(number * STRIPE, size, WRITERS * STRIPE)
        self.size = size
        self.content: dict[int, bytes] = {}

    def run(self, steps: int) -> None:
        file = self.mount.edit("array.bin")
        for _ in range(steps):
            start = self.random.choice(self.stripes)
            step = self.random.random()
            if step < 0.6:
                data = self.random.randbytes(min(STRIPE, self.size - start))
                until_done(file.write, start, data)
                self.content[start] = data
            elif step < 0.9:
                if start in self.content:
                    found = file.read(start, len(self.content[start]))
                    assert found == self.content[start], start
            elif step < 0.95:
                until_done(file.fsync)
            elif step < 0.97:
                until_done(file.flush)
                file.release()
                file = self.mount.edit("array.bin")
            else:
                self.mount.drop_caches()
        until_done(file.flush)
        file.release()


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "room", "failures"), [
    (kind, *room)
    for number, kind in enumerate(OF_KIND)
    for place, room in enumerate(ROOMS)
    if EXHAUSTIVE or number % len(ROOMS) == place or place == number // len(ROOMS)
])  # fmt: skip
def test_threads(loop, hasty, kind, failures, room):
    steps = 35 * TIMES
    array = KINDS[kind]
    store = WriteStore(array.store())
    mount = Writable(loop, store, flush_delay=0.05, recheck=0.0)
    try:
        cost = mount.array().largest_change
        mount.write_back.budget.total = mount.write_back.budget.most = room * cost
        size = mount.stat("array.bin").size
        store.before = Trouble(room, failures)
        writers = [Writer(number, mount, size) for number in range(WRITERS)]
        with ThreadPoolExecutor(WRITERS) as pool:
            for writing in [pool.submit(writer.run, steps) for writer in writers]:
                writing.result()
        store.before = lambda _request: None
        assert mount.fs.drain() == []
        budget = mount.write_back.budget
        budget.shrink()
        assert budget.used == 0
        assert mount.write_back._storing.used == 0
        # Chunks that change while they are stored are copied, and take their marks, room or not.
        elements = math.prod(mount.array().tiles.grid.largest_chunk)
        more = elements * (mount.array().array.layout.data_type.dtype.itemsize + 1)
        assert budget.highest <= budget.total + budget.total // (cost - elements) * more
        expected = bytearray(ModelFiles(array, "little", "C", array.empty()).content("array.bin"))
        for writer in writers:
            for start, data in writer.content.items():
                expected[start : start + len(data)] = data
        assert mount.read("array.bin") == expected
        mount.drop_caches()
        assert mount.read("array.bin") == expected
        other = Writable(loop, WriteStore(store.objects))
        try:
            assert other.read("array.bin") == expected
        finally:
            other.close()
    finally:
        mount.close()


def test_a_chunk_rewritten_all_the_time_is_stored_all_the_same(loop, hasty):
    """Its flushes do not wait for a moment of rest."""
    store = WriteStore(KINDS["one axis"].store())
    mount = Writable(loop, store, flush_delay=0.02)
    over = threading.Event()
    file = mount.edit("array.bin")

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            file.write(2, number.to_bytes(2, "little"))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    give_up = time.monotonic() + 30
    seen = set()
    while len(seen) < 5:
        assert time.monotonic() < give_up
        if (data := store.objects.get("c/0")) is not None:
            seen.add(int(np.frombuffer(data, "<u2")[1]))
        file.fsync()
    over.set()
    thread.join(20)
    file.close()
    mount.close()


def test_changes_that_cannot_be_stored_are_never_out_of_sight(loop, monkeypatch):
    """Readers look without a lock whether there are any."""
    store = WriteStore(KINDS["one axis"].store())
    mount = Writable(loop, store, flush_delay=60)
    dirty = mount.array()._dirty
    seen: list[bool] = []
    end_store = TileChanges.end_store

    def look(chunk: TileChanges) -> None:
        seen.append(bool(dirty))
        end_store(chunk)

    monkeypatch.setattr(TileChanges, "end_store", look)
    store.before = Trouble(0, 1.0)
    file = mount.edit("array.bin")
    file.write(2, b"ab")
    with pytest.raises(StoreFull):
        file.fsync()
    assert seen
    assert all(seen)
    store.before = lambda _request: None
    file.close()
    assert not dirty
    mount.close()
