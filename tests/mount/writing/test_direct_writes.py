"""Programs that write past the kernel's pages, beside others that have such pages."""

import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tests.mount.arrays import SHAPE, other
from tests.soak import TIMES

SIZE = int(np.prod(SHAPE)) * 2
# Bytes that one program writes, while another one goes on changing others.
CHANGES = 15 * TIMES


@pytest.fixture
def path(mounted, target):
    return mounted(target.group, "rw") / target.name / "array.bin"


@contextmanager
def both(path: Path, flags: int, first: str) -> Iterator[tuple[int, int]]:
    """A file opened for writing alone, before what is opened with ``flags`` or after it."""
    order = [os.O_WRONLY, flags] if first == "writer" else [flags, os.O_WRONLY]
    files = {opened: os.open(path, opened) for opened in order}
    try:
        yield files[os.O_WRONLY], files[flags]
    finally:
        for file in files.values():
            os.close(file)


def test_whole_array(path, target):
    """Also out of memory that begins within a page, in which requests end elsewhere."""
    for turn, size in enumerate((1000, 4096, 1 << 20)):
        new = (other(target.data) + np.uint16(turn)).tobytes()
        buffer = memoryview(bytearray(size + 4096))
        file = os.open(path, os.O_WRONLY)
        try:
            for number, start in enumerate(range(0, SIZE, size)):
                part = new[start : start + size]
                within = number * 1021 % 4096
                buffer[within : within + len(part)] = part
                assert os.pwrite(file, buffer[within : within + len(part)], start) == len(part)
            os.fsync(file)
        finally:
            os.close(file)
        assert target.stored().tobytes() == new
        assert path.read_bytes() == new


@pytest.mark.parametrize("first", ["writer", "reader"])
def test_readers_see_each_write_at_once(path, target, first):
    """By reading and in a mapping, whoever opened the file first."""
    expected = bytearray(target.data.tobytes())
    with (
        both(path, os.O_RDONLY, first) as (writer, reader),
        mmap.mmap(reader, 0, prot=mmap.PROT_READ) as mapped,
    ):
        assert mapped[:] == expected
        for number in range(50):
            place = number * 7919 % (SIZE - 9)
            new = os.urandom(9)
            assert os.pwrite(writer, new, place) == 9
            expected[place : place + 9] = new
            assert mapped[place - place % 4096 : place + 9][-9:] == new
            assert os.pread(reader, 9, place) == new
        assert mapped[:] == expected
    assert path.read_bytes() == expected


@pytest.mark.soak
@pytest.mark.parametrize("first", ["writer", "mapping"])
def test_a_page_that_is_changed_in_a_mapping_too(path, target, first):
    """One program changes even bytes of three pages in a mapping, another writes odd ones."""
    length = 3 * 4096
    random = np.random.default_rng(1)
    expected = bytearray(target.data.tobytes())
    over = threading.Event()

    def change(mapped: mmap.mmap) -> None:
        mine = np.random.default_rng(2)
        for number in count():
            if over.is_set():
                break
            place, value = 2 * int(mine.integers(length // 2)), int(mine.integers(256))
            mapped[place] = expected[place] = value
            if not number % 50:
                mapped.flush(place - place % 4096, 4096)

    with both(path, os.O_RDWR, first) as (writer, shared), mmap.mmap(shared, 0) as mapped:
        thread = threading.Thread(target=change, args=(mapped,))
        thread.start()
        for _ in range(CHANGES):
            place, value = 2 * int(random.integers(length // 2)) + 1, int(random.integers(256))
            assert os.pwrite(writer, bytes([value]), place) == 1
            expected[place] = value
        over.set()
        thread.join()
        assert mapped[:] == expected
    assert target.stored().tobytes() == expected


def test_readers_beside_a_writer_see_nothing_that_was_replaced_before(path, target):
    """Pages that are read while they are written to must not stay what they were.

    A read beside a write may find the write in some chunks, and not yet in others.
    """
    file = os.open(path, os.O_WRONLY)
    begun = ended = -1
    stop = threading.Event()
    strange: list[tuple[int, int, bytes]] = []

    def look() -> None:
        with open(path, "rb", buffering=0) as reader:
            while not stop.is_set():
                least = ended
                found = os.pread(reader.fileno(), 4096, 0)
                if least >= 0 and not (least <= min(found) and max(found) <= begun):
                    strange.append((least, begun, found))

    threads = [threading.Thread(target=look) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        with open(path, "rb", buffering=0) as reader:
            for number in range(60):
                begun, new = number, bytes([number]) * 4096
                os.pwrite(file, new, 0)
                ended = number
                assert os.pread(reader.fileno(), 4096, 0) == new
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        os.close(file)
    assert not strange
