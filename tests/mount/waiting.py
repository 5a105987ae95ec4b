"""Waits until the daemon of a mount has a request that it has not answered."""

import time
from pathlib import Path

import pytest

from zarrfs.fuse.connection import Connection

_SECONDS = 20.0


def wait_for_request(mount_point: Path) -> None:
    """As the kernel counts the requests of the mount, which asks no daemon."""
    connection = Connection.find(str(mount_point))
    assert connection is not None
    count = Path("/sys/fs/fuse/connections", str(connection.device[1]), "waiting")
    if not count.exists():
        pytest.skip("needs fusectl: mount -t fusectl none /sys/fs/fuse/connections")
    give_up = time.monotonic() + _SECONDS
    while not int(count.read_text()):
        assert time.monotonic() < give_up, "nothing asks the daemon"
        time.sleep(0.001)
