"""What a killed writer leaves behind, and that nothing else is taken for it."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.store.local_writing.trees import files
from zarrfs.errors import StoreError
from zarrfs.store.base import ANY
from zarrfs.store.local import scratch
from zarrfs.store.local.local import LocalStore
from zarrfs.store.local.local_root import LocalRoot
from zarrfs.store.local.scratch import Scratch

pytestmark = pytest.mark.timeout(100)

SCRATCH = f".zarrfs-tmp-{os.geteuid()}"

# Kills itself before or after the given call of a put, or of several at once.
KILLS_ITSELF = """
import os, signal, sys
from zarrfs.store.base import ANY, Put
from zarrfs.store.local.local import LocalStore
root, name, count, when, *keys = sys.argv[1:]
store = LocalStore(root)
store.put("warm", [b"up"], expected=ANY)
call, left = getattr(os, name), int(count)

def killing(*args, **kwargs):
    global left
    left -= 1
    if left == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = call(*args, **kwargs)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(os, name, killing)
store.put_many([Put(key, [b"new" * 1000], ANY) for key in keys])
"""


@pytest.fixture
def start(root: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started = []

    def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, str(root), *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # A buffer would keep lines from ``communicate``.
        process = subprocess.Popen(command, bufsize=0, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=20)


STEPS = [
    (name, count, when)
    for name, count in (("open", 1), ("writev", 1), ("utime", 1), ("fsync", 1), ("rename", 1))
    for when in ("before", "after")
] + [("fsync", 2, "before"), ("fsync", 2, "after")]


@pytest.mark.parametrize(("name", "count", "when"), STEPS)
def test_a_writer_killed_at_any_step_leaves_old_or_new(root, start, name, count, when):
    process = start(KILLS_ITSELF, name, count, when, "dir/x")
    process.communicate(timeout=50)
    assert process.returncode == -signal.SIGKILL
    renamed = (name, when) == ("rename", "after") or count == 2
    assert (root / "dir" / "x").read_bytes() == (b"new" * 1000 if renamed else b"old")
    store = LocalStore(root)
    assert sorted(store.list_dir("")) == ["dir/", "warm"]
    removed = store.leftovers(remove=True)
    assert all(path.startswith(SCRATCH + "/") for path in removed)
    assert len(removed) == (0 if renamed or (name, when) == ("open", "before") else 1)
    assert files(root) == {"dir/x", "warm"}
    assert not (root / SCRATCH).exists()
    assert store.leftovers(remove=True) == []
    store.close()


TOGETHER = ["dir/x", "dir/y", "other/z"]


# After which calls how many of them are new. The first directory that is synced is that in
# which a directory was made, then all files are, and when all are renamed their directories.
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("name", "count", "new"),
    [
        ("writev", 1, 0),
        ("writev", 3, 0),
        ("fsync", 2, 0),
        ("fsync", 4, 0),
        ("rename", 1, 1),
        ("rename", 2, 2),
        ("rename", 3, 3),
        ("fsync", 5, 3),
        ("fsync", 6, 3),
    ],
)
def test_a_writer_killed_while_it_stores_several_leaves_each_old_or_new(
    root, start, name, count, new, when
):
    process = start(KILLS_ITSELF, name, count, when, *TOGETHER)
    process.communicate(timeout=50)
    assert process.returncode == -signal.SIGKILL
    new -= (name, when) == ("rename", "before")
    store = LocalStore(root)
    for place, key in enumerate(TOGETHER):
        old = b"old" if key == "dir/x" else None
        blob = store.get(key, limit=10_000)
        assert (blob and bytes(blob.data)) == (b"new" * 1000 if place < new else old)
    assert len(store.leftovers(remove=True)) <= len(TOGETHER) - new
    assert files(root) == {"dir/x", "warm", *TOGETHER[:new]}
    assert not (root / SCRATCH).exists()
    store.close()


def test_what_a_live_writer_is_writing_stays(root, monkeypatch):
    live, other = LocalStore(root), LocalStore(root)
    fsync, during = os.fsync, []

    def look(fd: int) -> None:
        fsync(fd)
        during.append(other.leftovers(remove=True))
        code = "import sys; from zarrfs.store.local.local import LocalStore;"
        code += "print(LocalStore(sys.argv[1]).leftovers(remove=True))"
        done = subprocess.run(
            [sys.executable, "-c", code, root], capture_output=True, timeout=50, check=True
        )
        during.append(done.stdout.strip())

    monkeypatch.setattr(os, "fsync", look)
    live.put("dir/x", [b"new"], expected=ANY)
    assert during == [[], b"[]"] * 2
    assert (root / "dir" / "x").read_bytes() == b"new"
    live.close()
    other.close()


def test_a_live_writer_survives_a_start_while_another_one_cleans(root):
    """Registering and cleaning race for the lock; both must come out right."""
    stop = threading.Event()

    def clean() -> None:
        store = LocalStore(root)
        while not stop.is_set():
            store.leftovers(remove=True)
        store.close()

    thread = threading.Thread(target=clean)
    thread.start()
    try:
        for i in range(60):
            store = LocalStore(root)
            store.put("dir/x", [b"%d" % i], expected=ANY)
            store.put("dir/y", [b"%d" % i], expected=ANY)
            store.close()
    finally:
        stop.set()
        thread.join(20)
    assert files(root) == {"dir/x", "dir/y"}
    assert not (root / SCRATCH).exists()


@pytest.mark.parametrize("gone", [True, False], ids=["removed", "about to be removed"])
def test_a_writer_that_was_taken_for_dead_when_it_registered_registers_again(
    root, monkeypatch, gone
):
    """Between the steps in which it makes and locks its file, another writer cleans up."""
    store, other = LocalStore(root), LocalStore(root)
    locked, fsync = scratch.try_lock, os.fsync
    held: list[int] = []
    found: list[list[str]] = []

    def clean(fd: int) -> bool | None:
        if held:
            return locked(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        held.append(os.open(path, os.O_RDWR))
        assert locked(held[0])
        if gone:
            os.unlink(path)
            os.close(held[0])
        result = locked(fd)
        if not gone:
            os.unlink(path)
        return result

    def look(fd: int) -> None:
        fsync(fd)
        found.append(other.leftovers(remove=True))

    monkeypatch.setattr(scratch, "try_lock", clean)
    monkeypatch.setattr(os, "fsync", look)
    store.put("dir/x", [b"new"], expected=ANY)
    assert found == [[], []]
    if not gone:
        os.close(held[0])
    store.close()
    other.close()
    assert files(root) == {"dir/x"}
    assert not (root / SCRATCH).exists()


def test_threads_that_write_first_at_the_same_time_are_one_writer(root, monkeypatch):
    """What a second registration leaves nobody removes while the process runs."""
    store = LocalStore(root)
    token_hex = secrets.token_hex
    second_came = threading.Event()
    threads: list[threading.Thread] = []
    inner = store._scratch._lock

    class Seen:
        def __enter__(self) -> None:
            if threads:
                second_came.set()
            inner.acquire()

        def __exit__(self, *_: object) -> None:
            inner.release()

    def slow(size: int) -> str:
        if threads:
            second_came.set()
        else:
            put = partial(store.put, "dir/y", [b"new"], expected=ANY)
            threads.append(threading.Thread(target=put))
            threads[0].start()
            assert second_came.wait(30)
        return token_hex(size)

    store._scratch._lock = Seen()
    monkeypatch.setattr(secrets, "token_hex", slow)
    before = len(os.listdir("/proc/self/fd"))
    store.put("dir/x", [b"new"], expected=ANY)
    threads[0].join(30)
    assert len(os.listdir(root / SCRATCH)) == 1
    assert len(os.listdir("/proc/self/fd")) == before + 2
    store.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1
    assert files(root) == {"dir/x", "dir/y"}
    assert not (root / SCRATCH).exists()


@pytest.mark.parametrize("failing", ["_make_private", "lock"])
def test_a_writer_that_cannot_register_keeps_nothing_open(root, monkeypatch, failing):
    made = Scratch(LocalRoot(root, follow_symlinks=False))
    device = root.stat().st_dev
    before = len(os.listdir("/proc/self/fd"))

    def fail(*_: object) -> None:
        raise StoreError("dir/x", "by this test")

    with monkeypatch.context() as patch:
        if failing == "lock":
            patch.setattr(secrets, "token_hex", lambda size: "a" * 2 * size)
            (root / SCRATCH).mkdir(mode=0o700, exist_ok=True)
            (root / SCRATCH / f"{'a' * 16}.lock").touch()
        else:
            patch.setattr(Scratch, failing, fail)
        for _ in range(2):
            with pytest.raises((StoreError, FileExistsError)):
                made.create("dir/x", device)
            assert len(os.listdir("/proc/self/fd")) == before
    made.create("dir/x", device).discard()
    made.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_cannot_be_made_beside_its_place_leaves_no_note(root):
    """Its directory was deleted meanwhile."""
    made = Scratch(LocalRoot(root, follow_symlinks=False))
    directory = os.open(root / "dir", os.O_RDONLY)
    shutil.rmtree(root / "dir")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(2):
        with pytest.raises(FileNotFoundError):
            made.create_beside("dir/x", b"dir", directory)
        (lock,) = os.listdir(root / SCRATCH)
        assert lock.endswith(".lock")
        # The directory and the lock, once.
        assert len(os.listdir("/proc/self/fd")) == before + 2, number
    os.close(directory)
    made.close()
    assert not (root / SCRATCH).exists()


def test_the_scratch_directory_is_there_only_while_it_is_needed(root):
    first, second = LocalStore(root), LocalStore(root)
    assert first.read_only is None
    assert not (root / SCRATCH).exists()
    first.put("x", [b"1"], expected=ANY)
    second.put("x", [b"2"], expected=ANY)
    assert (root / SCRATCH).stat().st_mode & 0o777 == 0o700
    assert sorted(first.list_dir("")) == ["dir/", "x"]
    first.close()
    assert (root / SCRATCH).exists()
    second.put("x", [b"3"], expected=ANY)
    second.close()
    assert not (root / SCRATCH).exists()


def test_the_scratch_directory_of_an_array_does_not_show_in_its_hierarchy(root):
    inner, outer = LocalStore(root / "dir"), LocalStore(root)
    inner.put("x", [b"1"], expected=ANY)
    assert (root / "dir" / SCRATCH).exists()
    assert list(outer.list_dir("dir")) == ["x"]
    inner.close()
    outer.close()


def test_names_of_ours_are_not_keys(root):
    store = LocalStore(root)
    for key in (SCRATCH, f"{SCRATCH}/x", f"dir/{SCRATCH}/x"):
        for write in (
            lambda key=key: store.put(key, [b"x"], expected=ANY),
            lambda key=key: store.delete(key, expected=ANY),
        ):
            with pytest.raises(StoreError, match="kept for temporary files"):
                write()
    for key in (f"x{SCRATCH}", f"dir/x{SCRATCH}/x"):
        store.put(key, [b"x"], expected=ANY)
        assert store.get(key, limit=9).data == b"x"
        assert store.leftovers(remove=True) == []
    store.close()
    assert (root / f"x{SCRATCH}").exists()


def test_what_is_not_ours_is_not_removed(root):
    (root / SCRATCH).mkdir(mode=0o700)
    for name in ("README", "0123456789abcdef", "0123456789abcdeg.1", "x.lock"):
        (root / SCRATCH / name).touch()
    (root / SCRATCH / "0123456789abcdef.1").touch()
    (root / SCRATCH / "0123456789abcdef.2.beside").write_bytes(b"dir/x")
    store = LocalStore(root)
    assert store.leftovers(remove=True) == [f"{SCRATCH}/0123456789abcdef.1"]
    assert (root / "dir" / "x").exists()
    assert len(os.listdir(root / SCRATCH)) == 4
    store.put("x", [b"1"], expected=ANY)
    store.close()


def test_a_link_is_no_scratch_directory(root, tmp_path):
    (tmp_path / "outside").mkdir()
    (root / SCRATCH).symlink_to(tmp_path / "outside")
    store = LocalStore(root)
    with pytest.raises(StoreError):
        store.put("x", [b"1"], expected=ANY)
    store.close()
    assert os.listdir(tmp_path / "outside") == []


@pytest.fixture(params=["another device", "the same device"])
def split(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A store of which one directory lies on another file system, or is as good as that."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    (tmp_path / "other").mkdir()
    source = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"]
    if request.param == "the same device":
        source = ["--bind", str(tmp_path / "other")]
    mount = ["mount", *source, str(root / "dir")]
    if subprocess.run(mount, check=False, capture_output=True, timeout=20).returncode:
        pytest.skip("mounting is not allowed here")
    yield root
    subprocess.run(["umount", "-l", str(root / "dir")], check=True, timeout=20)


def test_objects_on_another_file_system(split):
    store = LocalStore(split)
    info = store.put("dir/c/x", [b"new"], expected=None)
    assert store.info("dir/c/x").generation == info.generation
    store.put("dir/c/x", [b"newer"], expected=info.generation)
    store.put("here", [b"new"], expected=None)
    assert store.get("dir/c/x", limit=9).data == b"newer"
    assert list(store.list_dir("dir/c")) == ["x"]
    store.close()
    assert files(split) == {"dir/c/x", "here"}


@pytest.mark.parametrize(
    ("name", "count"), [("fsync", 1), ("writev", 1), ("open", 2), ("rename", 1)]
)
def test_leftovers_on_another_file_system(split, start, name, count):
    if split.stat().st_dev == (split / "dir").stat().st_dev and name in ("fsync", "writev"):
        count += 1  # the first went to the scratch directory
    (split / "dir" / "x").write_bytes(b"old")
    process = start(KILLS_ITSELF, name, count, "before", "dir/x")
    process.communicate(timeout=50)
    assert process.returncode == -signal.SIGKILL
    assert (split / "dir" / "x").read_bytes() == b"old"
    store = LocalStore(split)
    assert list(store.list_dir("dir")) == ["x"]
    store.leftovers(remove=True)
    assert files(split) == {"dir/x", "warm"}
    store.close()
