"""Bytes in a file without a name: what was written there, and nothing left of it."""

import os

import pytest

from zarrfs.memory.scratch_file import ScratchFile


def read(file: ScratchFile, offset: int, size: int) -> bytes:
    out = bytearray(size)
    file.read(offset, memoryview(out))
    return bytes(out)


def test_what_was_written_is_read(tmp_path):
    file = ScratchFile(str(tmp_path))
    file.write(5000, memoryview(b"abcdef"))
    file.write(5002, memoryview(b"XY"))
    assert read(file, 4999, 7) == b"\0abXYef"


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


def test_a_place_that_no_file_has_is_an_error(tmp_path):
    with pytest.raises(OSError, match=r"\d"):
        ScratchFile(str(tmp_path)).write((1 << 63) - 2, memoryview(b"abc"))


def test_a_full_disk_is_an_error_and_no_signal(tmp_path, monkeypatch):
    """Memory in a file has its room on the disk before anybody writes to it."""

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        ScratchFile(str(tmp_path)).memory(1 << 20)
