"""Reading past the kernel's page cache: the same bytes, and nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.store.page_cache import cached_pages, forget_pages
from zarrfs.store.base import ByteRange
from zarrfs.store.local import direct_reads
from zarrfs.store.local.local import LocalStore

DATA = np.random.default_rng(0).bytes((1 << 20) + 1234)
LEAST = direct_reads.LEAST


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "object"
    path.write_bytes(DATA)
    forget_pages(path)
    return path


@pytest.fixture
def store(path: Path) -> LocalStore:
    store = LocalStore(path.parent)
    yield store.direct
    store.close()


@pytest.fixture
def able(path: Path) -> None:
    """Only where the kernel and the file system can do it."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if not direct_reads._is_possible(fd):
            pytest.skip("the file system of the tests tells of no direct reads")
        if not direct_reads._is_cold(fd, 0, len(DATA)):
            pytest.skip("this kernel does not tell what it has of a file")
    finally:
        os.close(fd)


@pytest.mark.usefixtures("able")
def test_a_whole_object_leaves_no_pages(store, path):
    blob = store.get("object", limit=len(DATA))
    assert bytes(blob.data) == DATA
    assert memoryview(blob.data).readonly
    assert cached_pages(path) == 0


@pytest.mark.usefixtures("able")
def test_many_objects_leave_no_pages(store, path):
    other = path.with_name("other")
    other.write_bytes(DATA[::-1])
    forget_pages(other)
    blobs = list(store.get_many(["object", "missing", "other"], limit=len(DATA)))
    assert [blob and bytes(blob.data) for blob in blobs] == [DATA, None, DATA[::-1]]
    assert cached_pages(path) == cached_pages(other) == 0


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("offset", "length"),
    [
        (0, LEAST),
        (1, LEAST),
        (4095, LEAST + 2),
        (4096, LEAST + 4096),
        (len(DATA) - LEAST, LEAST),
        (-LEAST, LEAST),
        (len(DATA) - LEAST - 1, 1 << 20),
    ],
)
def test_any_large_range_leaves_no_pages(store, path, offset, length):
    (blob,) = store.get_ranges("object", [ByteRange(offset, length)])
    start = offset % len(DATA)
    assert bytes(blob.data) == DATA[start : start + length]
    assert cached_pages(path) == 0


@pytest.mark.usefixtures("able")
def test_a_small_range_beside_a_large_one(store, path):
    ranges = [ByteRange(3, 5), ByteRange(77, LEAST), ByteRange(-9, 9)]
    blobs = store.get_ranges("object", ranges)
    assert [bytes(blob.data) for blob in blobs] == [DATA[3:8], DATA[77 : 77 + LEAST], DATA[-9:]]


def test_what_the_kernel_has_is_read_from_there(store, path, monkeypatch):
    path.read_bytes()

    def refuse(*_args: object) -> None:
        raise AssertionError("read from the disk")

    monkeypatch.setattr(direct_reads, "_read", refuse)
    assert bytes(store.get("object", limit=len(DATA)).data) == DATA


@pytest.mark.parametrize("failing", ["_read", "_is_possible", "_is_cold"])
def test_what_fails_is_read_as_usual(store, monkeypatch, failing):
    def fail(*_args: int) -> bool:
        if failing == "_read":
            raise OSError("no direct reads today")
        return False

    monkeypatch.setattr(direct_reads, failing, fail)
    assert bytes(store.get("object", limit=len(DATA)).data) == DATA


@pytest.mark.usefixtures("able")
def test_a_file_that_ends_sooner_is_none(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        assert direct_reads.pread_direct(fd, 1000, len(DATA)) is None
        assert bytes(direct_reads.pread_direct(fd, 1000, len(DATA) - 1000)) == DATA[1000:]
        # Whoever reads on does so as before.
        assert os.pread(fd, 7, 11) == DATA[11:18]
    finally:
        os.close(fd)


@pytest.mark.usefixtures("able")
def test_bytes_that_are_not_written_back_yet_are_read(store, path):
    """Changes that only the kernel knows of come before what the disk has."""
    changed = bytearray(DATA)
    with path.open("r+b") as file:
        for offset in range(0, len(DATA), 100_000):
            file.seek(offset)
            file.write(b"changed")
            changed[offset : offset + 7] = b"changed"
    assert 0 < cached_pages(path) < len(DATA) // 4096 // 8
    assert bytes(store.get("object", limit=len(DATA)).data) == bytes(changed)


def test_the_plain_store_goes_on_using_the_page_cache(path):
    store = LocalStore(path.parent)
    store.direct.get("object", limit=len(DATA))
    assert bytes(store.get("object", limit=len(DATA)).data) == DATA
    if cached_pages(path) is None:
        pytest.skip("this kernel does not tell what it has of a file")
    assert cached_pages(path) > len(DATA) // 4096
    store.close()
