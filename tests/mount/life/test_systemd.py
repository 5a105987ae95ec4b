"""The units of systemd: what systemd itself says of them, and a life under a real manager."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import run_program
from tests.mount.programs import write_programs
from tests.waiting import wait_until
from zarrfs.daemon.system.installation import Installation

UNITS = Path(str(files("zarrfs"))) / "systemd"
# What is worse is not accepted; systemd-analyze counts from 0, safe, to 10.
MOST_EXPOSED = 4.5

# Would give the service a mount namespace of its own, and its mount to nobody else.
HIDING = {
    *("PrivateTmp", "PrivateDevices", "PrivateMounts", "ProtectSystem", "ProtectHome"),
    *("ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectProc"),
    *("ProtectControlGroups", "ProcSubset", "ReadOnlyPaths", "InaccessiblePaths", "MountFlags"),
    *("ReadWritePaths", "BindPaths", "TemporaryFileSystem", "RootDirectory", "DynamicUser"),
    *("StateDirectory", "PrivateUsers", "NoExecPaths", "ExecPaths"),
}

USER_MANAGER = """
set -eu
# A service manager for this user alone, which sees a system that systemd has booted.
mount --make-rprivate /
mkdir -p /run/systemd
mount -t tmpfs none /run/systemd
mkdir /run/systemd/system
for group in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [ -e $group/cgroup.procs ] || continue
    mkdir -p $group/$1
    echo $$ > $group/$1/cgroup.procs
