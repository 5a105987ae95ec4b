"""Pages that programs have in mappings while the array becomes longer or shorter.

A page of a chunk file has elements beyond the end of the array, and pages of all files may have
rows that are given up. Neither ever comes back over what is there by now.
"""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.arrays import stored

pytestmark = pytest.mark.timeout(60)

WIDTH = 64
ROW = 4 * WIDTH
FILL = 9
KINDS = {
    "chunks/0/0": {"chunks": (4, WIDTH)},
    "shards/0/0": {"chunks": (2, WIDTH), "shards": (4, WIDTH)},
}


class Mounted:
    """An array of two rows, 1 and 2, whose only chunk has room for four."""

    def __init__(self, mounted, place: Path, name: str) -> None:
        self.source = place / "a.zarr"
        zarr.create_array(
            self.source, shape=(2, WIDTH), dtype="<i4", fill_value=FILL, **KINDS[name]
        )[...] = [[1], [2]]
        self.path = mounted(self.source, "rw,resize,flush_delay=3600")
        self.name = name

    def open(self, name: str, flags: int = os.O_RDWR) -> int:
        return os.open(self.path / name, flags)

    def map(self, name: str) -> mmap.mmap:
        file = self.open(name)
        mapped = mmap.mmap(file, 0, mmap.MAP_SHARED)
        os.close(file)
        return mapped

    def expect(self, *rows: int) -> None:
        """What is stored, and what the views show."""
        assert stored(self.source)[:, -1].tolist() == list(rows)
        for name, start in (("array.bin", 0), ("array.npy", 128)):
            found = (self.path / name).read_bytes()[start:]
            assert np.frombuffer(found, "<i4")[WIDTH - 1 :: WIDTH].tolist() == list(rows)
        padded = [*rows, *(4 - len(rows)) * [FILL]]
        assert last_column((self.path / self.name).read_bytes()) == padded[:4]


@pytest.fixture(params=KINDS)
def small(mounted, tmp_path, request):
    return Mounted(mounted, tmp_path, request.param)


def row(value: int) -> bytes:
    return value.to_bytes(4, "little") * WIDTH


def last_column(data: bytes) -> list[int]:
    return np.frombuffer(data, "<i4")[WIDTH - 1 :: WIDTH].tolist()


def test_a_changed_page_of_a_chunk_does_not_undo_new_rows(small):
    for number, flags in enumerate((os.O_WRONLY, os.O_RDWR)):
        mapped = small.map(small.name)
        file = small.open("array.bin", flags)
        mapped[:4] = row(5 + number)[:4]
        os.pwrite(file, row(20 + number), (2 + number) * ROW)
        os.fsync(file)
        mapped.flush()
        mapped.close()
        os.close(file)
    small.expect(1, 2, 20, 21)
    assert stored(small.source)[0, 0] == 6


def test_a_row_beyond_a_gap(small):
    mapped = small.map(small.name)
    mapped[:4] = row(5)[:4]
    with open(small.path / "array.npy", "r+b") as file:
        file.seek(128 + 3 * ROW)
        file.write(row(20))
    mapped.flush()
    small.expect(1, 2, FILL, 20)
    mapped.close()


def test_a_page_does_not_bring_back_a_row_that_was_given_up(small):
    mapped = small.map(small.name)
    mapped[:4] = row(5)[:4]
    os.truncate(small.path / "array.bin", ROW)
    assert last_column(mapped[:]) == [1, FILL, FILL, FILL]
    mapped[4:8] = row(6)[:4]
    os.truncate(small.path / "array.bin", 3 * ROW)
    with open(small.path / "array.bin", "r+b", buffering=0) as file:
        file.seek(2 * ROW)
        file.write(row(30))
        os.fsync(file.fileno())
        mapped[8:12] = row(7)[:4]
        mapped.flush()
        os.fsync(file.fileno())
    assert last_column(mapped[:]) == [1, FILL, 30, FILL]
    small.expect(1, FILL, 30)
    assert stored(small.source)[0, :3].tolist() == [5, 6, 7]
    mapped.close()


@pytest.mark.parametrize("name", ["array.bin", "array.npy"])
def test_a_page_of_a_file_does_not_undo_truncating_the_other_one(small, name):
    start = 128 * (name == "array.npy")
    other = "array.npy" if name == "array.bin" else "array.bin"
    mapped = small.map(name)
    mapped[start : start + 4] = row(5)[:4]
    mapped[start + ROW : start + ROW + 4] = row(6)[:4]
    os.truncate(small.path / other, 128 - start + ROW)
    assert os.stat(small.path / name).st_size == start + ROW
    os.truncate(small.path / other, 128 - start + 2 * ROW)
    mapped.flush()
    small.expect(1, FILL)
    assert stored(small.source)[:, 0].tolist() == [5, FILL]
    mapped.close()


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR])
def test_appending_through_two_files_goes_behind_the_end_of_both(small, flags):
    """The kernel does not ask for the size before it appends, and may know an old one."""
    files = [small.open(name, flags | os.O_APPEND) for name in ("array.npy", "array.bin")]
    for number, file in enumerate(2 * files):
        os.write(file, row(10 + number))
        os.fsync(file)
    assert os.fstat(files[0]).st_size == 128 + 6 * ROW
    for file in files:
        os.write(file, row(20))
        os.close(file)
    assert stored(small.source)[:, 0].tolist() == [1, 2, 10, 11, 12, 13, 20, 20]


def test_what_is_written_to_padding_is_not_shown_later(small):
    for _ in range(2):
        with open(small.path / small.name, "r+b", buffering=0) as file:
            assert last_column(file.read()) == [1, 2, FILL, FILL]
            file.seek(2 * ROW)
            file.write(row(77))
            os.fsync(file.fileno())
            file.seek(0)
            assert last_column(file.read()) == [1, 2, FILL, FILL]
            file.seek(3 * ROW)
            file.write(row(78))
    small.expect(1, 2)
