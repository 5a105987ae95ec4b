"""Pages that are changed in a mapping of one view, beside writes through other views.

The kernel hands over whole pages and does not say which of their bytes were changed.
"""

import errno
import mmap
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.arrays import FILL, SHAPE, Target
from tests.soak import TIMES

# Requests of each of several programs that change bytes.
CHANGES = 25 * TIMES
VIEWS = ("array.bin", "array.npy", "chunks/0/0/0", "shards/0/0/0")
# Of the first row of elements, which lie side by side in each view.
ROW_BYTES = 20


@pytest.fixture
def path(mounted, sharded: Target) -> Path:
    return mounted(sharded.group, "rw,allow_remove,flush_delay=3600") / sharded.name


def _start(path: Path, view: str) -> int:
    """Where the elements begin in a view."""
    return (path / view).stat().st_size - sharded_size() if view == "array.npy" else 0


def sharded_size() -> int:
    return int(np.prod(SHAPE)) * 2


class Mapping:
    """The first row of the array in a shared mapping of one of its views."""

    def __init__(self, path: Path, view: str) -> None:
        self._file = os.open(path / view, os.O_RDWR)
        self._mapped = mmap.mmap(self._file, 0)
        self._start = _start(path, view)

    def __setitem__(self, place: slice, data: bytes) -> None:
        self._mapped[place.start + self._start : place.stop + self._start] = data

    def __getitem__(self, place: slice) -> bytes:
        return self._mapped[place.start + self._start : place.stop + self._start]

    def sync(self) -> None:
        self._mapped.flush()

    def close(self) -> None:
        self._mapped.close()
        os.close(self._file)


def _row(path: Path, view: str) -> bytes:
    start = _start(path, view)
    return (path / view).read_bytes()[start : start + ROW_BYTES]


@pytest.mark.parametrize("mapped", VIEWS)
def test_a_changed_page_of_one_view_does_not_undo_a_write_through_another(path, sharded, mapped):
    expected = bytearray(sharded.data.tobytes())
    ways = product([view for view in VIEWS if view != mapped], (os.O_RDWR, os.O_WRONLY))
    for number, (written, flags) in enumerate(ways):
        mapping = Mapping(path, mapped)
        file = os.open(path / written, flags)
        try:
            for turn in range(2):
                value = bytes([65 + number, 97 + turn, 65 + turn])
                mapping[0:3] = expected[0:3] = value
                new = value[::-1] * 3
                assert os.pwrite(file, new, _start(path, written) + 5) == 9
                expected[5:14] = new
                mapping[17:20] = expected[17:20] = value
                os.fsync(file)
                mapping.sync()
                assert {_row(path, view) for view in VIEWS} == {bytes(expected[:ROW_BYTES])}
                assert mapping[0:ROW_BYTES] == expected[:ROW_BYTES]
        finally:
            mapping.close()
            os.close(file)
        assert sharded.stored().tobytes() == expected, (written, flags)


def test_one_view_of_an_array_can_be_mapped_shared_while_it_is_open_for_writing(path):
    """The first one; the others are read and written beside it, and mapped when it is closed."""
    for first in VIEWS:
        mapping = Mapping(path, first)
        for second in (view for view in VIEWS if view != first):
            file = os.open(path / second, os.O_RDWR)
            try:
                with pytest.raises(OSError, match="No such device"):
                    mmap.mmap(file, 0)
                with mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as private:
                    assert private[:] == (path / second).read_bytes()
            finally:
                os.close(file)
        mapping.close()


def test_a_write_through_another_view_wins_over_an_earlier_store_in_a_mapping(path, sharded):
    """Also if it looks like pages."""
    mapping = Mapping(path, "array.bin")
    file = os.open(path / "array.npy", os.O_RDWR)
    try:
        for number, size in enumerate(2 * (2, 4096, 8192)):
            expected = bytes([number + 1]) * size
            mapping[4096:4098] = b"\xaa\xaa"
            os.pwrite(file, expected, _start(path, "array.npy") + 4096)
            os.fsync(file)
            mapping.sync()
            assert mapping[4096 : 4096 + size] == expected
            assert sharded.stored().tobytes()[4096 : 4096 + size] == expected
    finally:
        mapping.close()
        os.close(file)


def test_a_removed_chunk_is_not_brought_back_by_pages_that_were_changed_before(path, sharded):
    """Only what was changed since then comes in."""
    expected = sharded.data.copy()
    views = ("array.bin", "chunks/0/0/0", "shards/0/0/0")
    for view in views:
        mapping = Mapping(path, view)
        try:
            mapping[0:2] = b"xx"
            os.unlink(path / "chunks/0/0/0")
            expected[:10, :10, :10] = FILL
            assert mapping[0:ROW_BYTES] == expected[0, 0, :10].tobytes()
            mapping[4:6] = expected[0, 0, 2:3].data.cast("B")[:] = b"yy"
        finally:
            mapping.close()
        assert (sharded.stored() == expected).all(), view
        (path / "array.bin").write_bytes(sharded.data.tobytes())
        expected[...] = sharded.data


