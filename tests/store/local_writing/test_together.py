"""Many puts in a local directory at once: each is what it is alone, and they wait together."""

import errno
import fcntl
import gc
import os
import weakref
from contextlib import closing, suppress

import numpy as np
import pytest

from tests.store.local_writing.trees import NEW, OLD, objects
from zarrfs.errors import StoreConflict, StoreError, StoreFull, StoreTimeout
from zarrfs.store.base import ANY, ObjectInfo, Put
from zarrfs.store.local.local import LocalStore
from zarrfs.store.local.writing import local_writer

pytestmark = pytest.mark.timeout(60)

KEYS = ("dir/x", "dir/y", "a/b/x", "z")
PUTS = [Put(key, [NEW, key.encode()], ANY) for key in KEYS]


def _name(root, fd: int) -> str:
    path = os.readlink(f"/proc/self/fd/{fd}")
    return "TEMP" if ".zarrfs-tmp-" in path else os.path.relpath(path, root)


def test_each_is_stored_and_described(store, root):
    results = store.put_many(PUTS)
    assert results == [store.info(key) for key in KEYS]
    assert objects(root) == set(KEYS)
    assert [store.get(key, limit=99).data for key in KEYS] == [NEW + k.encode() for k in KEYS]
    assert store.put_many([]) == []


def test_files_are_synced_before_any_is_renamed_and_each_directory_once(store, root, monkeypatch):
    store.put_many(PUTS)
    log: list[str] = []
    fsync, rename = os.fsync, os.rename

    def record_sync(fd: int) -> None:
        fsync(fd)
        log.append(_name(root, fd))

    def record_rename(*args: object, **kwargs: object) -> None:
        rename(*args, **kwargs)
        log.append("rename")

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    store.put_many(PUTS)
    assert log == ["TEMP"] * 4 + ["rename"] * 4 + ["dir", "a/b", "."]


@pytest.mark.parametrize("call", ["writev", "fsync", "utime", "rename"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EXDEV])
def test_one_that_fails_leaves_nothing_and_the_others_alone(store, root, monkeypatch, call, number):
    real, calls = getattr(os, call), []

    def refuse_the_second(*args: object, **kwargs: object) -> object:
        calls.append(args)
        if len(calls) == 2:
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    store.put("dir/y", [OLD], expected=None)
    store.put_many(PUTS[2:])
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse_the_second)
        results = store.put_many(PUTS)
    failed = [isinstance(result, StoreError) for result in results]
    # Where a file cannot be renamed to its place from elsewhere, it is made beside it.
    beside = number == errno.EXDEV
    assert failed == [False, not beside, False, False]
    assert store.get("dir/y", limit=99).data == (NEW + b"dir/y" if beside else OLD)
    assert objects(root) == set(KEYS)


def test_a_directory_that_cannot_be_synced_fails_all_that_is_in_it(store, root, monkeypatch):
    fsync, failed = os.fsync, []

    def once(fd: int) -> None:
        # The kernel tells of a failure once only.
        if _name(root, fd) == "dir" and not failed:
            failed.append(fd)
            raise OSError(errno.EIO, "broken")
        fsync(fd)

    store.put_many(PUTS)
    monkeypatch.setattr(os, "fsync", once)
    results = store.put_many(PUTS)
    assert [isinstance(result, StoreError) for result in results] == [True, True, False, False]


def test_what_was_changed_meanwhile_is_a_conflict_of_its_own(store, root, monkeypatch):
    before = store.put_many(PUTS)
    generations = [info.generation for info in before]
    fsync = os.fsync

    def meddle(fd: int) -> None:
        if (root / "dir" / "y").read_bytes() != OLD:
            (root / "dir" / "y").write_bytes(OLD)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", meddle)
    puts = [Put(put.key, [b"2"], now) for put, now in zip(PUTS, generations, strict=True)]
    results = store.put_many(puts)
    assert [type(result) for result in results] == [
        ObjectInfo,
        StoreConflict,
        ObjectInfo,
        ObjectInfo,
    ]
    assert (root / "dir" / "y").read_bytes() == OLD
    assert objects(root) == set(KEYS)


