"""What only a local directory can do to its writers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zarrfs.errors import (
    StoreAccessDenied,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreReadOnly,
    StoreTimeout,
)
from zarrfs.store import local_root, local_writer
from zarrfs.store.base import ANY, Conditional
from zarrfs.store.local import LocalStore

pytestmark = pytest.mark.timeout(60)

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
OLD = b"old"
NEW = b"new one"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    (root / "dir" / "x").write_bytes(OLD)
    return root


@pytest.fixture(params=["openat2", "checked"])
def store(
    root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalStore]:
    if request.param == "checked":
        monkeypatch.setattr(local_root, "openat2_works", lambda fd: False)
    made = LocalStore(root)
    yield made
    made.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """``mounted(path, *mount_arguments)`` mounts there, until the test is over."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done: list[Path] = []

    def mount(path: Path, *arguments: str) -> None:
        command = ["mount", *arguments, str(path)]
        if subprocess.run(command, check=False, capture_output=True, timeout=20).returncode:
            pytest.skip("mounting is not allowed here")
        if path not in done:
            done.append(path)

    yield mount
    for path in reversed(done):
        subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


def files(root: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(directory, name), root)
        for directory, _, names in os.walk(root)
        for name in names
    }


def objects(root: Path) -> set[str]:
    """Without what shows that a writer is alive."""
    return {name for name in files(root) if not name.endswith(".lock")}


# --- durability ----------------------------------------------------------------


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
        "import sys; from zarrfs.store.base import ANY; from zarrfs.store.local import LocalStore\n"
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


# --- failures --------------------------------------------------------------------


@pytest.mark.parametrize("call", ["writev", "fsync", "utime", "rename"])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreQuotaExceeded),
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreAccessDenied),
        (errno.EPERM, StoreAccessDenied),
        (errno.EIO, StoreError),
    ],
)
def test_a_put_that_fails_changes_nothing(store, root, monkeypatch, call, number, kind):
    before = store.info("dir/x")

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        for expected in (ANY, before.generation):
            with pytest.raises(StoreError) as caught:
                store.put("dir/x", [NEW], expected=expected)
            assert type(caught.value) is kind
            assert os.strerror(number) in str(caught.value)
        with pytest.raises(kind):
            store.put("dir/new", [NEW], expected=None)
    assert objects(root) == {"dir/x"}
    assert store.info("dir/x") == before
    store.put("dir/x", [NEW], expected=before.generation)


