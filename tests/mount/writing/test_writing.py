"""What programs do with files that they write to, system call by system call."""

import errno
import mmap
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Mounter
from tests.mount.arrays import FILL, SHAPE, Target, make_array
from tests.waiting import wait_until

SIZE = int(np.prod(SHAPE)) * 2


@pytest.fixture(scope="module")
def shared(shared_mounter: Mounter) -> tuple[Target, Path]:
    """A sharded array, and its directory in a mount; tests leave it as it is."""
    target = make_array(shared_mounter.directory / "group.zarr", "a", "sharded")
    return target, shared_mounter(target.group, "rw").path / "a"


def test_truncating_to_nothing_changes_nothing(shared):
    sharded, path = shared[0], shared[1] / "array.bin"
    with open(path, "wb"):
        pass
    assert path.stat().st_size == SIZE
    os.truncate(path, 0)
    os.truncate(path, SIZE)
    with open(path, "r+b") as file:
        os.ftruncate(file.fileno(), 0)
        assert file.read() == sharded.data.tobytes()
    assert path.stat().st_size == SIZE
    assert (sharded.stored() == sharded.data).all()


def test_truncating_keeps_what_mappings_changed(mounted, sharded):
    path = mounted(sharded.group, "rw,flush_delay=3600") / sharded.name / "array.bin"
    expected = bytearray(sharded.data.tobytes())
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        ways = (
            lambda: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
            lambda: os.truncate(path, 0),
            lambda: os.ftruncate(file.fileno(), 0),
            lambda: os.truncate(path, SIZE),
        )
        for number, truncate in enumerate(ways * 3):
            place = number * 13_001
            mapped[place : place + 3] = expected[place : place + 3] = b"abc"
            truncate()
            assert os.stat(path).st_size == SIZE
            assert mapped[:] == bytes(expected)
    assert sharded.stored().tobytes() == bytes(expected)


def test_other_sizes_are_refused(shared):
    sharded, path = shared[0], shared[1] / "array.bin"
    for size in (1, SIZE - 1, SIZE + 1, 1 << 40):
        with pytest.raises(OSError) as caught:
            os.truncate(path, size)
        assert caught.value.errno == errno.EPERM
    assert path.read_bytes() == sharded.data.tobytes()


def test_writes_end_at_the_end(mounted, sharded):
    path = mounted(sharded.group, "rw") / sharded.name / "array.bin"
    file = os.open(path, os.O_WRONLY)
    try:
        assert os.pwrite(file, b"abcd", SIZE - 2) == 2
        for offset in (SIZE, SIZE + 1, 1 << 40):
            with pytest.raises(OSError) as caught:
                os.pwrite(file, b"a", offset)
            assert caught.value.errno == errno.EFBIG
        assert os.fstat(file).st_size == SIZE
    finally:
        os.close(file)
    assert path.read_bytes() == sharded.data.tobytes()[:-2] + b"ab"


def test_private_mappings_change_nothing(shared):
    sharded, path = shared[0], shared[1] / "array.bin"
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE) as mapped:
        mapped[:5] = b"abcde"
        assert mapped[:5] == b"abcde"
    assert path.read_bytes() == sharded.data.tobytes()


def test_npy_header_stays(shared):
    path = shared[1] / "array.npy"
    before = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        with pytest.raises(OSError) as caught:
            file.write(b"another")
        assert caught.value.errno == errno.EPERM
        # What rewrites the whole file writes the same header.
        os.pwrite(file.fileno(), before, 0)
    assert path.read_bytes() == before


def test_documents_open_for_update_and_refuse_writes(shared):
    path = shared[1] / "zarr.json"
    before = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        assert file.read() == before
        with pytest.raises(OSError) as caught:
            os.pwrite(file.fileno(), b"a", 0)
        assert caught.value.errno == errno.EPERM
    for change in (lambda: path.write_bytes(b"a"), lambda: os.truncate(path, 0), path.unlink):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EPERM
    assert path.read_bytes() == before


def _allocate(path: Path) -> None:
    with open(path / "array.bin", "r+b") as file:
        os.posix_fallocate(file.fileno(), SIZE, 1)


