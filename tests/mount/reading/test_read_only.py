"""Nothing can be changed through a mount, and what is asked says so."""

import errno
import os
import stat
from pathlib import Path

import numpy as np
import psutil
import pytest
import zarr

from tests.conftest import Mounter

CHANGES = {
    "open for writing": lambda p: os.open(p / "array.bin", os.O_WRONLY),
    "open for update": lambda p: os.open(p / "array.bin", os.O_RDWR),
    "open and truncate": lambda p: os.open(p / "array.bin", os.O_RDONLY | os.O_TRUNC),
    "open to append": lambda p: os.open(p / "array.bin", os.O_WRONLY | os.O_APPEND),
    "create": lambda p: os.open(p / "new", os.O_CREAT | os.O_WRONLY),
    "truncate": lambda p: os.truncate(p / "array.bin", 0),
    "mkdir": lambda p: os.mkdir(p / "new"),
    "mknod": lambda p: os.mknod(p / "new", stat.S_IFREG | 0o644),
    "symlink": lambda p: os.symlink("array.bin", p / "new"),
    "link": lambda p: os.link(p / "array.bin", p / "new"),
    "rename": lambda p: os.rename(p / "array.bin", p / "new"),
    "unlink": lambda p: os.unlink(p / "array.bin"),
    "rmdir": lambda p: os.rmdir(p / "chunks"),
    "chmod": lambda p: os.chmod(p / "array.bin", 0o600),
    "chown": lambda p: os.chown(p / "array.bin", 1, 1),
    "utime": lambda p: os.utime(p / "array.bin"),
    "setxattr": lambda p: os.setxattr(p / "array.bin", "user.a", b"b"),
    "removexattr": lambda p: os.removexattr(p / "array.bin", "user.a"),
}


@pytest.fixture(scope="module")
def shared(shared_mounter: Mounter) -> tuple[Path, Path]:
    """An array, and its mount."""
    source = shared_mounter.directory / "a.zarr"
    zarr.create_array(source, data=np.arange(600, dtype="u2"), chunks=(100,))
    return source, shared_mounter(source).path


def test_every_change_is_erofs(shared):
    _, path = shared
    answers = {}
    for name, change in CHANGES.items():
        with pytest.raises(OSError) as caught:
            change(path)
        answers[name] = caught.value.errno
    assert answers == dict.fromkeys(CHANGES, errno.EROFS)
    assert (path / "array.bin").read_bytes() == np.arange(600, dtype="u2").tobytes()


def test_default_owner_and_modes(shared):
    _, path = shared
    file, directory = (path / "array.bin").stat(), path.stat()
    assert stat.filemode(file.st_mode) == "-r--r--r--"
    assert stat.filemode(directory.st_mode) == "dr-xr-xr-x"
    assert {(s.st_uid, s.st_gid) for s in (file, directory)} == {(os.getuid(), os.getgid())}


def test_statfs(shared):
    source, path = shared
    found, held = os.statvfs(path), os.statvfs(source)
    assert found.f_namemax == 255
    assert found.f_flag & os.ST_RDONLY
    assert found.f_bsize == found.f_frsize == 4096
    assert abs(found.f_bavail * found.f_frsize - held.f_bavail * held.f_frsize) < 1 << 30


def test_missing_names_are_cached(mount_fake):
    daemon = mount_fake()
    process = psutil.Process(daemon.pid)
    before = process.num_ctx_switches().voluntary
    for _ in range(10_000):
        assert not (daemon.path / "missing").exists()
    # A request each would wake it as often.
    assert process.num_ctx_switches().voluntary - before < 5_000


@pytest.mark.parametrize(
    "errors",
    [
        {
            "chunk": errno.EIO,
            "denied": errno.EACCES,
            "huge": errno.ENOMEM,
            "nursery": errno.ETIMEDOUT,
        },
        {"bug": errno.EIO},
    ],
    ids=["foreseen", "bug"],
)
def test_errors_reach_the_reader(mount_fake, errors):
    daemon = mount_fake(quiet="bug" not in errors)
    for name, code in errors.items():
        with pytest.raises(OSError) as caught:
            (daemon.path / name).read_bytes()
        assert caught.value.errno == code
        # The mount lives on.
        assert len((daemon.path / "fine").read_bytes()) == 10_000


def test_tuning(mounted, source):
    path = mounted(source, "max_background=33", "read_ahead_kb=777")
    device = path.stat().st_dev
    minor = os.minor(device)
    connection = Path("/sys/fs/fuse/connections", str(minor))
    if connection.exists():
        assert (connection / "max_background").read_text() == "33\n"
        assert (connection / "congestion_threshold").read_text() == "24\n"
    if os.geteuid() == 0:
        read_ahead = Path(f"/sys/class/bdi/0:{minor}/read_ahead_kb").read_text()
        assert int(read_ahead) // 4 == 777 // 4  # counted in pages
