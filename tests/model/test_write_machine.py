"""Any sequence of writes through any files, against numpy and what others read from the store."""

import threading
import time

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.fs.loop import Loop
from tests.fs.writable import Writable, WritableFile
from tests.fs.write_store import Request, WriteStore
from tests.model.write_arrays import (
    KINDS,
    Kind,
    ModelFiles,
    read_by_zarr_python,
    write_by_zarr_python,
)
from tests.soak import examples
from zarrfs.cache.write import gathering, tile_changes, tiles
from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import StoreFull
from zarrfs.views.slabs import sequential_writes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

# For how many chunks there is room for changes.
ROOM = (1, 3, 20, 1000)
_MEANWHILE = (0.5, 0.2, 0.2, 0.08, 0.02)


class Driver:
    """A mount that is written to, and a model that must agree with it."""

    loop: Loop

    def __init__(
        self, loop: Loop, kind: str, *, byteorder="little", order="C", room=1000, tile=0, **config
    ) -> None:
        """
        tile : bytes up to which changes of several inner chunks are kept together.
        """
        self.loop = loop
        self.kind: Kind = KINDS[kind]
        self.model = ModelFiles(self.kind, byteorder, order, self.kind.empty())
        self.config = {"byteorder": byteorder, "order": order, **config}
        self.room = room
        self.tile = tile
        self.store = WriteStore(self.kind.store())
        self.failing = 0
        self.store.before = self._fail
        self.paths = ["array.bin", "array.npy", *self.kind.files]
        self.files: dict[int, tuple[str, WritableFile]] = {}
        # Where the last write through each file has ended.
        self.ends: dict[int, int] = {}
        self._lock = threading.Lock()
        self.mount()

    def mount(self) -> None:
        tiles._TILE = self.tile
        self.mounted = Writable(self.loop, self.store, flush_delay=3600.0, **self.config)
        cost = self.mounted.array().largest_change
        self.mounted.write_back.budget.total = self.mounted.write_back.budget.most = (
            self.room * cost
        )
        if "array.npy" not in self.mounted.ls():
            self.paths = [path for path in self.paths if path != "array.npy"]
            self.header = 0
        else:
            self.header = self.mounted.stat("array.npy").size - self.mounted.stat("array.bin").size

    def _fail(self, request: Request) -> None:
        with self._lock:
            if request.operation in ("put", "delete") and self.failing:
                self.failing -= 1
                raise StoreFull(request.key, "there is no room")

    def _of_model(self, path: str, offset: int, size: int) -> tuple[str, int, int]:
        """A range behind the header of ``array.npy`` is one of ``array.bin``."""
        if path != "array.npy":
            return path, offset, size
        return "array.bin", max(0, offset - self.header), size - max(0, self.header - offset)

    def size(self, path: str) -> int:
        if path == "array.npy":
            return self.header + self.model.size("array.bin")
        return self.model.size(path)

    def content(self, path: str, offset: int, size: int) -> bytes:
        if path != "array.npy":
            return self.model.content(path)[offset : offset + size]
        npy = bytes(self.header) + self._npy_data()
        return npy[offset : offset + size]

    def _npy_data(self) -> bytes:
        return self.model.content("array.bin")

    def open(self, path: str) -> int:
        file = self.mounted.edit(path)
        number = file.opened.handle
        self.files[number] = path, file
        return number

    def write(self, number: int, offset: int, data: bytes) -> None:
        path, file = self.files[number]
        data = data[: max(0, self.size(path) - offset)]
        if path == "array.npy":
            # Nobody may change the header.
            data = data[max(0, self.header - offset) :]
            offset = max(self.header, offset)
        while True:
            try:
                assert file.write(offset, data) == len(data)
            except StoreFull:
                continue
            break
        self.ends[number] = offset + len(data)
        path, offset, _ = self._of_model(path, offset, len(data))
        self.model.write(path, offset, data)

    def read(self, number: int, offset: int, size: int) -> None:
        path, file = self.files[number]
        found = file.read(offset, size)
        expected = self.content(path, offset, size)
        if path == "array.npy":
            skipped = min(len(found), max(0, self.header - offset))
            found, expected = found[skipped:], expected[skipped:]
        assert found == expected

    def fsync(self, number: int) -> None:
        _, file = self.files[number]
        while True:
            try:
                file.fsync()
            except StoreFull:
                continue
            break
        self.check_store()

    def close(self, number: int) -> None:
        _, file = self.files.pop(number)
        while True:
            try:
                file.flush()
            except StoreFull:
                continue
            break
        file.release()

    def unlink(self, path: str) -> None:
        while True:
            try:
                self.mounted.unlink(path)
            except StoreFull:
                continue
            break
        self.model.remove(path)

    def remount(self) -> None:
        self.failing = 0
        for number in list(self.files):
            self.files.pop(number)[1].release()
        assert self.mounted.fs.drain() == []
        assert self.mounted.write_back.dirty_bytes == 0
        self.check_budget()
        self.mounted.close()
        self.check_store()
        self.mount()

    def check_store(self) -> None:
        expected = self.model.cells.tobytes()
        if self.kind.foreign:
            assert read_by_zarr_python(self.store.objects, self.kind) == expected
        else:
            other = Writable(self.loop, WriteStore(self.store.objects))
            try:
                assert other.read("array.bin") == expected
            finally:
                other.close()

    def check_budget(self) -> None:
        budget = self.mounted.write_back.budget
        assert 0 <= budget.used <= budget.total
        # What is kept for the next writer is no change.
        budget.shrink()
        # Whoever stores in the background releases memory after the changes are settled.
        give_up = time.monotonic() + 10
        while (budget.used == 0) != (self.mounted.write_back.dirty_bytes == 0):
            assert time.monotonic() < give_up, (budget.used, self.mounted.write_back.dirty_bytes)
            time.sleep(0.001)
            budget.shrink()

    def end(self) -> None:
        self.remount()
        self.mounted.close()


