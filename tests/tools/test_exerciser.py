"""A file system exerciser as fsx is, for files of fixed size and the views of one array.

Random operations on random ranges through several views, each compared with a buffer in
memory; from time to time all is synced, and other implementations read the store.
"""

from __future__ import annotations

import mmap
import os
import random
from pathlib import Path

import pytest

from tests.mount.arrays import make_array
from tests.soak import TIMES

OPERATIONS = 400 * TIMES
SIZE = 240_000


class _File:
    """One view of the whole array: its descriptor, and a mapping."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = path.stat().st_size - SIZE
        self.open()

    def open(self) -> None:
        self.file = os.open(self.path, os.O_RDWR)
        self.mapped = mmap.mmap(self.file, 0, mmap.MAP_SHARED)

    def close(self) -> None:
        self.mapped.close()
        os.close(self.file)


class Exerciser:
    """What is written through one view is synced before another is used, as promised."""

    def __init__(self, directory: Path, expected: bytes, seed: int) -> None:
        self.dice = random.Random(seed)
        self.files = [_File(directory / name) for name in ("array.bin", "array.npy")]
        self.file = self.files[0]
        self.expected = bytearray(expected)
        self.done: list[str] = []

    def run(self, operations: int) -> None:
        choices = [
            *(6 * [self.read] + 6 * [self.write] + 4 * [self.mapped_read]),
            *(4 * [self.mapped_write] + 2 * [self.fsync] + [self.msync, self.reopen]),
            *([self.other_view, self.truncate]),
        ]
        for _ in range(operations):
            self.dice.choice(choices)()

    def close(self) -> None:
        for file in self.files:
            file.close()

    def _range(self) -> tuple[int, int]:
        length = min(int(self.dice.expovariate(1 / 9000)) + 1, SIZE)
        start = self.dice.randrange(SIZE - length + 1)
        return start, start + length

    def _note(self, what: str, start: int = 0, stop: int = SIZE) -> None:
        self.done.append(f"{what} {self.file.path.name} {start}-{stop}")

    def _check(self, found: bytes, start: int, stop: int) -> None:
        if found == self.expected[start:stop]:
            return
        wrong = [i for i in range(stop - start) if found[i] != self.expected[start + i]]
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
        self.expected[start:stop] = data

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
        self.expected[start:stop] = data

    def fsync(self) -> None:
        self._note("fsync")
        os.fsync(self.file.file)

    def msync(self) -> None:
        self._note("msync")
        self.file.mapped.flush()

    def reopen(self) -> None:
        self._note("reopen")
        self.file.close()
        self.file.open()

    def other_view(self) -> None:
        self.msync()
        self.file = self.dice.choice(self.files)
        self._note("go on with")

    def truncate(self) -> None:
        """Changes nothing, not even what only a mapping holds."""
        self._note("truncate")
        if self.dice.random() < 0.5:
            os.ftruncate(self.file.file, self.dice.choice((0, SIZE + self.file.start)))
        else:
            os.close(os.open(self.file.path, os.O_WRONLY | os.O_TRUNC))
            # Until somebody asks, the kernel takes the file for empty: see `fstat` of `cp`.
            os.stat(self.file.path)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("kind", ["plain", "sharded"])
def test_exerciser(mounted, tmp_path, kind):
    target = make_array(tmp_path / "group.zarr", "a", kind)
    path = mounted(target.group, "rw,flush_delay=0.1,memory=16M") / target.name
    exerciser = Exerciser(path, target.data.tobytes(), TIMES)
    try:
        for _ in range(4):
            exerciser.run(OPERATIONS // 4)
            exerciser.msync()
            assert target.stored().tobytes() == exerciser.expected
    finally:
        exerciser.close()