CHANGES = {
    "create": (lambda p: os.open(p / "new", os.O_CREAT | os.O_WRONLY), errno.EPERM),
    "create what is there": (
        lambda p: os.open(p / "array.bin", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
        errno.EEXIST,
    ),
    "mkdir": (lambda p: os.mkdir(p / "new"), errno.EPERM),
    "mkdir what is there": (lambda p: os.mkdir(p / "chunks"), errno.EEXIST),
    "mknod": (lambda p: os.mknod(p / "new", stat.S_IFIFO | 0o644), errno.EPERM),
    "symlink": (lambda p: os.symlink("array.bin", p / "new"), errno.EPERM),
    "link": (lambda p: os.link(p / "array.bin", p / "new"), errno.EPERM),
    "rename": (lambda p: os.rename(p / "array.bin", p / "new"), errno.EPERM),
    "rename onto": (lambda p: os.rename(p / "zarr.json", p / "array.bin"), errno.EPERM),
    "unlink": (lambda p: os.unlink(p / "array.bin"), errno.EPERM),
    "unlink a directory": (lambda p: os.unlink(p / "chunks"), errno.EISDIR),
    "rmdir": (lambda p: os.rmdir(p / "chunks"), errno.EPERM),
    "rmdir a file": (lambda p: os.rmdir(p / "array.bin"), errno.ENOTDIR),
    "chmod": (lambda p: os.chmod(p / "array.bin", 0o600), errno.EPERM),
    "chown": (lambda p: os.chown(p / "array.bin", 1, 1), errno.EPERM),
    "chmod a directory": (lambda p: os.chmod(p, 0o700), errno.EPERM),
    "setxattr": (lambda p: os.setxattr(p / "array.bin", "user.a", b"b"), errno.EOPNOTSUPP),
    "allocate beyond the end": (_allocate, errno.EFBIG),
}


def test_a_fixed_tree(shared):
    sharded, path = shared
    answers = {}
    for name, (change, _) in CHANGES.items():
        with pytest.raises(OSError) as caught:
            change(path)
        answers[name] = caught.value.errno
    assert answers == {name: code for name, (_, code) in CHANGES.items()}
    assert (path / "array.bin").read_bytes() == sharded.data.tobytes()


def test_what_changes_nothing_succeeds(shared):
    _, path = shared
    held = (path / "array.bin").stat()
    os.utime(path / "array.bin", (1, 1))
    os.utime(path / "array.bin")
    os.utime(path / "zarr.json")
    os.chmod(path / "array.bin", stat.S_IMODE(held.st_mode))
    os.chown(path / "array.bin", held.st_uid, held.st_gid)
    assert (path / "array.bin").stat().st_mtime == held.st_mtime
    directory = os.open(path / "chunks", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def test_time_moves_with_writes(mounted, sharded):
    path = mounted(sharded.group, "rw") / sharded.name
    names = ("array.bin", "array.npy", "chunks/0/0/0")
    before = {name: (path / name).stat().st_mtime_ns for name in names}
    with open(path / "array.bin", "r+b") as file:
        file.write(b"ab")
    assert (path / "array.bin").stat().st_mtime_ns > before["array.bin"]
    # The kernel may remember those of the other views for a moment.
    wait_until(lambda: not any((path / name).stat().st_mtime_ns <= before[name] for name in names))


def test_owner_and_modes(mounted, sharded):
    path = mounted(sharded.group, "rw,uid=1234,gid=5678", "umask=027") / sharded.name
    modes = {
        "array.bin": "-rw-r-----",
        "array.npy": "-rw-r-----",
        "chunks": "drwxr-x---",
        "chunks/0/0": "drwxr-x---",
        "chunks/0/0/0": "-rw-r-----",
        "zarr.json": "-r--r-----",
        ".": "dr-xr-x---",
    }
    found = {name: (path / name).stat() for name in modes}
    assert {name: stat.filemode(s.st_mode) for name, s in found.items()} == modes
    assert {(s.st_uid, s.st_gid) for s in found.values()} == {(1234, 5678)}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as others")
def test_others_write_where_they_are_let(mount_daemon, sharded):
    """As owner of the files, where ``allow_other`` lets them in at all."""
    place = Path(tempfile.mkdtemp(prefix="zarrfs-test-"))
    place.chmod(0o755)
    change = "import os, sys; os.pwrite(os.open(sys.argv[1], os.O_WRONLY), b'abcd', 0)"

    def write_as(user, daemon):
        path = daemon.path / sharded.name / "array.bin"
        done = subprocess.run(
            ["/usr/bin/python3", "-c", change, path],
            user=user, group=user, extra_groups=[], cwd="/",
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return "PermissionError" not in done.stderr and done.returncode == 0

    try:
        daemon = mount_daemon(sharded.group, "rw,uid=65534,gid=65534,allow_other", at=place)
        assert write_as(65534, daemon)
        assert not write_as(65533, daemon)
        assert sharded.stored().tobytes()[:4] == b"abcd"
        daemon.umount()
        daemon.wait()
        daemon = mount_daemon(sharded.group, "rw,uid=65534,gid=65534", at=place)
        assert not write_as(65534, daemon)
        daemon.umount()
        daemon.wait()
    finally:
        place.rmdir()


def test_fill_values_are_not_stored_unless_asked_for(mounted, target):
    before = target.files()
    empty = np.full(SHAPE, FILL, np.uint16).tobytes()
    for option, files in ((("store_fill",), before), ((), {"zarr.json"})):
        daemon_path = mounted(target.group, "rw", *option) / target.name / "array.bin"
        daemon_path.write_bytes(empty)
        assert target.files() == files
        assert target.stored().tobytes() == empty


def test_statfs_of_a_writable_mount(shared):
    found = os.statvfs(shared[1])
    assert not found.f_flag & os.ST_RDONLY
    assert found.f_bavail > 0