class WriteMachine(RuleBasedStateMachine):
    loop: Loop

    def __init__(self) -> None:
        super().__init__()
        self.driver: Driver | None = None

    @initialize(
        kind=st.sampled_from(list(KINDS)),
        byteorder=st.sampled_from(("little", "big")),
        order=st.sampled_from("CF"),
        room=st.sampled_from(ROOM),
        tile=st.sampled_from((64 << 10, 0, 50)),
        store_fill=st.booleans(),
    )
    def mount(self, **choices) -> None:
        self.driver = Driver(self.loop, **choices)

    @rule(data=st.data())
    def open(self, data) -> None:
        assume(len(self.driver.files) < 6)
        self.driver.open(data.draw(st.sampled_from(self.driver.paths)))

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data(), seed=st.integers(0, 2**16), pattern=st.sampled_from(("random", "fill")))
    def write(self, data, seed, pattern) -> None:
        number, offset, size = self._range(data)
        if pattern == "fill":
            # Whole elements of a chunk, or nearly.
            fill = self.driver.kind.fill
            if self.driver.model.byteorder == "big":
                fill = bytes(fill[i] for i in self.driver.kind.reversed_bytes())
            item = self.driver.kind.item
            start = self.driver.header if self.driver.files[number][0] == "array.npy" else 0
            content = (fill * (size // item + 2))[(offset - start) % item :][:size]
        else:
            content = np.random.default_rng(seed).bytes(size)
        self.driver.write(number, offset, content)

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data(), seed=st.integers(0, 2**16), blocks=st.integers(2, 12))
    def write_on(self, data, seed, blocks) -> None:
        """Blocks that follow each other, and what others do in between."""
        driver, random = self.driver, np.random.default_rng(seed)
        numbers = sorted(driver.files)
        number = data.draw(st.sampled_from(numbers))
        block = int(random.integers(1, 40)) * driver.kind.item
        for _ in range(blocks):
            offset = driver.ends.get(number, 0)
            if offset >= driver.size(driver.files[number][0]):
                driver.ends[number] = 0
                return
            driver.write(number, offset, random.bytes(block))
            other = int(random.choice(numbers))
            match random.choice(("nothing", "read back", "read", "write", "fsync"), p=_MEANWHILE):
                case "read back":
                    driver.read(number, max(0, offset - block), 2 * block)
                case "read":
                    driver.read(other, 0, driver.size(driver.files[other][0]))
                case "write":
                    end = driver.ends.get(other)
                    driver.write(other, 0, random.bytes(block))
                    driver.ends[other] = end or 0
                case "fsync":
                    driver.fsync(other)

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data())
    def overwrite(self, data) -> None:
        number = data.draw(st.sampled_from(sorted(self.driver.files)))
        size = self.driver.size(self.driver.files[number][0])
        self.driver.write(number, 0, np.random.default_rng(size).bytes(size))

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data())
    def read(self, data) -> None:
        self.driver.read(*self._range(data))

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data())
    def fsync(self, data) -> None:
        self.driver.fsync(data.draw(st.sampled_from(sorted(self.driver.files))))

    @precondition(lambda self: self.driver.files)
    @rule(data=st.data())
    def close(self, data) -> None:
        self.driver.close(data.draw(st.sampled_from(sorted(self.driver.files))))

    @precondition(lambda self: self.driver.kind.files)
    @rule(data=st.data())
    def unlink(self, data) -> None:
        self.driver.unlink(data.draw(st.sampled_from(sorted(self.driver.kind.files))))

    @rule(times=st.integers(1, 3))
    def fail(self, times) -> None:
        self.driver.failing = times

    @rule()
    def drop_caches(self) -> None:
        self.driver.mounted.drop_caches()

    @rule(data=st.data(), foreign=st.booleans(), seed=st.integers(0, 2**16))
    def remount(self, data, foreign, seed) -> None:
        driver = self.driver
        driver.remount()
        kind = driver.kind
        if not (foreign and kind.foreign and kind.files):
            return
        driver.mounted.close()
        origin, shape = kind.files[data.draw(st.sampled_from(sorted(kind.files)))]
        box = tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))
        part = driver.model.cells[box]
        part[...] = np.random.default_rng(seed).integers(0, 100, part.shape, np.uint8)
        driver.store.objects = write_by_zarr_python(
            driver.store.objects, driver.model.cells, origin, shape
        )
        for key, content in list(driver.store.objects.items()):
            driver.store.replace(key, content)
        driver.mount()

    @invariant()
    def budget_holds(self) -> None:
        if self.driver is not None:
            self.driver.check_budget()

    def teardown(self) -> None:
        if self.driver is not None:
            self.driver.end()

    def _range(self, data) -> tuple[int, int, int]:
        number = data.draw(st.sampled_from(sorted(self.driver.files)))
        size = self.driver.size(self.driver.files[number][0])
        offset = data.draw(st.integers(0, max(0, size - 1)))
        length = data.draw(
            st.sampled_from((0, 1, 2, 3, 5, 12, 40, size // 3, size)) | st.integers(0, size + 3)
        )
        return number, offset, length


@pytest.mark.parametrize("slab", [None, 100, 1 << 20])
@pytest.mark.parametrize("few", [False, True], ids=["", "small changes"])
def test_any_sequence(loop, monkeypatch, slab, few) -> None:
    """
    slab : bytes that are gathered of writes in a row; None: as few as these are not.
    few : whether small changes of these small chunks are kept one by one.
    """
    if few:
        monkeypatch.setattr(tile_changes, "_PATCH", 1)
        monkeypatch.setattr(tile_changes, "_LARGEST_SHARE", 2)
        monkeypatch.setattr(tile_changes, "_MOST_PATCHES", 4)
    monkeypatch.setattr(tiles, "_TILE", tiles._TILE)
    full: list[int] = []
    if slab is not None:
        # As if every second block were one of many.
        monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
        monkeypatch.setattr(sequential_writes, "_LEAST_WRITES", 1)
        monkeypatch.setattr(sequential_writes, "_LARGEST_SLAB", slab)
        append = Gathering.append

        def count(self, file, offset, data, *, wait):
            taken = append(self, file, offset, data, wait=wait)
            full.append(taken < len(data))
            return taken

        def copy_soon(self, size, keep, work, *, quick, copy_soon=WriteBack.copy_soon):
            if len(full) % 2:
                return copy_soon(self, size, keep, work, quick=quick)
            # As if the thread came too late.
            keep()
            return True

        monkeypatch.setattr(gathering, "_AT_ONCE", 0)
        monkeypatch.setattr(Gathering, "append", count)
        monkeypatch.setattr(WriteBack, "copy_soon", copy_soon)
    WriteMachine.loop = loop
    run_state_machine_as_test(
        WriteMachine,
        settings=settings(examples(3 if slab is None else 7), stateful_step_count=40),
    )
    # Writes that only a part of a slab takes are rarer than that each run has one.
    assert slab is None or False in full