def test_a_directory_that_is_deleted_meanwhile_is_made_again(store, root, monkeypatch):
    fsync, gone = os.fsync, []

    def delete(fd: int) -> None:
        fsync(fd)
        if _name(root, fd) == "TEMP" and not gone:
            gone.append(fd)
            (root / "dir" / "x").unlink()
            (root / "dir").rmdir()

    monkeypatch.setattr(os, "fsync", delete)
    results = store.put_many(PUTS)
    assert results == [store.info(key) for key in KEYS]
    assert objects(root) == set(KEYS)


def test_a_surprise_leaves_no_temporary_files(store, root, monkeypatch):
    def surprise(fd: int) -> None:
        raise RuntimeError("surprise")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", surprise)
        with pytest.raises(RuntimeError, match="surprise"):
            store.put_many([Put(key, [NEW], ANY) for key in ("dir/x", "dir/y")])
    assert objects(root) == {"dir/x"}
    assert (root / "dir" / "x").read_bytes() == OLD
    descriptors = os.listdir("/proc/self/fd")
    store.put_many(PUTS)
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)


@pytest.mark.parametrize(("count", "size"), [(4, 200_000), (2, 300_000)])
def test_room_for_one_at_a_time_is_enough(small, count, size):
    with closing(LocalStore(small)) as store:
        puts = [Put(str(i), [b"1" * size], ANY) for i in range(count)]
        store.put_many(puts)
        again = store.put_many([put._replace(parts=[b"2" * size]) for put in puts])
        assert [type(result) for result in again] == [ObjectInfo] * count
        assert {(small / put.key).read_bytes()[:1] for put in puts} == {b"2"}
        larger = store.put_many([put._replace(parts=[b"3" * (3 * size // 2)]) for put in puts])
        assert StoreFull in map(type, larger)
        assert objects(small) == {put.key for put in puts}


def test_a_locked_directory_is_waited_for_once(store, root, monkeypatch):
    store.put_many(PUTS)
    monkeypatch.setattr(local_writer, "_LOCK_TIMEOUT_S", 0.2)
    tried = []
    locked = local_writer.locked
    monkeypatch.setattr(
        local_writer, "locked", lambda *args, **how: tried.append(args[1]) or locked(*args, **how)
    )
    fd = os.open(root / "dir", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        results = store.put_many(PUTS)
    finally:
        os.close(fd)
    assert [type(result) for result in results] == [
        StoreTimeout,
        StoreTimeout,
        ObjectInfo,
        ObjectInfo,
    ]
    assert tried == ["dir/x", "a/b/x", "z"]
    assert objects(root) == set(KEYS)


def test_data_are_let_go_without_the_garbage_collector(store):
    """A directory that was missing, and made, leaves no cycle of references to what was put."""
    data = np.zeros(1000, np.uint8)
    kept = weakref.ref(data)
    gc.disable()
    try:
        store.put("new/directory/x", [data.data], expected=ANY)
        del data
        assert kept() is None
    finally:
        gc.enable()


def test_a_replaced_file_is_not_open(store, root, monkeypatch):
    """NFS moves an open file out of the way first, so another host could find none."""
    old = (root / "dir" / "x").stat().st_ino
    rename, renamed = os.rename, []

    def inodes() -> set[int]:
        found = set()
        for fd in map(int, os.listdir("/proc/self/fd")):
            # That of the listing is closed by now.
            with suppress(OSError):
                found.add(os.fstat(fd).st_ino)
        return found

    def record(*args: object, **kwargs: object) -> None:
        renamed.append(old in inodes())
        rename(*args, **kwargs)

    monkeypatch.setattr(os, "rename", record)
    store.put("dir/x", [NEW], expected=ANY)
    assert renamed == [False]
