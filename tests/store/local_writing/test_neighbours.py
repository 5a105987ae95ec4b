"""Several writers in one local directory, zarrfs or not."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.store.local_writing.trees import NEW, OLD, files, objects
from zarrfs.errors import (
    StoreConflict,
    StoreError,
    StoreTimeout,
)
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore
from zarrfs.store.local.writing import local_writer

pytestmark = pytest.mark.timeout(60)


def test_mounts_of_the_hierarchy_and_of_one_array_exclude_each_other(root):
    outer, inner = LocalStore(root), LocalStore(root / "dir")
    outer.put("dir/c/x", [bytes(8)], expected=None)

    def write(store: LocalStore, key: str, i: int) -> None:
        for turn in range(1, 30):
            while True:
                blob = store.get(key, limit=8)
                data = bytearray(blob.data)
                data[i] = turn
                try:
                    store.put(key, [data], expected=blob.info.generation)
                except StoreConflict:
                    continue
                break

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [outer, inner] * 4, ["dir/c/x", "c/x"] * 4, range(8)))
    assert outer.get("dir/c/x", limit=8).data == bytes([29] * 8)
    outer.close()
    inner.close()


def test_writers_in_several_processes_lose_nothing(root):
    code = """
import sys
from zarrfs.errors import StoreConflict
from zarrfs.store.local.local import LocalStore
store, i = LocalStore(sys.argv[1]), int(sys.argv[2])
for turn in range(1, 41):
    while True:
        blob = store.get("c/x", limit=4)
        data = bytearray(blob.data)
        data[i] = turn
        try:
            store.put("c/x", [data], expected=blob.info.generation)
        except StoreConflict:
            continue
        break
store.close()
"""
    store = LocalStore(root)
    store.put("c/x", [bytes(4)], expected=None)
    writers = [subprocess.Popen([sys.executable, "-c", code, str(root), str(i)]) for i in range(4)]
    assert [writer.wait(50) for writer in writers] == [0] * 4
    assert store.get("c/x", limit=4).data == bytes([40] * 4)
    store.close()
    assert objects(root) == {"c/x", "dir/x"}


def test_a_stopped_writer_does_not_stop_the_others_for_ever(store, root, monkeypatch):
    monkeypatch.setattr(local_writer, "_LOCK_TIMEOUT_S", 0.2)
    fd = os.open(root / "dir", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(StoreTimeout, match="another writer"):
        store.put("dir/x", [NEW], expected=ANY)
    with pytest.raises(StoreTimeout, match="another writer"):
        store.delete("dir/x", expected=ANY)
    store.put("elsewhere", [NEW], expected=ANY)
    os.close(fd)
    assert (root / "dir" / "x").read_bytes() == OLD
    store.put("dir/x", [NEW], expected=ANY)
    assert objects(root) == {"dir/x", "elsewhere"}


def test_only_who_looks_at_a_file_first_needs_its_directory_alone(store, root, monkeypatch):
    """Another writer holds the lock as one does who replaces a file in any state."""
    monkeypatch.setattr(local_writer, "_LOCK_TIMEOUT_S", 0.2)
    fd = os.open(root / "dir", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    now = store.put("dir/x", [NEW], expected=ANY).generation
    with pytest.raises(StoreTimeout, match="another writer"):
        store.put("dir/x", [OLD], expected=now)
    with pytest.raises(StoreTimeout, match="another writer"):
        store.delete("dir/x", expected=now)
    os.close(fd)
    assert (root / "dir" / "x").read_bytes() == NEW
    store.put("dir/x", [OLD], expected=now)
    assert (root / "dir" / "x").read_bytes() == OLD


def test_a_file_system_without_locks(store, root, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    info = store.put("dir/x", [NEW], expected=store.info("dir/x").generation)
    with pytest.raises(StoreConflict):
        store.put("dir/x", [NEW], expected=None)
    store.delete("dir/x", expected=info.generation)
    assert store.leftovers(remove=True) == []


def test_a_store_deleted_and_made_anew_is_written_to(store, root):
    store.put("x", [OLD], expected=None)
    for i in range(3):
        shutil.rmtree(root)
        with pytest.raises(StoreError, match="deleted"):
            store.put("x", [NEW], expected=ANY)
        root.mkdir()
        store.put("x", [b"%d" % i], expected=None)
        assert (root / "x").read_bytes() == b"%d" % i
        store.delete("x", expected=ANY)
    store.close()
    assert os.listdir(root) == []


def test_directories_deleted_meanwhile_are_made_again(store, root, monkeypatch):
    fsync, left = os.fsync, ["dir", "."]

    def interrupted(fd: int) -> None:
        fsync(fd)
        if left:
            shutil.rmtree(root / left.pop(0), ignore_errors=True)
            root.mkdir(exist_ok=True)

    monkeypatch.setattr(os, "fsync", interrupted)
    store.put("dir/x", [NEW], expected=ANY)
    monkeypatch.undo()
    assert left == []
    assert (root / "dir" / "x").read_bytes() == NEW
    store.put("dir/x", [OLD], expected=ANY)
    store.close()
    assert files(root) == {"dir/x"}