def test_a_full_file_system(tmp_path, mounted):
    root = tmp_path / "full"
    root.mkdir()
    mounted(root, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    store = LocalStore(root)
    try:
        info = store.put("c/x", [bytes(300_000)], expected=None)
        for key in ("c/x", "c/y"):
            with pytest.raises(StoreFull, match="No space left"):
                store.put(key, [b"1" * 900_000], expected=ANY)
        assert objects(root) == {"c/x"}
        assert store.info("c/x") == info
        store.put("c/x", [b"1" * 600_000], expected=info.generation)
        store.delete("c/x", expected=ANY)
        store.put("c/x", [b"1" * 900_000], expected=None)
    finally:
        store.close()


def test_a_read_only_file_system(tmp_path, mounted):
    root = tmp_path / "frozen"
    root.mkdir()
    mounted(root, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    (root / "x").write_bytes(OLD)
    mounted(root, "-o", "remount,ro")
    store = LocalStore(root)
    assert "read-only" in store.read_only
    for write in (
        lambda: store.put("x", [NEW], expected=ANY),
        lambda: store.put("c/x", [NEW], expected=ANY),
        lambda: store.delete("x", expected=ANY),
    ):
        with pytest.raises(StoreReadOnly):
            write()
    assert store.get("x", limit=9).data == OLD
    store.close()


def as_nobody(check: Callable[[], None]) -> None:
    """Runs ``check`` in a process without privileges."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            check()
            status = 0
        except BaseException as error:  # noqa: BLE001 - tells the parent
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A directory that everybody can reach."""
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_permission(public):
    (public / "x").write_bytes(OLD)
    open_one = public / "open"
    (open_one / "closed").mkdir(parents=True)
    (open_one / "closed" / "x").write_bytes(OLD)
    open_one.chmod(0o777)

    def check() -> None:
        store = LocalStore(public)
        assert "permission" in store.read_only
        for key in ("x", "new", "open/x"):
            try:
                store.put(key, [NEW], expected=ANY)
            except StoreAccessDenied:
                continue
            raise AssertionError(key)
        store.close()
        store = LocalStore(open_one)
        assert store.read_only is None
        store.put("x", [NEW], expected=None)
        for write in (
            lambda: store.put("closed/x", [NEW], expected=ANY),
            lambda: store.put("closed/new/x", [NEW], expected=ANY),
            lambda: store.delete("closed/x", expected=ANY),
        ):
            try:
                write()
            except StoreAccessDenied:
                continue
            raise AssertionError
        store.close()

    as_nobody(check)
    assert files(public) == {"x", "open/x", "open/closed/x"}
    assert (open_one / "closed" / "x").read_bytes() == OLD


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_users_write_to_one_store(public):
    public.chmod(0o777)
    ours = LocalStore(public)
    ours.put("ours", [NEW], expected=None)

    def check() -> None:
        theirs = LocalStore(public)
        theirs.put("theirs", [NEW], expected=None)
        assert theirs.remove_leftovers() == []
        theirs.put("theirs", [NEW], expected=ANY)

    as_nobody(check)
    assert (public / "theirs").stat().st_uid == NOBODY
    ours.put("ours", [OLD], expected=ANY)
    ours.close()
    assert objects(public) == {"ours", "theirs"}


# --- what a new file is like ------------------------------------------------------


def test_mode(store, root):
    before = os.umask(0o027)
    try:
        store.put("dir/new/y", [NEW], expected=None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "dir" / "new").stat().st_mode) == 0o750
    assert stat.S_IMODE((root / "dir" / "new" / "y").stat().st_mode) == 0o640
    for mode in (0o600, 0o666, 0o444):
        (root / "dir" / "x").chmod(mode)
        store.put("dir/x", [NEW], expected=ANY)
        assert stat.S_IMODE((root / "dir" / "x").stat().st_mode) == mode


@AS_ROOT
def test_owner(store, root):
    os.chown(root / "dir" / "x", NOBODY, NOBODY - 1)
    (root / "dir" / "x").chmod(0o640)
    store.put("dir/x", [NEW], expected=ANY)
    status = (root / "dir" / "x").stat()
    assert (status.st_uid, status.st_gid) == (NOBODY, NOBODY - 1)
    assert stat.S_IMODE(status.st_mode) == 0o640
    os.chown(root / "dir", 0, NOBODY)
    (root / "dir").chmod(0o2775)
    store.put("dir/new/y", [NEW], expected=None)
    store.put("dir/y", [NEW], expected=None)
    for name in ("y", "new", "new/y"):
        assert (root / "dir" / name).stat().st_gid == NOBODY


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_a_group_was_allowed_is_not_for_another_one(public):
    public.chmod(0o777)
    (public / "x").write_bytes(OLD)
    os.chown(public / "x", NOBODY, 0)
    (public / "x").chmod(0o664)

    def check() -> None:
        store = LocalStore(public)
        store.put("x", [NEW], expected=ANY)
        store.close()

    as_nobody(check)
    status = (public / "x").stat()
    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (NOBODY, 0o644)


def test_no_two_states_have_the_same_generation(store, root, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    infos = [store.put("dir/x", [b"%4d" % i], expected=ANY) for i in range(1000)]
    assert len({info.generation for info in infos}) == 1000
    # Not only by the inode's number, which the next but one has again.
    assert len({info.mtime_ns for info in infos}) == 1000


def test_the_time_stamp_moves(store, root):
    os.utime(root / "dir" / "x", ns=(1, 1))
    info = store.put("dir/x", [NEW], expected=ANY)
    assert info.mtime_ns == (root / "dir" / "x").stat().st_mtime_ns > 1


# --- keys -------------------------------------------------------------------------


def test_a_directory_is_not_replaced(store, root):
    for key in ("dir", "dir/x/y", "dir/x/y/z"):
        with pytest.raises(StoreError):
            store.put(key, [NEW], expected=None)
        store.delete(key, expected=ANY)
    (root / "empty").mkdir()
    with pytest.raises(StoreError, match="is a directory"):
        store.put("empty", [NEW], expected=ANY)
    store.delete("empty", expected=ANY)
    assert (root / "empty").is_dir()
    assert objects(root) == {"dir/x"}


def test_a_fifo_is_not_replaced(store, root):
    os.mkfifo(root / "fifo")
    for write in (store.put, lambda key, _, expected: store.delete(key, expected=expected)):
        with pytest.raises(StoreError, match="not a regular file"):
            write("fifo", [NEW], expected=ANY)
    assert stat.S_ISFIFO((root / "fifo").stat().st_mode)


def test_long_names(store, root):
    store.put("n" * 255, [NEW], expected=None)
    store.put("/".join(["n" * 200] * 19), [NEW], expected=None)
    for key in ("n" * 256, "m" * 256 + "/x", "/".join(["m" * 200] * 30)):
        with pytest.raises(StoreError, match="too long"):
            store.put(key, [NEW], expected=None)
        store.delete(key, expected=ANY)
    assert not [name for name in os.listdir(root) if name.startswith("m")]


def test_names_that_are_not_utf8(store, root):
    key = os.fsdecode(b"dir/\xff\xfe")
    store.put(key, [NEW], expected=None)
    assert set(store.list_dir("dir")) == {"x", key.removeprefix("dir/")}
    store.delete(key, expected=ANY)


@pytest.fixture
def linked(root: Path, tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(OLD)
    for name, target in {
        "out": "../outside",
        "absolute_out": str(tmp_path / "outside"),
        "file_out": "../outside/x",
        "in": "dir",
        "absolute_in": str(root / "dir"),
        "file_in": "dir/x",
        "dangling": "nowhere",
        "loop": "loop",
    }.items():
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize(
    "key", ["out/x", "out/new", "out/new/x", "absolute_out/new", "file_out", "loop", "loop/x"]
)
def test_nothing_is_written_outside(store, linked, tmp_path, key):
    for write in (
        lambda: store.put(key, [NEW], expected=ANY),
        lambda: store.put(key, [NEW], expected=None),
    ):
        with pytest.raises(StoreError):
            write()
    if key == "out/new/x":
        store.delete(key, expected=ANY)  # missing, wherever it would be
    else:
        with pytest.raises(StoreError):
            store.delete(key, expected=ANY)
    assert files(tmp_path / "outside") == {"x"}
    assert (tmp_path / "outside" / "x").read_bytes() == OLD
    assert os.path.islink(linked / key.partition("/")[0])


def test_links_within_the_store(store, linked, root):
    store.put("in/y", [NEW], expected=None)
    store.put("absolute_in/z/z", [NEW], expected=None)
    assert (root / "dir" / "y").read_bytes() == (root / "dir" / "z" / "z").read_bytes() == NEW
    generation = store.info("file_in").generation
    assert generation == store.info("dir/x").generation
    with pytest.raises(StoreConflict):
        store.put("file_in", [NEW], expected=None)
    store.put("file_in", [NEW], expected=generation)
    assert not (root / "file_in").is_symlink()
    assert (root / "dir" / "x").read_bytes() == OLD
    store.put("dangling", [NEW], expected=None)
    assert store.get("dangling", limit=9).data == NEW
    (root / "dangling_too").symlink_to("nowhere")
    with pytest.raises(StoreError, match="no directory"):
        store.put("dangling_too/x", [NEW], expected=None)


def test_links_out_of_the_store_are_followed_on_request(linked, tmp_path):
    store = LocalStore(linked, follow_symlinks=True)
    store.put("out/x", [NEW], expected=store.info("out/x").generation)
    store.put("out/new/y", [NEW], expected=None)
    store.close()
    assert files(tmp_path / "outside") == {"x", "new/y"}
    assert (tmp_path / "outside" / "x").read_bytes() == NEW


PARTS = st.sampled_from(["..", ".", "", "dir", "x", "out", "in", "absolute_out", "new", "root"])


@given(parts=st.lists(PARTS, min_size=1, max_size=6))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_key_writes_outside(store, linked, tmp_path, parts):
    with contextlib.suppress(StoreError):
        store.put("/".join(parts), [NEW], expected=ANY)
    assert files(tmp_path / "outside") == {"x"}
    assert (tmp_path / "outside" / "x").read_bytes() == OLD
    assert set(os.listdir(tmp_path)) == {"outside", "root"}


# --- other writers ------------------------------------------------------------------


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

    threads = [
        threading.Thread(target=write, args=((outer, "dir/c/x", i) if i % 2 else (inner, "c/x", i)))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert outer.get("dir/c/x", limit=8).data == bytes([29] * 8)
    assert outer.conditional is Conditional.AMONG_OURSELVES
    outer.close()
    inner.close()


def test_writers_in_several_processes_lose_nothing(root):
    code = """
import sys
from zarrfs.errors import StoreConflict
from zarrfs.store.local import LocalStore
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


def test_a_file_system_without_locks(store, root, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert store.conditional is Conditional.CHECKED
    info = store.put("dir/x", [NEW], expected=store.info("dir/x").generation)
    with pytest.raises(StoreConflict):
        store.put("dir/x", [NEW], expected=None)
    store.delete("dir/x", expected=info.generation)
    assert store.remove_leftovers() == []


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