done
exec /lib/systemd/systemd --user --log-target=console
"""


@pytest.fixture(scope="module")
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    assert found is not None, "systemd-analyze is missing (package systemd)"
    return found


@pytest.mark.parametrize(
    "unit", ["system/zarrfs@.service", "examples/mnt-cells.mount", "examples/mnt-cells.automount"]
)
def test_verify(analyze, unit, tmp_path):
    program = write_programs(tmp_path / "bin")
    path = tmp_path / Path(unit).name
    path.write_text((UNITS / unit).read_text().replace("/usr/local/bin/zarrfs", str(program)))
    if path.suffix == ".automount":
        shutil.copy(UNITS / "examples/mnt-cells.mount", tmp_path)
    done = run_program(analyze, "verify", "--man=no", path)
    said = [line for line in done.stderr.splitlines() if path.stem.partition("@")[0] in line]
    assert said == [], done


def test_security(analyze):
    done = run_program(analyze, "security", "--offline=yes", UNITS / "system/zarrfs@.service")
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done
    assert float(found[1]) <= MOST_EXPOSED


@pytest.mark.parametrize("kind", ["system", "user"])
def test_nothing_hides_the_mount(kind):
    text = (UNITS / kind / "zarrfs@.service").read_text()
    names = {line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")}
    assert not names & HIDING
    if kind == "user":
        # fusermount3 could not become root under these, which are or imply NoNewPrivileges.
        implying = re.compile("NoNew|SystemCall|Restrict|Lock|Memory|Protect|Private|Capab")
        assert not list(filter(implying.match, names))


def test_the_two_units_are_alike():
    """They differ in what hardens the one and where they are wanted."""

    def service(kind: str) -> list[str]:
        text = (UNITS / kind / "zarrfs@.service").read_text()
        body = text.partition("[Service]")[2].partition("WatchdogSec=3min")[0]
        return [line for line in body.splitlines() if not line.startswith("#")]

    assert service("system") == service("user")


class UserManager:
    """A real ``systemd --user`` in a mount namespace and a control group of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.runtime = place / "run"
        self.runtime.mkdir(mode=0o700)
        self.group = f"zarrfs-test-{os.getpid()}"
        self.environment = {
            "HOME": str(place),
            "XDG_CONFIG_HOME": str(place / ".config"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PATH": os.environ["PATH"],
        }
        log = os.open(place / "log", os.O_WRONLY | os.O_CREAT)
        self.process = subprocess.Popen(
            ["unshare", "-m", "/bin/sh", "-c", USER_MANAGER, "sh", self.group],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        os.close(log)

    def wait(self) -> str | None:
        """None when it runs, or why it does not."""
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up and self.process.poll() is None:
            if self.systemctl("is-active", "default.target").stdout == "active\n":
                return None
            time.sleep(0.2)
        said = (self.place / "log").read_text()[-1000:]
        return f"exit status {self.process.poll()}: {said}"

    def systemctl(self, *arguments):
        return self.inside("systemctl", "--user", *arguments)

    def inside(self, *command):
        """Where it sees its mounts."""
        enter = ["nsenter", "-m", "-t", str(self.process.pid)]
        return run_program(*enter, *command, env=self.environment, cwd="/")

    def show(self, unit: str, name: str) -> str:
        return self.systemctl("show", "-P", name, unit).stdout.strip()

    def close(self) -> None:
        if self.process.poll() is None:
            self.systemctl("stop", "zarrfs@cells")
            self.systemctl("exit")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        give_up = time.monotonic() + 10
        for base in map(
            Path, ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
        ):
            top = base / self.group
            while top.is_dir() and time.monotonic() < give_up:
                for path in (*sorted(top.rglob("*/"), reverse=True), top):
                    try:
                        path.rmdir()
                    except OSError:
                        time.sleep(0.05)


@pytest.fixture
def user_manager(tmp_path: Path) -> Iterator[UserManager]:
    if os.geteuid() != 0:
        pytest.skip("a service manager of one's own needs root")
    place = tmp_path / "home"
    place.mkdir()
    manager = UserManager(place)
    try:
        if (reason := manager.wait()) is not None:
            pytest.skip(f"no systemd --user can be started here: {reason}")
        yield manager
    finally:
        manager.close()


@pytest.mark.mount
def test_a_life_under_systemd(user_manager, source, tmp_path, monkeypatch):
    """Started, reloaded, killed and started again, stopped with all changes stored."""
    for name, value in user_manager.environment.items():
        monkeypatch.setenv(name, value)
    program = write_programs(tmp_path / "bin")
    (unit,) = Installation(program, user=True).install()
    assert unit == user_manager.place / ".config/systemd/user/zarrfs@.service"
    config = user_manager.place / ".config/zarrfs"
    config.mkdir()
    mnt = user_manager.place / "not there yet" / "cells"
    (config / "cells.conf").write_text(
        f'SOURCE={source}\nMOUNTPOINT="{mnt}"\nOPTIONS=rw,flush_delay=60\n'
    )
    cells = "zarrfs@cells.service"

    assert user_manager.systemctl("daemon-reload").returncode == 0
    started = user_manager.systemctl("start", cells)
    assert started.returncode == 0, user_manager.systemctl("status", cells).stdout
    # Type=notify: it is mounted when this returns.
    found = user_manager.inside("findmnt", "-n", "-o", "FSTYPE,SOURCE", mnt).stdout.split()
    assert found == ["fuse.zarrfs", str(source)]
    assert user_manager.show(cells, "StatusText").startswith("serving 1 array,")
    assert user_manager.show(cells, "WatchdogUSec") == "3min"
    first = user_manager.show(cells, "MainPID")

    zarr.open_array(source).resize((700, 500))
    assert user_manager.systemctl("reload", cells).returncode == 0
    size = ["stat", "-c", "%s", mnt / "array.bin"]
    wait_until(lambda: user_manager.inside(*size).stdout == "700000\n")
    wait_until(lambda: user_manager.show(cells, "ActiveState") == "active")

    # A killed daemon leaves its mount point dead; the unit clears it and mounts again.
    assert user_manager.inside("kill", "-9", first).returncode == 0
    wait_until(lambda: user_manager.show(cells, "NRestarts") == "1")
    wait_until(lambda: user_manager.show(cells, "ActiveState") == "active")
    assert user_manager.show(cells, "MainPID") != first
    assert user_manager.inside(*size).stdout == "700000\n"

    # A mapping that nobody has synced is stored by the stop.
    script = (
        "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0);"
        "m[0:4] = b'1234'; m.close(); f.close()"
    )
    file = mnt / "array.bin"
    done = user_manager.inside(sys.executable, "-c", script, file)
    assert (done.returncode, done.stderr) == (0, "")
    assert user_manager.systemctl("stop", cells).returncode == 0
    assert user_manager.show(cells, "Result") == "success"
    assert zarr.open_array(source)[0, :2].tobytes() == b"1234"
    assert user_manager.inside("findmnt", mnt).returncode == 1
    assert np.all(zarr.open_array(source)[1, :4] == [500, 501, 502, 503])

    # The system's unit, of which this manager takes what hardens it just as well.
    text = (UNITS / "system/zarrfs@.service").read_text()
    hardened = unit.with_name("hardened@.service")
    hardened.write_text(text.replace("/usr/local/bin/zarrfs", str(program)))
    assert user_manager.systemctl("daemon-reload").returncode == 0
    started = user_manager.systemctl("start", "hardened@cells")
    assert started.returncode == 0, user_manager.systemctl("status", "hardened@cells").stdout
    pid = user_manager.show("hardened@cells", "MainPID")
    status = Path("/proc", pid, "status").read_text()
    assert re.search(r"^NoNewPrivs:\s1$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\s2$", status, re.MULTILINE)
    done = user_manager.inside(sys.executable, "-c", script.replace("1234", "5678"), file)
    assert (done.returncode, done.stderr) == (0, "")
    assert user_manager.systemctl("stop", "hardened@cells").returncode == 0
    assert user_manager.show("hardened@cells", "Result") == "success"
    assert zarr.open_array(source)[0, :2].tobytes() == b"5678"

    # Wrong usage is not tried again.
    (config / "cells.conf").write_text(f'SOURCE={source}\nMOUNTPOINT="{mnt}"\nOPTIONS=memroy=1\n')
    assert user_manager.systemctl("start", cells).returncode == 1
    assert user_manager.show(cells, "ActiveState") == "failed"
    assert user_manager.show(cells, "ExecMainStatus") == "2"
