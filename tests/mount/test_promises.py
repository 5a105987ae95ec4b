"""The promises of a writable mount, each shown by the test that is named after it."""

import errno
import mmap
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.conftest import run_zarrfs
from tests.mount.arrays import FILL, SHAPE, make_array, other


def test_read_only_by_default(mounted, sharded):
    for options in ((), ("ro",), ("rw", "ro")):
        path = mounted(sharded.group, *options) / sharded.name / "array.bin"
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
            with pytest.raises(OSError) as caught:
                os.open(path, flags)
            assert caught.value.errno == errno.EROFS
    with open(mounted(sharded.group, "rw") / sharded.name / "array.bin", "r+b") as file:
        assert file.write(b"ab") == 2


# --- coherent -----------------------------------------------------------------------

VIEWS = ("array.bin", "array.npy", "chunks/1/2/0", "shards/0/0/0")
ELEMENT = (11, 25, 3)


def _offset(path, view: str) -> int:
    """Where ``ELEMENT`` lies in a view, in bytes."""
    size = (path / view).stat().st_size
    if view.startswith("array"):
        return size - 2 * int(np.prod(SHAPE)) + 2 * int(np.ravel_multi_index(ELEMENT, SHAPE))
    shape = (10, 10, 10) if view.startswith("chunks") else (30, 30, 20)
    inside = tuple(at % length for at, length in zip(ELEMENT, shape, strict=True))
    return 2 * int(np.ravel_multi_index(inside, shape))


class _View:
    """An open view whose pages the kernel has, read and mapped."""

    def __init__(self, path, name: str) -> None:
        self.path = path / name
        self.offset = _offset(path, name)
        self.file = os.open(self.path, os.O_RDONLY)
        self.mapped = mmap.mmap(self.file, 0, mmap.MAP_SHARED, mmap.PROT_READ)

    def everywhere(self) -> set[bytes]:
        """The element, read in every way there is."""
        here = slice(self.offset, self.offset + 2)
        return {
            os.pread(self.file, 2, self.offset),
            self.mapped[here],
            self.path.read_bytes()[here],
        }

    def close(self) -> None:
        self.mapped.close()
        os.close(self.file)


