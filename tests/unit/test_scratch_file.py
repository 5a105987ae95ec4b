"""Bytes in a file without a name: what was written there, and nothing left of it."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.memory import scratch_file
from zarrfs.memory.scratch_file import ScratchFile
from zarrfs.memory.shared_memory import POPULATE_WRITE


def read(file: ScratchFile, offset: int, size: int) -> bytes:
    out = bytearray(size)
    file.read(offset, memoryview(out))
    return bytes(out)


def test_what_was_written_is_read(tmp_path):
    file = ScratchFile(str(tmp_path))
    file.write(5000, memoryview(b"abcdef"))
    file.write(5002, memoryview(b"XY"))
    assert read(file, 4999, 7) == b"\0abXYef"


@given(
    shape=st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 300)),
    gaps=st.tuples(st.integers(0, 5000), st.integers(0, 50) | st.integers(4000, 5000)),
    offset=st.integers(0, 9000),
)
def test_runs_lie_as_far_apart_as_they_are_told_to(tmp_path_factory, shape, gaps, offset):
    file = ScratchFile(str(tmp_path_factory.mktemp("scratch")))
    data = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    inner = shape[2] + gaps[1]
    outer = shape[1] * inner + gaps[0]
    expected = bytearray(b"\7" * (offset + shape[0] * outer + 10))
    file.write(0, memoryview(bytes(expected)))
    file.write_strided(offset, data, [outer, inner])
    for i, j in np.ndindex(shape[:2]):
        start = offset + i * outer + j * inner
        expected[start : start + shape[2]] = data[i, j].tobytes()
    assert read(file, 0, len(expected)) == expected


def test_what_was_not_written_is_an_error(tmp_path):
    file = ScratchFile(str(tmp_path))
    file.write(0, memoryview(b"abc"))
    with pytest.raises(OSError, match="shorter"):
        read(file, 0, 4)


def test_the_file_has_no_name_and_the_space_is_given_back(tmp_path):
    file = ScratchFile(str(tmp_path))
    file.write(0, memoryview(b"abc"))
    assert os.listdir(tmp_path) == []
    file.clear()
    with pytest.raises(OSError, match="shorter"):
        read(file, 0, 3)
    file.write(0, memoryview(b"def"))
    assert read(file, 0, 3) == b"def"


def test_room_is_half_of_what_is_free(tmp_path):
    assert ScratchFile(str(tmp_path)).has_room(1)
    assert not ScratchFile(str(tmp_path)).has_room(1 << 60)
    assert not ScratchFile(str(tmp_path / "missing")).has_room(1)


def test_a_full_disk_is_an_error_and_no_signal(tmp_path, monkeypatch):
    """Of a mapping, and of a call for each run."""

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    file = ScratchFile(str(tmp_path))
    with pytest.raises(OSError, match="No space"):
        file.write_strided(0, np.zeros((64, 8), np.uint8), [16])
    with pytest.raises(OSError, match="No space"):
        file.memory(1 << 20)
    with pytest.raises(OSError, match=r"\d"):
        file.write_strided(0, np.zeros((2, 8), np.uint8), [1 << 60])


@pytest.mark.parametrize("step", [4000, 4096, 8000])
def test_a_disk_that_fails_is_an_error_and_no_signal(tmp_path, monkeypatch, step):
    """Pages behind the end of a file can be had no more than those from such a disk."""
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(POPULATE_WRITE)
        except OSError:
            pytest.skip("this kernel cannot tell before")
    file = ScratchFile(str(tmp_path))
    map_part = ScratchFile._map

    def cut_off(file: ScratchFile, offset: int, size: int) -> mmap.mmap:
        mapped = map_part(file, offset, size)
        file.clear()
        return mapped

    monkeypatch.setattr(ScratchFile, "_map", cut_off)
    with pytest.raises(OSError, match="address"):
        file.write_strided(100, np.zeros((64, 3999), np.uint8), [step])


def test_where_the_kernel_cannot_prepare_pages_they_come_as_they_are_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch_file, "POPULATE_WRITE", 0x7FFF)
    file = ScratchFile(str(tmp_path))
    file.write_strided(1, np.full((64, 8), 7, np.uint8), [16])
    assert read(file, 0, 25) == b"\0" + 8 * b"\7" + 8 * b"\0" + 8 * b"\7"