# Changes its own bytes, again and again, to values that it tells at the end. Some programs do so in
# a mapping, if they are the first to open a view for writing. All open their files again and again.
CHANGE = """
import errno, mmap, os, random, sys
path, start, number, count, changes = sys.argv[1], *map(int, sys.argv[2:6])
dice = random.Random(number)
def opened():
    file = os.open(path, os.O_RDWR)
    if number % 2 == 0:
        try:
            return file, mmap.mmap(file, 0)
        except OSError as error:
            assert error.errno == errno.ENODEV
    return file, None
file, mapped = opened()
mine = range(number, 20, count)
values = {}
# About as many pages are flushed from the mapping as bytes are written.
for change in range(changes if mapped is None else 20 * changes):
    if dice.random() < 0.02:
        if mapped is not None:
            mapped.close()
        os.close(file)
        file, mapped = opened()
    place, value = mine[change % len(mine)], dice.randrange(256)
    values[place] = value
    if mapped is not None:
        mapped[start + place] = value
        if dice.random() < 0.05:
            mapped.flush()
    else:
        os.pwrite(file, bytes([value]), start + place)
        if dice.random() < 0.05:
            os.fsync(file)
if mapped is not None:
    mapped.flush()
    mapped.close()
os.close(file)
print(*(f"{place}:{value}" for place, value in values.items()))
"""


@pytest.mark.soak
@pytest.mark.parametrize(
    "views",
    [
        ("array.bin", "chunks/0/0/0"),
        ("array.bin", "chunks/0/0/0", "array.npy", "shards/0/0/0", "array.bin"),
    ],
    ids=len,
)
def test_many_programs_change_their_own_bytes_of_a_page_through_all_views(path, sharded, views):
    """Some in mappings, others by writing; all in the same elements."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", CHANGE, path / view, str(_start(path, view)),
             str(number), str(len(views)), str(CHANGES)],
            stdout=subprocess.PIPE, text=True,
        )
        for number, view in enumerate(views)
    ]  # fmt: skip
    expected = bytearray(sharded.data.tobytes())
    for program in programs:
        told, _ = program.communicate(timeout=60)
        assert program.returncode == 0
        for word in told.split():
            place, value = map(int, word.split(":"))
            expected[place] = value
    assert {_row(path, view) for view in VIEWS} == {bytes(expected[:ROW_BYTES])}
    assert sharded.stored().tobytes() == expected


@pytest.mark.soak
def test_a_mapped_view_of_a_whole_array_beside_writes_through_another_one(path, sharded):
    """Pages are written back in long requests, and each byte belongs to one of both."""
    expected = np.frombuffer(sharded.data.tobytes(), np.uint8).copy()
    mapped = np.memmap(path / "array.bin", np.uint8, "r+")
    file, start = os.open(path / "array.npy", os.O_RDWR), _start(path, "array.npy")

    def change(number: int) -> None:
        random = np.random.default_rng(number)
        for _ in range(CHANGES // 4):
            places = 2 * random.integers(len(expected) // 2, size=100) + number
            values = random.integers(256, size=100, dtype=np.uint8)
            for place, value in zip(places.tolist(), values.tolist(), strict=True):
                expected[place] = value
                if number:
                    os.pwrite(file, bytes([value]), start + place)
                else:
                    mapped[place] = value
            if random.random() < 0.2:
                mapped.flush()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, range(2)))
    mapped.flush()
    os.close(file)
    assert sharded.stored().tobytes() == expected.tobytes()
    assert (mapped == expected).all()


def test_an_array_is_written_through_one_of_its_names(mounted, tmp_path):
    """A page of the other name would undo what came through the first."""
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("deep/a", shape=(40, 40), chunks=(20, 20), dtype="u2")[...] = 1
    outside = zarr.create_array(tmp_path / "o.zarr", shape=9, dtype="u2")
    (tmp_path / "g.zarr/link").symlink_to("deep/a")
    (tmp_path / "g.zarr/above").symlink_to("deep")
    for name in ("one", "two"):
        (tmp_path / "g.zarr" / name).symlink_to(outside.store.root)
    path = mounted(tmp_path / "g.zarr", "rw,follow_symlinks,resize,allow_remove")
    own = path / "deep/a/array.bin"
    for other in ("link", "above/a"):
        place = path / other
        for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
            with pytest.raises(OSError, match="Read-only file system"):
                os.open(place / "array.npy", flags)
        for refused in (place / "chunks/0/0").unlink, partial(os.truncate, place / "array.bin", 80):
            with pytest.raises(PermissionError):
                refused()
        assert "its other name /deep/a" in (place / "zarrfs-note.txt").read_text()
        for number in range(3):
            with open(own, "r+b") as file:
                file.write(bytes([number]))
            assert (place / "array.bin").read_bytes() == own.read_bytes()
    refused = []
    for name in ("one", "two"):
        try:
            os.close(os.open(path / name / "array.bin", os.O_RDWR))
        except OSError as error:
            refused.append(error.errno)
    assert refused == [errno.EROFS]