def _write_and_sync(view: _View, value: bytes) -> None:
    with open(view.path, "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), value, view.offset)
        os.fsync(file.fileno())


def _write_and_close(view: _View, value: bytes) -> None:
    with open(view.path, "r+b") as file:
        file.seek(view.offset)
        file.write(value)


def _map_and_sync(view: _View, value: bytes) -> None:
    with open(view.path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[view.offset : view.offset + 2] = value
        mapped.flush()


WAYS = (_write_and_sync, _write_and_close, _map_and_sync)


def test_coherent(mounted, sharded):
    path = mounted(sharded.group, "rw") / sharded.name
    views = {name: _View(path, name) for name in VIEWS}
    count = 0
    try:
        for _ in range(3):
            for way in WAYS:
                for name, writer in views.items():
                    count += 1
                    value = count.to_bytes(2, "little")
                    way(writer, value)
                    seen = {key: view.everywhere() for key, view in views.items()}
                    assert seen == {view: {value} for view in views}, (way.__name__, name)
    finally:
        for view in views.values():
            view.close()
    assert sharded.stored()[ELEMENT] == count


def test_coherent_after_removal(mounted, sharded):
    path = mounted(sharded.group, "rw,allow_remove") / sharded.name
    views = [_View(path, name) for name in VIEWS]
    try:
        assert {seen for view in views for seen in view.everywhere()} != {b"\x07\x00"}
        os.unlink(path / "chunks/1/2/0")
        for view in views:
            assert view.everywhere() == {FILL.to_bytes(2, "little")}
    finally:
        for view in views:
            view.close()


# --- fsync means stored ---------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_fsync_means_stored(mount_daemon, target, way):
    """The daemon is killed as soon as `fsync`, `close` or `msync` has returned."""
    # Nothing but the call itself stores anything.
    daemon = mount_daemon(target.group, "rw,flush_delay=3600", quiet=False)
    path = daemon.path / target.name
    view = _View(path, "array.bin")
    try:
        way(view, b"\x39\x30")
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    finally:
        view.mapped.close()
        with pytest.raises(OSError, match="not connected"):
            os.close(view.file)
    expected = target.data.copy()
    expected[ELEMENT] = 12345
    assert (target.stored() == expected).all()


# --- nothing dropped --------------------------------------------------------------------


def _change_in_every_way(path, new: np.ndarray) -> list:
    """Writes all of ``new``, and has nothing of it stored; what has to be kept open."""
    data = new.tobytes()
    file = os.open(path / "array.bin", os.O_RDWR)
    os.pwrite(file, data[: len(data) // 2 + 1], 0)
    mapped = mmap.mmap(file, 0, mmap.MAP_SHARED)
    mapped[len(data) // 2 + 1 :] = data[len(data) // 2 + 1 :]
    return [file, mapped]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_dropped(mount_daemon, target, number):
    """Written pages, changed mappings, and half an element, when a signal ends the mount."""
    daemon = mount_daemon(target.group, "rw,flush_delay=3600")
    new = other(target.data)
    file, mapped = _change_in_every_way(daemon.path / target.name, new)
    try:
        daemon.signal(number)
        assert daemon.wait() == 0
    finally:
        mapped.close()
        with pytest.raises(OSError, match="not connected"):
            os.close(file)
    assert (target.stored() == new).all()


def _unmount_with_zarrfs(path) -> None:
    assert run_zarrfs("umount", path).returncode == 0


def _unmount_with_fusermount(path) -> None:
    subprocess.run(["fusermount3", "-u", path], check=True, timeout=20)


UNMOUNTS = (_unmount_with_zarrfs, _unmount_with_fusermount)


@pytest.mark.parametrize("unmount", UNMOUNTS)
def test_nothing_dropped_at_unmount(mount_daemon, target, unmount):
    """A mapping that outlived its descriptor: no `close` has stored what it changed."""
    daemon = mount_daemon(target.group, "rw,flush_delay=3600")
    new = other(target.data)
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
data = sys.stdin.buffer.read()
file = os.open(sys.argv[1], os.O_RDWR)
place = libc.mmap(None, len(data), 3, 1, file, 0)
os.close(file)
ctypes.memmove(place, data, len(data))
os._exit(0)
"""
    subprocess.run(
        ["python3", "-c", code, daemon.path / target.name / "array.bin"],
        input=new.tobytes(),
        check=True,
        timeout=60,
    )
    unmount(daemon.path)
    assert daemon.wait() == 0
    assert (target.stored() == new).all()


# --- neighbours survive -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "sharded"])
def test_neighbours_survive(mounted, tmp_path, kind):
    """Two mounts write every other element of the same chunks, at the same time."""
    target = make_array(tmp_path / "group.zarr", "a", kind)
    new = other(target.data)
    flat = new.ravel()
    # Nothing is stored, and told in the log to have failed, before it is asked for.
    options = "rw,flush_delay=3600"
    paths = [mounted(target.group, options) / target.name / "array.bin" for _ in range(2)]

    def write(which: int) -> None:
        with open(paths[which], "r+b", buffering=0) as file:
            for i in range(which, 600, 2):
                os.pwrite(file.fileno(), flat[i].tobytes(), 2 * i)
                if i % 50 == which:
                    os.fsync(file.fileno())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    expected = target.data.copy()
    expected.ravel()[:600] = flat[:600]
    assert (target.stored() == expected).all()
    # Where they cannot be read, a part cannot be changed, but all can.
    (target.group / "a/c/1/1/1").write_bytes(b"damaged")
    file = os.open(paths[0].with_name("shards" if target.shard else "chunks") / "1/1/1", os.O_RDWR)
    os.pwrite(file, b"ab", 10)
    with pytest.raises(OSError, match="Input/output error"):
        os.fsync(file)
    size = os.fstat(file).st_size
    assert os.pwrite(file, bytes(size), 0) == size
    os.close(file)
    expected[tuple(slice(n, 2 * n) for n in target.shard or target.chunk)] = 0
    assert (target.stored() == expected).all()
