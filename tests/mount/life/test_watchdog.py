"""A daemon whose event loop hangs lets go of its mount and of those who wait for it."""

import errno
import signal
import subprocess
import sys
import time

import pytest

from tests.mount.life.test_lifecycle import Reader
from tests.soak import TIMES
from tests.waiting import wait_for_request

READ = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
print("reads", flush=True)
try:
    os.read(file, 100)
except OSError as error:
    sys.exit(error.errno)
"""


@pytest.mark.timeout(60)
def test_watchdog_frees_a_stalled_mount(mount_fake):
    daemon = mount_fake("stall=2", quiet=False)
    # In a process of its own: nobody can be killed who waits for a hanging mount.
    reader = subprocess.run(
        [sys.executable, "-c", READ, daemon.path / "stall"],
        stdout=subprocess.DEVNULL,
        timeout=30,
        check=False,
    )
    assert reader.returncode in (errno.ENOTCONN, errno.ECONNABORTED)
    assert daemon.wait() == 1
    assert not daemon.mounted
    assert "CRITICAL" in daemon.log
    assert "has not answered for 2 s" in daemon.log
    assert "in stall" in daemon.log  # the traceback says where


@pytest.mark.soak
@pytest.mark.skipif(
    TIMES == 1, reason="make soak; tests/unit/daemon/test_watchdog.py counts the looks"
)
@pytest.mark.timeout(60)
def test_a_stopped_process_has_not_stalled(mount_fake):
    daemon = mount_fake("stall=1")
    daemon.signal(signal.SIGSTOP)
    time.sleep(1.5)  # longer than a stall may take
    daemon.signal(signal.SIGCONT)
    assert (daemon.path / "fine").stat().st_size == 10_000
    assert daemon.mounted


@pytest.mark.timeout(60)
def test_slow_requests_are_no_stall(mount_fake, source):
    # More than a busy machine may keep the daemon from running.
    daemon = mount_fake("stall=3")
    (source / "hold").touch()
    reader = Reader(daemon.path / "nap", daemon.path)
    time.sleep(3.5)
    assert reader.result is None
    (source / "hold").unlink()
    reader.join(30)
    assert len(reader.result) == 10_000
    assert daemon.mounted


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["stall", "deaf"])
def test_changes_are_stored_when_the_watchdog_ends_it(mount_fake, name):
    daemon = mount_fake("stall=2", "drain=0.5", "end=2", quiet=False, options=("rw",))
    command = [sys.executable, "-c", READ, daemon.path / name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reads\n"
        wait_for_request(daemon.path)
        if name == "deaf":
            daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 1
    assert reader.returncode in (errno.ENOTCONN, errno.ECONNABORTED)
    assert "CRITICAL" in daemon.log
    assert daemon.log.count("drained") == 1
