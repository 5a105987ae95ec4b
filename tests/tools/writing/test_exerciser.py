"""A file system exerciser as fsx is, for the views of one array.

Random operations on random ranges through several views, chunk and shard files among them, each
compared with a buffer in memory; from time to time all is synced, and other implementations read
the store.
"""

import mmap
import os
import random
from pathlib import Path

import numpy as np
import pytest

from tests.mount.arrays import FILL, Target, make_array
from tests.soak import TIMES

OPERATIONS = 250 * TIMES


class _File:
    """One view of an array: its descriptor, a mapping, and what it should hold.

    Only one view can be mapped while it is open for writing; the others are written to beside it.

    data : all elements of the array; a view of it is what is in the file behind ``start``.
    region : the part of the array that is in the file, whose bytes are one after the other.
    """

    def __init__(self, path: Path, data: np.ndarray, region: tuple[slice, ...] = ()) -> None:
        self.path = path
        self._part = data[region]
        self.size = self._part.nbytes
        self.start = path.stat().st_size - self.size
        self.file = -1
        self.mapped: mmap.mmap | None = None

    def open(self, *, mapped: bool) -> None:
        self.file = os.open(self.path, os.O_RDWR)
        if mapped:
            self.mapped = mmap.mmap(self.file, 0, mmap.MAP_SHARED)

    def close(self) -> None:
        if self.mapped is not None:
            self.mapped.close()
        self.mapped = None
        os.close(self.file)

    @property
    def expected(self) -> bytes:
        return self._part.tobytes()

    def expect(self, start: int, data: bytes) -> None:
        whole = bytearray(self._part.tobytes())
        whole[start : start + len(data)] = data
        self._part[...] = np.frombuffer(whole, self._part.dtype).reshape(self._part.shape)


class Exerciser:
    """What is written through one view is seen through another one after a sync, as promised."""

    def __init__(self, directory: Path, target: Target, seed: int) -> None:
        self.dice = random.Random(seed)
        self.data = target.data.copy()
        self.files = [_File(directory / name, self.data) for name in ("array.bin", "array.npy")]
        files = [("chunks", target.chunk)]
        if target.shard is not None:
            files.append(("shards", target.shard))
        for name, shape in files:
            # One at the border of the array has elements beyond it, which are not kept.
            region = tuple(slice(n) for n in shape)
            self.files.append(_File(directory / name / "0/0/0", self.data, region))
        self.file = self.files[0]
        for file in self.files:
            file.open(mapped=file is self.file)
        self.done: list[str] = []

    def run(self, operations: int) -> None:
        choices = [
            *(
                3 * [self.write_beside]
                + 6 * [self.read]
                + 6 * [self.write]
                + 4 * [self.mapped_read]
            ),
            *(4 * [self.mapped_write] + 2 * [self.fsync] + [self.msync, self.reopen]),
            *([self.other_view, self.truncate, self.copy_descriptor]),
        ]
        for _ in range(operations):
            self.dice.choice(choices)()

    def close(self) -> None:
        for file in self.files:
            file.close()

    def _range(self) -> tuple[int, int]:
        size = self.file.size
        length = min(int(self.dice.expovariate(1 / 9000)) + 1, size)
        start = self.dice.randrange(size - length + 1)
        return start, start + length

    def _note(self, what: str, start: int = 0, stop: int = 0) -> None:
        self.done.append(f"{what} {self.file.path} {start}-{stop}")

    def _check(self, found: bytes, start: int, stop: int) -> None:
        expected = self.file.expected[start:stop]
        if found == expected:
            return
        wrong = [i for i in range(stop - start) if found[i] != expected[i]]
        said = "\n".join(self.done[-30:])
        raise AssertionError(f"{len(wrong)} bytes from {start + wrong[0]} are wrong after\n{said}")

    def read(self) -> None:
        start, stop = self._range()
        self._note("read", start, stop)
        self._check(os.pread(self.file.file, stop - start, start + self.file.start), start, stop)

    def write(self) -> None:
        start, stop = self._range()
        self._note("write", start, stop)
        data = self.dice.randbytes(stop - start)
        assert os.pwrite(self.file.file, data, start + self.file.start) == len(data)
        self.file.expect(start, data)

    def mapped_read(self) -> None:
        start, stop = self._range()
        self._note("mapped read", start, stop)
        begin = self.file.start
        self._check(self.file.mapped[begin + start : begin + stop], start, stop)

    def mapped_write(self) -> None:
        start, stop = self._range()
        self._note("mapped write", start, stop)
        data = self.dice.randbytes(stop - start)
        self.file.mapped[self.file.start + start : self.file.start + stop] = data
        self.file.expect(start, data)

    def fsync(self) -> None:
        self._note("fsync")
        os.fsync(self.file.file)

    def msync(self) -> None:
        self._note("msync")
        self.file.mapped.flush()

    def reopen(self) -> None:
        self._note("reopen")
        self.file.close()
        self.file.open(mapped=True)

    def other_view(self) -> None:
        self.msync()
        before, self.file = self.file, self.dice.choice(self.files)
        self._note("go on with")
        for file in {before, self.file}:
            file.close()
        self.file.open(mapped=True)
        if before is not self.file:
            before.open(mapped=False)

    def write_beside(self) -> None:
        """Write through another view; no changed page of the mapping undoes that."""
        mine = self.file
        self.file = self.dice.choice([file for file in self.files if file is not mine])
        self.write()
        self.file = mine

    def truncate(self) -> None:
        """Changes nothing, not even what only a mapping holds."""
        self._note("truncate")
        if self.dice.random() < 0.5:
            os.ftruncate(self.file.file, self.dice.choice((0, self.file.size + self.file.start)))
        else:
            os.close(os.open(self.file.path, os.O_WRONLY | os.O_TRUNC))
            # Until somebody asks, the kernel takes the file for empty: see `fstat` of `cp`.
            os.stat(self.file.path)

    def copy_descriptor(self) -> None:
        """Writes through a copy, whose close stores what it wrote and what was mapped."""
        start, stop = self._range()
        self._note("write through a copy", start, stop)
        data = self.dice.randbytes(stop - start)
        copy = os.dup(self.file.file)
        os.pwrite(copy, data, start + self.file.start)
        os.close(copy)
        self.file.expect(start, data)


