"""What one of the processes of a scale test does on the mount."""

import mmap
import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import numpy as np

from tests.scale.hierarchy import CHUNK, array_path, contents

_HELD = 20


class Client:
    """Works on all arrays of a mount, and writes to every ``of``-th from ``own`` on.

    Any byte that it reads of its own arrays must be what it wrote last.
    """

    def __init__(self, mnt: Path, own: int, of: int, arrays: int, chunks: int) -> None:
        self._mnt, self._arrays, self._chunks = mnt, arrays, chunks
        self._own, self._of = own, of
        self._random = Random(own)
        self._written: dict[int, np.ndarray] = {}
        self._handles: list[int] = []
        self.operations = 0

    def look_up(self) -> int:
        """Lists this process's part of the arrays, and stats every name; how many there are."""
        names = 0
        for number in range(self._own, self._arrays, self._of):
            for place in ("", "chunks"):
                with os.scandir(self._path(number) / place) as entries:
                    for entry in entries:
                        entry.stat()
                        names += 1
        return names

    def open_handles(self, count: int) -> None:
        """Opens so many files, and reads of each."""
        for at in range(count):
            number = (self._own + at * self._of) % self._arrays
            path = self._path(number) / ("array.bin" if at % 2 else f"chunks/{at % self._chunks}")
            handle = os.open(path, os.O_RDONLY)
            self._handles.append(handle)
            assert len(os.pread(handle, 2, 0)) == 2

    def close_handles(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()

    def work(self, operations: int, seconds: float) -> None:
        """So many operations, or as many as so many seconds have where these are given."""
        kinds = (
            *(self._read,) * 8, *(self._write,) * 4, self._read_whole, self._list, self._map,
            self._attributes, self._hold, self._ask_for_what_is_not_there, self._read_chunk,
        )  # fmt: skip
        end = time.monotonic() + seconds
        done = 0
        while time.monotonic() < end if seconds else done < operations:
            self._random.choice(kinds)()
            done += 1
        self.operations += done

    def _path(self, number: int) -> Path:
        return self._mnt / array_path(number)

    def _any(self) -> int:
        return self._random.randrange(self._arrays)

    def _any_own(self) -> int:
        return self._random.randrange(self._own, self._arrays, self._of)

    def _expected(self, number: int) -> np.ndarray:
        if (found := self._written.get(number)) is None:
            found = contents(number, self._chunks)
        return found

    def _check(self, number: int, start: int, data: bytes) -> None:
        """start : offset in bytes. Arrays of other processes may be as they are at any time."""
        if number % self._of == self._own:
            whole = self._expected(number).tobytes()
            assert data == whole[start : start + len(data)], f"{self._path(number)}: at {start}"

    def _read(self) -> None:
        number = self._any() if self._random.random() < 0.5 else self._any_own()
        start = self._random.randrange(2 * CHUNK * self._chunks)
        size = self._random.choice((1, 2, 100, 5000))
        handle = os.open(self._path(number) / "array.bin", os.O_RDONLY)
        try:
            data = os.pread(handle, size, start)
        finally:
            os.close(handle)
        assert len(data) == min(size, 2 * CHUNK * self._chunks - start)
        self._check(number, start, data)

    def _read_whole(self) -> None:
        number = self._any_own()
        self._check(number, 0, (self._path(number) / "array.bin").read_bytes())

    def _read_chunk(self) -> None:
        number, chunk = self._any_own(), self._random.randrange(self._chunks)
        data = (self._path(number) / f"chunks/{chunk}").read_bytes()
        self._check(number, 2 * CHUNK * chunk, data)

    def _write(self) -> None:
        number = self._any_own()
        expected = self._written.setdefault(number, contents(number, self._chunks))
        start = self._random.randrange(len(expected))
        values = np.full(self._random.choice((1, 3, 100)), self._random.randrange(1, 65521), "<u2")
        values = values[: len(expected) - start]
        handle = os.open(self._path(number) / "array.bin", os.O_RDWR)
        try:
            os.pwrite(handle, values.tobytes(), 2 * start)
            if self._random.random() < 0.3:
                os.fsync(handle)
        finally:
            os.close(handle)
        expected[start : start + len(values)] = values

    def _list(self) -> None:
        number = self._any()
        assert len(os.listdir(self._path(number) / "chunks")) == self._chunks
        assert "array.bin" in os.listdir(self._path(number))

    def _map(self) -> None:
        number = self._any_own()
        with (
            open(self._path(number) / "array.bin", "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        ):
            start = self._random.randrange(len(mapped))
            self._check(number, start, mapped[start : start + 500])

    def _attributes(self) -> None:
        path = self._path(self._any())
        for name in os.listxattr(path):
            os.getxattr(path, name)

    def _hold(self) -> None:
        with ExitStack() as held:
            for _ in range(_HELD):
                handle = os.open(self._path(self._any()) / "array.npy", os.O_RDONLY)
                held.callback(os.close, handle)

    def _ask_for_what_is_not_there(self) -> None:
        with suppress(FileNotFoundError):
            os.stat(self._path(self._any()) / f"none{self._random.randrange(10**9)}")
