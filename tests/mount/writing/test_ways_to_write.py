"""Every way in which Linux lets a program write: what it was told to be stored, is stored."""

import ctypes
import errno
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.timeout(100)

ROW = 2048
NEW = b"\2" * ROW
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p


def _opened(path: Path, flags: int, write: Callable[[int], object], *, close: bool = True) -> int:
    """The descriptor, if it is left open, or else -1."""
    file = os.open(path, flags)
    write(file)
    if not close:
        return file
    os.close(file)
    return -1


def _sendfile(file: int) -> None:
    with tempfile.TemporaryFile() as source:
        source.write(NEW)
        source.flush()
        assert os.sendfile(file, source.fileno(), 0, ROW) == ROW


def _splice(file: int) -> None:
    read, write = os.pipe()
    os.write(write, NEW)
    done = 0
    while done < ROW:
        done += os.splice(read, file, ROW - done, offset_dst=done)
    os.close(read)
    os.close(write)


def _copy(file: int) -> None:
    os.pwrite(file, NEW, ROW)
    assert os.copy_file_range(file, file, ROW, ROW, 0) == ROW


def _map(file: int) -> ctypes.c_void_p:
    place = LIBC.mmap(None, ctypes.c_size_t(2 * ROW), 3, mmap.MAP_SHARED, file, ctypes.c_long(0))
    ctypes.memmove(place, NEW, ROW)
    return ctypes.c_void_p(place)


def _unmapped_then_closed(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    LIBC.munmap(_map(file), ctypes.c_size_t(2 * ROW))
    os.close(file)


def _closed_then_synced(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    place = _map(file)
    os.close(file)
    assert LIBC.msync(place, ctypes.c_size_t(2 * ROW), 4) == 0
    # Left mapped, as by a program that is killed with the daemon.


def _closed_after_exec(path: Path) -> None:
    """By another program that has a copy of the descriptor; the first one has closed its own."""
    file = os.open(path, os.O_RDWR)
    copy = os.dup(file)
    code = (
        f"import os, sys; sys.stdin.read(); os.pwrite({copy}, b'\\2' * {ROW}, 0); os.close({copy})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[copy], stdin=subprocess.PIPE)
    os.close(file)
    os.close(copy)
    child.communicate(timeout=60)
    assert child.returncode == 0


def _left_open(flags: int) -> Callable[[Path], object]:
    """Without any `fsync` or `close`; the file is left open."""
    return lambda path: _opened(path, flags, lambda file: os.write(file, NEW), close=False)


WAYS: dict[str, Callable[[Path], object]] = {
    "sendfile": lambda path: _opened(path, os.O_WRONLY, _sendfile),
    "splice": lambda path: _opened(path, os.O_WRONLY, _splice),
    "copy_file_range": lambda path: _opened(path, os.O_RDWR, _copy),
    "pwritev2": lambda path: _opened(
        path, os.O_RDWR, lambda file: os.pwritev(file, [NEW], 0, os.RWF_DSYNC), close=False
    ),
    "unmapped then closed": _unmapped_then_closed,
    "closed then synced": _closed_then_synced,
    "closed after exec": _closed_after_exec,
    "O_SYNC": _left_open(os.O_RDWR | os.O_SYNC),
    "O_DSYNC": _left_open(os.O_RDWR | os.O_DSYNC),
    "write only, O_SYNC": _left_open(os.O_WRONLY | os.O_SYNC),
    "write only, O_DSYNC": _left_open(os.O_WRONLY | os.O_DSYNC),
}
APPENDING = {
    "write only": _left_open(os.O_WRONLY | os.O_APPEND | os.O_DSYNC),
    "both": _left_open(os.O_RDWR | os.O_APPEND | os.O_SYNC),
    "pwritev2": lambda path: _opened(
        path, os.O_RDWR, lambda file: os.pwritev(file, [NEW], 0, 0x10 | os.RWF_DSYNC), close=False
    ),
}


def _array(group: Path, name: str) -> None:
    zarr.create_array(group / name, shape=(4, ROW), chunks=(3, ROW), dtype="u1")[...] = 1


@pytest.mark.parametrize("resize", [False, True], ids=["fixed", "resize"])
def test_what_is_told_to_be_stored_is_stored_when_the_daemon_dies(mount_daemon, tmp_path, resize):
    """Each way has an array of its own, because storing one change stores all of its array."""
    ways = APPENDING if resize else WAYS
    group = tmp_path / "group.zarr"
    zarr.open_group(group, mode="w")
    for name in ways:
        _array(group, name)
    daemon = mount_daemon(group, f"rw,flush_delay=3600{',resize' * resize}", quiet=False)
    left = [write(daemon.path / name / "array.bin") for name, write in ways.items()]
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    for file in left:
        if isinstance(file, int) and file >= 0:
            with suppress(OSError):  # the mount is gone
                os.close(file)
    stored = {name: zarr.open_array(group / name, mode="r")[...] for name in ways}
    row = 4 if resize else 0
    new = {name: len(data) > row and bool((data[row] == 2).all()) for name, data in stored.items()}
    assert new == dict.fromkeys(ways, True)
    assert all((np.delete(data, row, 0)[2:] == 1).all() for data in stored.values())


def test_nothing_is_allocated_cut_out_or_moved(mounted, tmp_path):
    """Space, holes, and ranges that are collapsed or inserted; programs then do it themselves."""
    _array(tmp_path, "a")
    path = mounted(tmp_path / "a", "rw,resize") / "array.bin"
    with open(path, "r+b", buffering=0) as file:
        for mode in (0, 1, 3, 8, 0x10, 0x20):
            for start, length in ((0, 4096), (ROW, 64 * ROW)):
                arguments = (ctypes.c_long(start), ctypes.c_long(length))
                assert LIBC.fallocate(file.fileno(), mode, *arguments) == -1
                assert ctypes.get_errno() == errno.EOPNOTSUPP
    assert path.read_bytes() == b"\1" * 4 * ROW
