"""A worker process that is stopped holds nobody up: threads do its job."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import Daemon
from tests.mount.workers.test_workers import (
    MIB,
    alive,
    left_behind,
    overwrite,
    wait_for_end,
    workers_of,
    write,
)
from tests.waiting import wait_until

IMPATIENT = Path(__file__).parent / "impatient_zarrfs.py"


@pytest.fixture
def mount_impatient(mount_daemon):
    """Mounts with a daemon that believes a worker lost after a second of silence."""

    def mount(source: Path, *options: str, seconds: float = 1.0):
        command = (sys.executable, IMPATIENT, str(seconds))
        return mount_daemon(source, *options, command=command, quiet=False)

    return mount


def wait_for_two(daemon: Daemon) -> None:
    """A worker is replaced after it is told that it was lost; others may be lost meanwhile."""
    wait_until(lambda: len(alive(workers_of(daemon.pid))) == 2)


def stop(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize("stopped", [1, 2])
def test_what_stopped_workers_were_to_store_is_stored(mount_impatient, tmp_path, stopped):
    data = write(tmp_path / "a.zarr", repeats=2)
    daemon = mount_impatient(tmp_path / "a.zarr", "rw,workers=2")
    pids = workers_of(daemon.pid)
    stop(pids[:stopped])
    new = data[::-1].copy()
    overwrite(daemon.path / "array.bin", new, MIB // 2)
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], new)
    daemon.wait_for_log("does not answer")
    wait_for_end(pids[:stopped])
    wait_for_two(daemon)
    daemon.umount()
    assert daemon.wait() == 0
    assert left_behind(tmp_path / "a.zarr") == []


def test_what_stopped_workers_were_to_read_is_read(mount_impatient, tmp_path):
    data = write(tmp_path / "a.zarr", repeats=2)
    daemon = mount_impatient(tmp_path / "a.zarr", "workers=2,memory=16M")
    stop(workers_of(daemon.pid))
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    daemon.wait_for_log("does not answer")
    wait_for_two(daemon)


def test_daemon_ends_with_stopped_workers(mount_impatient, tmp_path):
    """Also while somebody waits for one of them, and with what was written stored."""
    data = write(tmp_path / "a.zarr", repeats=2)
    daemon = mount_impatient(tmp_path / "a.zarr", "rw,workers=2")
    pids = workers_of(daemon.pid)
    stop(pids)
    new = data[::-1].copy()
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.write(file, new.tobytes())
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    with pytest.raises(OSError, match="not connected"):
        os.close(file)
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], new)
    wait_for_end(pids)
