"""A store that refuses: who wrote is told why, what was written stays, and is stored later."""

import errno
import mmap
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs
from tests.mount.arrays import stored

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting tmpfs is for root")

SHAPE = (64, 256, 256)


def new_data() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, SHAPE, np.uint8)


def _remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True, timeout=20)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB with an array of 4 MiB, of which nothing is stored."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], check=True, timeout=20)
    zarr.create_array(
        path / "a.zarr", shape=SHAPE, chunks=(8, 128, 128), dtype="u1", compressors=None
    )
    yield path
    # Whoever still mounts what is here has ended it in the fixture that was asked for later.
    subprocess.run(["umount", "-l", path], check=True, timeout=20)


@pytest.fixture
def options(tmp_path: Path) -> str:
    return f"rw,flush_delay=3600,journal={tmp_path}/journal"


@pytest.fixture
def daemon(small, mount_daemon, options):
    return mount_daemon(small / "a.zarr", options, quiet=False)


def _error(call) -> int:
    with pytest.raises(OSError) as caught:
        call()
    return caught.value.errno


def test_full(daemon, small):
    data = new_data().tobytes()
    path = daemon.path / "array.bin"
    file = os.open(path, os.O_RDWR)
    assert os.pwrite(file, data, 0) == len(data)
    for _ in range(2):
        assert _error(lambda: os.fsync(file)) == errno.ENOSPC
    assert path.read_bytes() == data
    assert (daemon.path / "array.npy").read_bytes().endswith(data)
    # Closing tells it too, and closes.
    assert _error(lambda: os.close(file)) == errno.ENOSPC
    assert path.read_bytes() == data
    assert "No space left" in (daemon.path / ".zarrfs/stats.json").read_text()
    _remount(small, "size=16m")
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
    os.close(file)
    assert stored(small / "a.zarr").tobytes() == data
    daemon.umount()
    assert daemon.wait() == 0


def test_full_mapping(daemon, small):
    data = new_data()
    mapped = np.memmap(daemon.path / "array.bin", np.uint8, "r+", shape=SHAPE)
    mapped[...] = data
    assert _error(mapped.flush) == errno.ENOSPC
    _remount(small, "size=16m")
    mapped.flush()
    assert (stored(small / "a.zarr") == data).all()
    assert (mapped == data).all()


def test_mapped_pages_that_were_refused_are_never_told_to_be_stored(tmp_path, mount_daemon, small):
    """There is room for them neither in the store nor in memory, and the kernel drops them."""
    source = small / "large.zarr"
    zarr.create_array(source, shape=(96, 1 << 18), chunks=(8, 1 << 17), dtype="u1")
    options = f"rw,flush_delay=3600,journal={tmp_path}/journal,memory=16M,workers=0"
    daemon = mount_daemon(source, options, quiet=False)
    data = np.random.default_rng(1).integers(0, 256, (96, 1 << 18), np.uint8).tobytes()
    files = [os.open(daemon.path / "array.bin", os.O_RDWR) for _ in range(4)]
    with mmap.mmap(files[0], 0) as mapped:
        mapped[:] = data
        assert _error(mapped.flush) == errno.ENOSPC
        _remount(small, "size=64m")
        for file in files[:2]:
            assert _error(lambda file=file: os.fsync(file)) == errno.ENOSPC
            assert _error(mapped.flush) == errno.ENOSPC
        for file in files[2:]:
            assert _error(lambda file=file: os.close(file)) == errno.ENOSPC
        # The pages are changed again, so the kernel hands them over again.
        mapped[:] = data
        mapped.flush()
    for file in files[:2]:
        os.close(file)
    assert stored(source).tobytes() == data


def test_space_that_comes_while_it_ends(daemon, small):
    """The end of the mount tries again, and what it stores late is stored."""
    data = new_data().tobytes()
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.pwrite(file, data, 0)
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("is tried again")
    _remount(small, "size=16m")
    assert daemon.wait() == 0
    assert stored(small / "a.zarr").tobytes() == data
    assert _error(lambda: os.close(file)) == errno.ENOTCONN


def test_asked_twice_it_gives_up_earlier(daemon, small):
    """And is not ended by that signal, whichever thread gets it."""
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.pwrite(file, new_data().tobytes(), 0)
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("is tried again")
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
        daemon.signal(number)
    assert daemon.wait() == 1
    assert "state on SIGUSR1" in daemon.log
    assert "asked again to end" in daemon.log
    assert "not stored: c/" in daemon.log
    assert _error(lambda: os.close(file)) == errno.ENOTCONN


@pytest.mark.parametrize("way", ["umount", "signal"])
def test_what_cannot_be_stored_at_the_end_is_told(daemon, small, options, mount_daemon, way):
    data = new_data()
    with open(daemon.path / "array.bin", "r+b") as file:
        file.write(data.tobytes())
        with pytest.raises(OSError, match="No space left"):
            file.close()
    if way == "umount":
        status = run_zarrfs("umount", daemon.path)
        assert status.returncode == 1
        assert "not all changes could be stored: c/" in status.stderr
        assert "No space left on device" in status.stderr
        assert status.stderr.count("\n") == 1
    else:
        daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 1
    assert "not stored: c/" in daemon.log
    assert not daemon.mounted
    # The next mount stores it.
    _remount(small, "size=16m")
    mount_daemon(small / "a.zarr", options, quiet=False).umount()
    assert (stored(small / "a.zarr") == data).all()


def test_what_an_overlay_cannot_take_goes_nowhere_else(small, mount_daemon, tmp_path):
    """Neither into its source, nor into another overlay."""
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, chunks=(8, 128, 128), dtype="u1", compressors=None)
    data = new_data()

    def mount(*options):
        return mount_daemon(source, "rw", "flush_delay=3600", *options, quiet=False)

    def content(daemon):
        found = (daemon.path / "array.bin").read_bytes()
        daemon.umount()
        return found

    daemon = mount(f"overlay={small / 'o'}")
    with open(daemon.path / "array.bin", "r+b") as file:
        file.write(data.tobytes())
        with pytest.raises(OSError, match="No space left"):
            file.close()
    assert run_zarrfs("umount", daemon.path).returncode == 1
    assert "kept in" in daemon.log
    assert content(mount()) == bytes(data.nbytes)
    assert content(mount(f"overlay={tmp_path / 'other'}")) == bytes(data.nbytes)
    _remount(small, "size=16m")
    assert content(mount(f"overlay={small / 'o'}")) == data.tobytes()
    assert content(mount()) == bytes(data.nbytes)
