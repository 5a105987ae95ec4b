"""Any sequence of changes, sizes included, against numpy: without a kernel and in a mount."""

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.resize_files import (
    FILL,
    GRIDS,
    HEADER,
    ROW,
    WIDTH,
    DirectFiles,
    Files,
    MakeFiles,
    MountedFiles,
    make,
)
from tests.soak import examples
from zarrfs.cache.write.gathering import Gathering
from zarrfs.views.slabs import sequential_writes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

MOST_ROWS = 14
FLAT = ("array.bin", "array.npy")


class Model:
    """What the files must hold.

    missing : bytes by which a flat file ends before its last row does.
    """

    def __init__(self, kind: str, data: np.ndarray) -> None:
        self.cells = data.copy()
        self.grids = {"chunks": GRIDS[kind]["chunks"]}
        if "shards" in GRIDS[kind]:
            self.grids["shards"] = GRIDS[kind]["shards"]
        self.missing = dict.fromkeys(FLAT, 0)

    def _set_rows(self, rows: int) -> None:
        cells = np.full((rows, WIDTH), FILL, "<u2")
        kept = min(rows, len(self.cells))
        cells[:kept] = self.cells[:kept]
        self.cells = cells

    def _box(self, path: str) -> tuple[tuple[slice, ...], tuple[int, ...]]:
        tree, *index = path.split("/")
        shape = self.grids[tree]
        return tuple(slice(int(i) * n, (int(i) + 1) * n) for i, n in zip(index, shape)), shape  # noqa: B905

    def chunk_files(self) -> list[str]:
        return [
            f"{tree}/{i}/{j}"
            for tree, shape in self.grids.items()
            for i, j in itertools.product(
                range(-(-len(self.cells) // shape[0])), range(-(-WIDTH // shape[1]))
            )
        ]

    def exists(self, path: str) -> bool:
        return path in FLAT or path in self.chunk_files()

    def content(self, path: str) -> bytes:
        if path in FLAT:
            whole = self.cells.tobytes()
            whole = whole[: len(whole) - self.missing[path]]
            return bytes(HEADER) + whole if path == "array.npy" else whole
        if not self.exists(path):
            return b""
        box, shape = self._box(path)
        chunk = np.full(shape, FILL, "<u2")
        inside = self.cells[box]
        chunk[: inside.shape[0], : inside.shape[1]] = inside
        return chunk.tobytes()

    def write(self, path: str, offset: int, data: bytes) -> None:
        if not data:
            return
        if path in FLAT:
            offset -= HEADER if path == "array.npy" else 0
            stop = offset + len(data)
            if stop > self.cells.nbytes:
                self._set_rows(-(-stop // ROW))
                self.missing = dict.fromkeys(FLAT, 0)
                self.missing[path] = self.cells.nbytes - stop
            self.missing[path] = min(self.missing[path], max(0, self.cells.nbytes - stop))
            self.cells.reshape(-1).view(np.uint8)[offset:stop] = np.frombuffer(data, np.uint8)
            return
        chunk = bytearray(self.content(path))
        chunk[offset : offset + len(data)] = data
        box, shape = self._box(path)
        inside = self.cells[box]
        new = np.frombuffer(bytes(chunk), "<u2").reshape(shape)
        inside[...] = new[: inside.shape[0], : inside.shape[1]]

    def truncate(self, path: str, size: int) -> None:
        stop = max(0, size - (HEADER if path == "array.npy" else 0))
        if stop == self.cells.nbytes - self.missing[path]:
            return
        old = self.cells.nbytes - self.missing[path]
        self._set_rows(-(-stop // ROW))
        self.missing = dict.fromkeys(FLAT, 0)
        if stop < old:
            tail = np.resize(np.frombuffer(FILL.to_bytes(2, "little"), np.uint8), self.cells.nbytes)
            self.cells.reshape(-1).view(np.uint8)[stop:] = tail[stop:]

    def remove(self, path: str) -> None:
        self.cells[self._box(path)[0]] = FILL


class ResizeMachine(RuleBasedStateMachine):
    make_files: MakeFiles

    def __init__(self) -> None:
        super().__init__()
        self.files: Files | None = None
        self.opened: dict[int, str] = {}
        # Mounting takes its time.
        self.remounts = 1

    @initialize(kind=st.sampled_from(list(GRIDS)), rows=st.integers(0, 9))
    def mount(self, kind: str, rows: int) -> None:
        root = Path(tempfile.mkdtemp(dir=self.directory)) / "array.zarr"
        self.model = Model(kind, make(root, kind, rows))
        self.files = type(self).make_files(root)

    def _handle(self, data) -> tuple[int, str]:
        handle = data.draw(st.sampled_from(sorted(self.opened)))
        return handle, self.opened[handle]

    @rule(data=st.data())
    def open(self, data) -> None:
        assume(len(self.opened) < 5)
        path = data.draw(st.sampled_from([*FLAT, *FLAT, *self.model.chunk_files()]))
        self.opened[self.files.open(path)] = path

    @precondition(lambda self: self.opened)
    @rule(data=st.data(), seed=st.integers(0, 2**16), mapped=st.booleans())
    def write(self, data, seed, mapped) -> None:
        handle, path = self._handle(data)
        size = len(self.model.content(path))
        first = HEADER if path == "array.npy" else 0
        if mapped or path not in FLAT:
            assume(size > first)
            offset = data.draw(st.integers(first, size - 1))
            length = data.draw(st.integers(1, size - offset))
        else:
            offset = data.draw(
                st.integers(first, size + 2 * ROW) | st.sampled_from([size, max(first, size - 1)])
            )
            length = data.draw(st.integers(1, 3 * ROW))
            assume(offset + length <= first + MOST_ROWS * ROW)
        content = np.random.default_rng(seed).bytes(length)
        if path not in FLAT:
            # A mount shows what was written beyond the array until pages are dropped.
            shown = Model.content(self.model, path)
            before = self.model.cells.copy()
            self.model.write(path, offset, content)
            content = self.model.content(path)[offset : offset + length]
            self.model.cells = before
            assert len(shown) == size
        (self.files.map if mapped else self.files.write)(handle, offset, content)
        self.model.write(path, offset, content)
        if mapped and path in FLAT and self.files.map_closes:
            self.model.missing[path] = 0

    @precondition(lambda self: self.opened)
    @rule(data=st.data(), seed=st.integers(0, 2**16))
    def append(self, data, seed) -> None:
        handle, path = self._handle(data)
        assume(path in FLAT)
        size = len(self.model.content(path))
        length = data.draw(st.sampled_from((1, 2, 3, ROW - 1, ROW, ROW + 1, 3 * ROW)))
        assume(size + length <= HEADER + MOST_ROWS * ROW)
        content = np.random.default_rng(seed).bytes(length)
        self.files.write(handle, size, content)
        self.model.write(path, size, content)

    @precondition(lambda self: set(FLAT) & set(self.opened.values()))
    @rule(data=st.data(), row=st.integers(0, MOST_ROWS - 2), seed=st.integers(0, 2**16))
    def write_on(self, data, row, seed) -> None:
        """Several writes, each from the end of the one before, as a program writes a file."""
        handle = data.draw(st.sampled_from([h for h, path in self.opened.items() if path in FLAT]))
        path = self.opened[handle]
        first = HEADER if path == "array.npy" else 0
        offset = first + row * ROW
        for length in data.draw(st.lists(st.sampled_from((2, 4, ROW)), min_size=2, max_size=4)):
            if offset + length > first + MOST_ROWS * ROW:
                break
            content = np.random.default_rng(seed + offset).bytes(length)
            self.files.write(handle, offset, content)
            self.model.write(path, offset, content)
            offset += length

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def read(self, data) -> None:
        handle, path = self._handle(data)
        expected = self.model.content(path)
        offset = data.draw(st.integers(0, len(expected) + 3))
        size = data.draw(st.integers(0, len(expected) + 3))
        found = self.files.read(handle, offset, size)
        expected = expected[offset : offset + size]
        header = max(0, HEADER - offset) if path == "array.npy" else 0
        assert (len(found), found[header:]) == (len(expected), expected[header:])

    @rule()
    def read_everything(self) -> None:
        for path in [*FLAT, *self.model.chunk_files()]:
            handle = self.files.open(path)
            found = self.files.read(handle, 0, 1 << 16)
            expected = self.model.content(path)
            skip = HEADER if path == "array.npy" else 0
            assert (len(found), found[skip:]) == (len(expected), expected[skip:]), path
            if skip:
                shape = (len(self.model.cells), WIDTH)
                assert f"'shape': {shape}".encode() in found[:skip]
            # That was one more who could write.
            self.files.close(handle)
            self._closed(path)

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def fsync(self, data) -> None:
        handle, _ = self._handle(data)
        self.files.fsync(handle)
        assert self.files.stored() == self.model.cells.tobytes()

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def close(self, data) -> None:
        handle, path = self._handle(data)
        del self.opened[handle]
        self.files.close(handle)
        self._closed(path)

    def _closed(self, path: str) -> None:
        if path in FLAT and path not in self.opened.values():
            self.model.missing[path] = 0

    @rule(data=st.data(), path=st.sampled_from(FLAT))
    def truncate(self, data, path) -> None:
        first = HEADER if path == "array.npy" else 0
        rows = data.draw(st.integers(0, MOST_ROWS))
        size = first + data.draw(st.just(rows * ROW) | st.integers(0, MOST_ROWS * ROW))
        handles = [handle for handle, opened in self.opened.items() if opened == path]
        handle = data.draw(st.sampled_from([None, *handles]))
        changes = size != len(self.model.content(path))
        self.files.truncate(path, size, handle)
        self.model.truncate(path, size)
        if changes:
            # To the size that it has it does nothing, and stores nothing.
            assert self.files.stored() == self.model.cells.tobytes()
        assert self.files.size(path) == len(self.model.content(path))

    @precondition(lambda self: self.model.chunk_files())
    @rule(data=st.data())
    def unlink(self, data) -> None:
        path = data.draw(st.sampled_from(self.model.chunk_files()))
        self.files.unlink(path)
        self.model.remove(path)

    @rule()
    def list(self) -> None:
        for tree, shape in self.model.grids.items():
            count = math.ceil(len(self.model.cells) / shape[0])
            assert sorted(map(int, self.files.names(tree))) == list(range(count))

    @rule()
    def drop_caches(self) -> None:
        self.files.drop_caches()

    @precondition(lambda self: self.remounts)
    @rule()
    def remount(self) -> None:
        self.remounts -= 1
        self.opened.clear()
        self.files.remount()
        self.model.missing = dict.fromkeys(FLAT, 0)
        assert self.files.stored() == self.model.cells.tobytes()

    def teardown(self) -> None:
        if self.files is not None:
            self.files.end()
            assert self.files.stored() == self.model.cells.tobytes()


def run(files: MakeFiles, directory: Path, count: int, steps: int) -> None:
    machine = type("Machine", (ResizeMachine,), {
        "make_files": staticmethod(files), "directory": directory,
    })  # fmt: skip
    run_state_machine_as_test(
        machine,
        settings=settings(examples(count), stateful_step_count=steps),
    )


def test_without_a_kernel(loop, tmp_path) -> None:
    run(lambda root: DirectFiles(loop, root), tmp_path, 6, 40)


def test_with_writes_that_are_gathered(loop, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
    monkeypatch.setattr(sequential_writes, "_LEAST_WRITES", 1)
    taken: list[int] = []
    append = Gathering.append

    def count(self, file, offset, data, *, wait):
        taken.append(append(self, file, offset, data, wait=wait))
        return taken[-1]

    monkeypatch.setattr(Gathering, "append", count)
    run(lambda root: DirectFiles(loop, root), tmp_path, 6, 40)
    assert any(taken)


def test_in_a_mount(mount_daemon, tmp_path) -> None:
    run(lambda root: MountedFiles(mount_daemon, root), tmp_path, 3, 60)
