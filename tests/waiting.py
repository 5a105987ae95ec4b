"""Waits until something has happened; a test that waits in vain fails."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from zarrfs.fuse.connection import Connection

T = TypeVar("T")

_SECONDS = 30.0


def wait_until(reached: Callable[[], T], seconds: float = _SECONDS) -> T:
    """Returns what ``reached`` does, as soon as that is true."""
    give_up = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < give_up, "it does not happen"
        time.sleep(0.005)
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended; its new parent may not have looked yet."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for_request(mount_point: Path) -> None:
    """Returns when the daemon of a mount has a request that it has not answered.

    As the kernel counts the requests of the mount, which asks no daemon.
    """
    connection = Connection.find(str(mount_point))
    assert connection is not None
    count = Path("/sys/fs/fuse/connections", str(connection.device[1]), "waiting")
    if not count.exists():
        pytest.skip("needs fusectl: mount -t fusectl none /sys/fs/fuse/connections")
    wait_until(lambda: int(count.read_text()))