class ResizingExerciser:
    """The same for a mount with ``-o resize``: ``array.bin`` becomes longer and shorter.

    So does ``array.npy``, and with them the number of chunk and shard files changes. What is
    written through one file is synced before another is used, as promised.
    """

    MOST = 90

    def __init__(self, directory: Path, target: Target, seed: int) -> None:
        self.dice = random.Random(seed)
        self.path = directory / "array.bin"
        self.data = target.data.copy()
        self.row = self.data[0].nbytes
        self.file = os.open(self.path, os.O_RDWR)
        self.parts = {"chunks": target.chunk}
        if target.shard is not None:
            self.parts["shards"] = target.shard
        self.done: list[str] = []

    def run(self, operations: int) -> None:
        choices = [
            *(6 * [self.read] + 6 * [self.write] + 3 * [self.append] + 2 * [self.write_beyond]),
            *(3 * [self.truncate] + 2 * [self.mapped] + 2 * [self.fsync] + [self.reopen]),
            *(2 * [self.through_npy] + 3 * [self.through_part]),
        ]
        for _ in range(operations):
            choice = self.dice.choice(choices)
            self.done.append(f"{choice.__name__} of {len(self.data)} rows")
            choice()
            assert os.fstat(self.file).st_size == self.data.nbytes, self.done[-30:]

    def close(self) -> None:
        os.close(self.file)

    def read(self) -> None:
        start, stop = self._rows()
        found = os.pread(self.file, (stop - start) * self.row, start * self.row)
        assert found == self.data[start:stop].tobytes(), self.done[-30:]

    def write(self) -> None:
        start, stop = self._rows()
        os.pwrite(self.file, self._new(start, stop), start * self.row)

    def append(self) -> None:
        self._grow(len(self.data), self.dice.randint(1, 9))

    def write_beyond(self) -> None:
        """What is left out is of the fill value."""
        self._grow(len(self.data) + self.dice.randint(1, 9), self.dice.randint(1, 4))

    def truncate(self) -> None:
        """To fewer rows or to more, which are of the fill value."""
        rows = self.dice.choice((0, len(self.data) // 2, self.dice.randint(1, self.MOST)))
        os.ftruncate(self.file, rows * self.row)
        self._resize(rows)

    def mapped(self) -> None:
        start, stop = self._rows()
        if start == stop:
            return
        with mmap.mmap(self.file, 0, mmap.MAP_SHARED) as mapped:
            where = slice(start * self.row, stop * self.row)
            assert mapped[where] == self.data[start:stop].tobytes(), self.done[-30:]
            mapped[where] = self._new(start, stop)
            mapped.flush()

    def fsync(self) -> None:
        os.fsync(self.file)

    def reopen(self) -> None:
        self.close()
        self.file = os.open(self.path, os.O_RDWR)

    def through_npy(self) -> None:
        """Read, write, append and truncate through the file with a header."""
        self.fsync()
        path = self.path.with_suffix(".npy")
        assert np.array_equal(np.load(path, mmap_mode="r"), self.data), self.done[-30:]
        file = os.open(path, os.O_RDWR)
        try:
            header = os.fstat(file).st_size - self.data.nbytes
            start, stop = self._rows()
            os.pwrite(file, self._new(start, stop), header + start * self.row)
            if self.dice.random() < 0.5:
                rows = self.dice.randint(0, self.MOST)
                os.ftruncate(file, header + rows * self.row)
                self._resize(rows)
            start, stop = len(self.data), min(self.MOST, len(self.data) + 3)
            self._resize(stop)
            os.pwrite(file, self._new(start, stop), header + start * self.row)
        finally:
            os.close(file)

    def through_part(self) -> None:
        """Read a chunk or shard file, and write to it; what is behind the end is not kept."""
        if not len(self.data):
            return
        self.fsync()
        name, shape = self.dice.choice(list(self.parts.items()))
        counts = [-(-n // size) for n, size in zip(self.data.shape, shape, strict=True)]
        index = [self.dice.randrange(count) for count in counts]
        part = self.data[tuple(slice(i * n, i * n + n) for i, n in zip(index, shape, strict=True))]
        valid = tuple(map(slice, part.shape))
        whole = np.full(shape, FILL, self.data.dtype)
        whole[valid] = part
        file = os.open(self.path.parent / name / "/".join(map(str, index)), os.O_RDWR)
        try:
            assert os.pread(file, whole.nbytes + 1, 0) == whole.tobytes(), (index, self.done[-30:])
            start, stop = sorted(self.dice.choices(range(whole.nbytes + 1), k=2))
            new = bytearray(whole.tobytes())
            new[start:stop] = self.dice.randbytes(stop - start)
            os.pwrite(file, new[start:stop], start)
            part[...] = np.frombuffer(new, whole.dtype).reshape(shape)[valid]
        finally:
            os.close(file)

    def _rows(self) -> tuple[int, int]:
        start, stop = sorted(self.dice.choices(range(len(self.data) + 1), k=2))
        return start, stop

    def _grow(self, start: int, count: int) -> None:
        if start + count > self.MOST:
            return
        self._resize(start + count)
        os.pwrite(self.file, self._new(start, start + count), start * self.row)

    def _resize(self, rows: int) -> None:
        kept = self.data[:rows]
        self.data = np.full((rows, *self.data.shape[1:]), FILL, self.data.dtype)
        self.data[: len(kept)] = kept

    def _new(self, start: int, stop: int) -> bytes:
        data = self.dice.randbytes((stop - start) * self.row)
        self.data[start:stop] = np.frombuffer(data, self.data.dtype).reshape(
            self.data[start:stop].shape
        )
        return data


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("kind", ["plain", "sharded"])
@pytest.mark.parametrize("resizes", [False, True])
def test_exerciser(mounted, tmp_path, kind, resizes):
    target = make_array(tmp_path / "group.zarr", "a", kind)
    options = "rw,flush_delay=0.1,memory=16M" + ",resize" * resizes
    path = mounted(target.group, options) / target.name
    exerciser = (ResizingExerciser if resizes else Exerciser)(path, target, TIMES)
    try:
        for _ in range(4):
            exerciser.run(OPERATIONS // (8 if resizes else 4))
            exerciser.fsync() if resizes else exerciser.msync()
            assert np.array_equal(target.stored(), exerciser.data)
    finally:
        exerciser.close()
