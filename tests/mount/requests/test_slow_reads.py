"""Files whose data does not come, and what else there is."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mount.arrays import make_array
from tests.mount.controlled import Controlled
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(100)

SECONDS = 40.0


def test_fsync_and_close_do_not_wait_for_reads_of_another_array(mount_daemon, tmp_path):
    """The kernel drops no page that is being read."""
    group = tmp_path / "group.zarr"
    chunks = len(make_array(group, "a", "plain").files()) - 1
    make_array(group, "b", "plain")
    mount = Controlled.mount(mount_daemon, group, tmp_path / "control")
    path = mount.daemon.path
    mount.hold_reads("a/c/")
    slow, fast = ([path / name / file for file in ("array.bin", "array.npy")] for name in "ab")
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(read, slow[0])
        wait_until(lambda: mount.held_reads > 0)
        # All of its elements, so that no chunk has to be read before it is stored.
        size = slow[0].stat().st_size
        storing = threads.submit(write, slow[1], slow[1].stat().st_size - size, bytes(size))
        try:
            wait_until(lambda: mount.changes == chunks)
            with pytest.raises(TimeoutError):
                storing.result(1)
            with fast[0].open("rb", buffering=0) as file:
                threads.submit(file.read, 4096).result(SECONDS)
                threads.submit(write, fast[1], 128, b"new").result(SECONDS)
                file.seek(0)
                assert threads.submit(file.read, 3).result(SECONDS) == b"new"
            assert not storing.done()
        finally:
            mount.let_reads()
        storing.result(SECONDS)
        reading.result(SECONDS)
        assert not any(threads.submit(read, slow[0]).result(SECONDS))


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, offset: int, data: bytes) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        assert os.pwrite(file, data, offset) == len(data)
        os.fsync(file)
    finally:
        os.close(file)
