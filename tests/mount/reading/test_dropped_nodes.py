"""Arrays that are dropped from memory while the kernel knows them."""

import ctypes
import json
import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.fs.documents import array_document, group_document
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

ARRAYS = 90
# Room for some thirty arrays that nobody uses.
MEMORY = 16 << 20


def content(number: int) -> bytes:
    return np.full(64, number, "<i2").tobytes()


@pytest.fixture
def group(tmp_path) -> Path:
    path = tmp_path / "group.zarr"
    path.mkdir()
    (path / "zarr.json").write_bytes(group_document())
    for i in range(ARRAYS):
        (path / f"a{i}/c").mkdir(parents=True)
        (path / f"a{i}/zarr.json").write_bytes(array_document((64,), (32,)))
        for chunk in range(2):
            (path / f"a{i}/c/{chunk}").write_bytes(content(i)[:64])
    return path


def told(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def test_nobody_can_tell(mounted, group):
    mnt = mounted(group, f"rw,memory={MEMORY},flush_delay=3600")

    def stats():
        return json.loads((mnt / ".zarrfs/stats.json").read_bytes())

    with open(mnt / "a0/array.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:4] = b"abcd"
        names = [f"a{i}/{name}".rstrip("/") for i in range(1, ARRAYS)
                 for name in ("", "array.bin", "array.npy", "chunks", "chunks/1")]  # fmt: skip
        before = {name: told(mnt / name) for name in names}
        directory = os.open(mnt / "a1", os.O_RDONLY | os.O_DIRECTORY)
        assert stats()["arrays"] < ARRAYS // 2
        assert stats()["memory"]["node_bytes"] < MEMORY // 32 + (64 << 10)
        assert stats()["known_nodes"] > ARRAYS

        def look(numbers: range) -> None:
            for i in numbers:
                assert (mnt / f"a{i}/array.bin").read_bytes() == content(i)
                assert "array.npy" in os.listdir(mnt / f"a{i}")
            assert {f"a{i}" for i in numbers} <= set(os.listdir(mnt))

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(look, [range(1, ARRAYS), range(ARRAYS - 1, 0, -1), range(1, ARRAYS, 3)]))
        assert stats()["arrays"] < ARRAYS // 2
        assert {name: told(mnt / name) for name in names} == before
        # A directory that was opened before the array was dropped.
        assert "array.bin" in os.listdir(directory)
        os.close(directory)
        mapped[4:8] = b"efgh"
        mapped.flush()
    assert (group / "a0/c/0").read_bytes() == b"abcdefgh" + content(0)[:56]
    for i in range(1, ARRAYS, 7):
        with open(mnt / f"a{i}/array.bin", "r+b") as file:
            file.write(b"wxyz")
    for i in range(1, ARRAYS):
        new = b"wxyz" if i % 7 == 1 else content(i)[:4]
        assert (mnt / f"a{i}/array.bin").read_bytes() == new + content(i)[4:]
        assert (group / f"a{i}/c/0").read_bytes()[:4] == new
    assert stats()["dirty_bytes"] == stats()["errors"]["count"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may remount")
def test_nothing_is_kept_of_what_the_kernel_has_forgotten(mounted, group):
    mnt = mounted(group, f"memory={MEMORY}")

    def known() -> int:
        return json.loads((mnt / ".zarrfs/stats.json").read_bytes())["known_nodes"]

    with open(mnt / "a0/array.bin", "rb") as file:
        for i in range(ARRAYS):
            os.listdir(mnt / f"a{i}")
        assert known() > ARRAYS
        # The kernel forgets all names that nobody uses.
        flags = {"MS_RDONLY": 1, "MS_NOSUID": 2, "MS_NODEV": 4, "MS_REMOUNT": 32}
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mount(b"none", bytes(mnt), None, sum(flags.values()), None) == 0
        wait_until(lambda: known() <= ARRAYS // 2)
        assert file.read() == content(0)
    for i in range(0, ARRAYS, 10):
        assert (mnt / f"a{i}/array.bin").read_bytes() == content(i)
