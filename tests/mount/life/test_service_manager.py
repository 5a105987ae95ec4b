"""What a service manager is told, over a real socket, by a real daemon."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.waiting import wait_until
from zarrfs.daemon.system.service_manager import ServiceManager

COMMAND = (sys.executable, "-m", "zarrfs")


class Manager:
    """The other end of NOTIFY_SOCKET: every message as a dictionary."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(30)
        self.heard: list[dict[str, str]] = []

    def wait_for(self, *names: str) -> dict[str, str]:
        """The next message that has all of ``names``."""
        while True:
            message = dict(
                line.split("=", 1) for line in self.socket.recv(65536).decode().splitlines()
            )
            self.heard.append(message)
            if set(names) <= set(message):
                return message

    def rest(self) -> list[dict[str, str]]:
        """What has come and was not waited for."""
        self.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.wait_for("nothing")
        return self.heard


@pytest.fixture
def manager(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Manager, str]]:
    abstract = getattr(request, "param", "path") == "abstract"
    name = f"@zarrfs-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    told = Manager(name.replace("@", "\0"))
    yield told, name
    told.socket.close()


@pytest.fixture
def start(manager, tmp_path: Path) -> Iterator[Callable]:
    """``start(source, *arguments, **environment)``: a mount in the foreground."""
    mnt = tmp_path / "mnt"
    mnt.mkdir()

    @contextmanager
    def run(source, *arguments, command=(*COMMAND, "mount", "-f"), **environment):
        journal = f"journal={tmp_path / 'journal'}"
        with subprocess.Popen(
            [*command, *arguments, source, mnt, "-o", journal],
            env={**os.environ, "NOTIFY_SOCKET": manager[1], **environment},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
                # Shown where the test fails.
                print(process.communicate(timeout=30)[1])

    return run


@pytest.mark.mount
def test_a_life(manager, start, source, tmp_path):
    told, _ = manager
    # The kernel keeps ten messages that nobody has read, and drops what comes then.
    watched = {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": ""}
    with start(source, "-o", "rw", **watched) as process:
        assert told.wait_for("STATUS") == {"STATUS": "opening the source"}
        assert told.wait_for("READY")["STATUS"].startswith("serving 1 array, 0 open files")
        file = os.open(tmp_path / "mnt/array.bin", os.O_RDWR)
        assert os.pwrite(file, b"12", 0) == 2
        told.wait_for("WATCHDOG")
        told.wait_for("WATCHDOG")
        process.send_signal(signal.SIGHUP)
        reloading = told.wait_for("RELOADING", "MONOTONIC_USEC")
        assert abs(int(reloading["MONOTONIC_USEC"]) / 1e6 - time.monotonic()) < 60
        told.wait_for("READY")
        assert os.pwrite(file, b"34", 0) == 2
        process.terminate()
        told.wait_for("STOPPING")
        told.wait_for("EXTEND_TIMEOUT_USEC")
        with suppress(OSError):  # the daemon may have ended
            os.close(file)
        assert process.wait(30) == 0
    assert zarr.open_array(source, mode="r")[0, :1].tobytes() == b"34"
    told.rest()
    # Now that it has ended, what is left to store has been told.
    assert any(message.get("STATUS", "").startswith("storing changes") for message in told.heard)
    assert sum("READY" in message for message in told.heard) == 2


@pytest.mark.mount
def test_what_is_meant_for_another(manager, start, source):
    told, _ = manager
    with start(source, WATCHDOG_USEC="1000", WATCHDOG_PID="1") as process:
        told.wait_for("READY")
        # Each makes it tell its state, and it would tell of the watchdog each millisecond.
        for _ in range(20):
            process.send_signal(signal.SIGHUP)
            told.wait_for("READY")
        process.terminate()
        assert process.wait(30) == 0
    assert not any("WATCHDOG" in message for message in told.rest())


@pytest.mark.mount
def test_a_failure_is_never_ready(manager, start, tmp_path):
    with start(tmp_path / "none") as process:
        assert process.wait(30) == 1
    assert not any("READY" in message for message in manager[0].rest())


def test_the_background_tells_nobody(manager, mount_daemon, source, monkeypatch):
    """The command may have been started by any service, whose state is none of its business."""
    monkeypatch.setenv("NOTIFY_SOCKET", manager[1])
    mount_daemon(source).umount()
    assert manager[0].rest() == []


def test_nobody_is_there(tmp_path, caplog):
    environment = {"NOTIFY_SOCKET": str(tmp_path / "none"), "WATCHDOG_USEC": "0", "HOME": "/"}
    nobody = ServiceManager.from_environment(environment)
    assert environment == {"HOME": "/"}
    assert nobody.watchdog_seconds is None
    nobody.ready("a")
    nobody.alive()
    nobody.close()
    assert "cannot notify the service manager" in caplog.text


@pytest.mark.parametrize("manager", ["path", "abstract"], indirect=True)
def test_a_manager_that_does_not_listen_stops_nobody(manager):
    busy = ServiceManager(manager[1], watchdog_seconds=1.0)
    for _ in range(2000):  # more than the socket takes
        busy.alive()
    busy.set_status("line\nbreaks\tare not for a status")
    busy.close()
    assert {"WATCHDOG": "1"} in manager[0].rest()


def test_reload_shows_what_others_changed(mount_daemon, source):
    """Where the mount was told that nothing changes, only a reload looks again."""
    daemon = mount_daemon(source, "immutable")
    assert (daemon.path / "array.bin").stat().st_size == 600_000
    assert np.fromfile(daemon.path / "array.bin", np.uint16, 4).tolist() == [0, 1, 2, 3]
    array = zarr.open_array(source)
    array[0, :4] = 9
    assert np.fromfile(daemon.path / "array.bin", np.uint16, 4).tolist() == [0, 1, 2, 3]
    array.resize((700, 500))
    array[600:] = 5
    with open(daemon.path / "array.bin", "rb") as opened:
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log("read everything again")
        assert os.fstat(opened.fileno()).st_size in (600_000, 700_000)
    # The kernel is told by a thread of its own.
    wait_until(lambda: (daemon.path / "array.bin").stat().st_size == 700_000)
    read = np.fromfile(daemon.path / "array.bin", np.uint16).reshape(700, 500)
    assert (read == array[:]).all()
    assert sorted(os.listdir(daemon.path / "chunks")) == [str(i) for i in range(7)]
    assert (daemon.path / "zarr.json").read_bytes() == (source / "zarr.json").read_bytes()


def test_reload_keeps_changes(mount_daemon, source):
    daemon = mount_daemon(source, "rw,flush_delay=60")
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        file.write(b"12")
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log("read everything again")
        file.write(b"34")
        assert (daemon.path / "array.bin").read_bytes()[:4] == b"1234"
    assert zarr.open_array(source)[0, :2].tobytes() == b"1234"


def test_reload_of_a_source_that_is_gone(mount_daemon, source):
    daemon = mount_daemon(source, quiet=False)
    (source / "zarr.json").unlink()
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("the mount shows what it has in memory")
    assert (daemon.path / "array.bin").stat().st_size == 600_000
