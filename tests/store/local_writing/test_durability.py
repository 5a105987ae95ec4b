"""What is stored when a put or a delete in a local directory returns."""

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from tests.store.local_writing.trees import NEW, OLD
from zarrfs.errors import (
    StoreError,
)
from zarrfs.store.base import ANY

pytestmark = pytest.mark.timeout(60)


def test_everything_is_synced_in_order(store, root, monkeypatch):
    log: list[tuple[str, str]] = []
    fsync, rename, mkdir, unlink = os.fsync, os.rename, os.mkdir, os.unlink

    def name_of(fd: int) -> str:
        path = os.readlink(f"/proc/self/fd/{fd}")
        return "TEMP" if ".zarrfs-tmp-" in path else os.path.relpath(path, root)

    def recorded(event: str, call: Callable, which: Callable) -> Callable:
        def record(*args, **kwargs):
            log.append((event, which(*args, **kwargs)))
            return call(*args, **kwargs)

        return record

    store.put("first", [NEW], expected=None)
    monkeypatch.setattr(os, "fsync", recorded("sync", fsync, name_of))
    monkeypatch.setattr(
        os, "rename", recorded("rename", rename, lambda old, new, **_: os.fsdecode(new))
    )
    monkeypatch.setattr(os, "mkdir", recorded("mkdir", mkdir, lambda name, **_: os.fsdecode(name)))
    monkeypatch.setattr(
        os, "unlink", recorded("unlink", unlink, lambda name, **_: os.fsdecode(name))
    )
    store.put("dir/a/b/x", [NEW], expected=None)
    assert log == [
        ("mkdir", "a"),
        ("sync", "dir"),
        ("mkdir", "b"),
        ("sync", "dir/a"),
        ("sync", "TEMP"),
        ("rename", "x"),
        ("sync", "dir/a/b"),
    ]
    log.clear()
    store.put("dir/a/b/x", [OLD], expected=ANY)
    assert log == [("sync", "TEMP"), ("rename", "x"), ("sync", "dir/a/b")]
    log.clear()
    store.delete("dir/a/b/x", expected=ANY)
    assert log == [("unlink", "x"), ("sync", "dir/a/b")]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_kernel_is_asked_in_that_order(root, tmp_path):
    code = (
        "import sys; from zarrfs.store.base import ANY\n"
        "from zarrfs.store.local.local import LocalStore\n"
        "LocalStore(sys.argv[1]).put('dir/x', [b'a' * 70000, b'b'], expected=ANY)"
    )
    trace = tmp_path / "trace"
    calls = "trace=writev,fsync,rename,renameat,renameat2"
    done = subprocess.run(
        ["strace", "-f", "-e", calls, "-o", trace, sys.executable, "-c", code, root],
        check=False,
        capture_output=True,
        timeout=50,
    )
    if done.returncode and b"ptrace" in done.stderr.lower():
        pytest.skip("tracing is not allowed here")
    made = re.findall(r"^\d+ +(writev|fsync|rename)", trace.read_text(), re.MULTILINE)
    # Before that, the interpreter may have renamed files of its own.
    assert made[-4:] == ["writev", "fsync", "rename", "fsync"]


def test_who_finds_a_new_directory_waits_until_that_is_durable(store, root, monkeypatch):
    fsync = os.fsync
    reached, go_on, log = threading.Event(), threading.Event(), []

    def slow(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path == str(root) and not reached.is_set():
            reached.set()
            assert go_on.wait(30)
        fsync(fd)
        log.append(os.path.relpath(path, root))

    monkeypatch.setattr(os, "fsync", slow)
    threads = [
        threading.Thread(target=store.put, args=(key, [NEW]), kwargs={"expected": None})
        for key in ("a/x", "a/y")
    ]
    threads[0].start()
    assert reached.wait(30)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive()
    assert log == []
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert log[0] == "."
    assert sorted(log).count("a") == 2


def test_a_delete_whose_sync_failed_syncs_when_made_again(store, root, monkeypatch):
    synced = []
    fsync = os.fsync

    def failing(fd: int) -> None:
        synced.append(fd)
        if len(synced) == 1:
            raise OSError(errno.EIO, "broken")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StoreError, match="broken"):
        store.delete("dir/x", expected=ANY)
    store.delete("dir/x", expected=ANY)
    assert len(synced) == 2
    store.delete("dir/x", expected=ANY)
    assert len(synced) == 2


def test_a_short_write_is_continued(store, root, monkeypatch):
    writev = os.writev

    def short(fd: int, views: list[memoryview]) -> int:
        return writev(fd, [memoryview(views[0]).cast("B")[:7]])

    monkeypatch.setattr(os, "writev", short)
    parts = [b"abc", bytes(range(100)), b"", memoryview(bytes(80)).cast("q")]
    store.put("dir/x", parts, expected=ANY)
    assert (root / "dir" / "x").read_bytes() == b"abc" + bytes(range(100)) + bytes(80)
