"""From mount to unmount: every way to begin and every way to end."""

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import run_python, run_zarrfs
from tests.waiting import wait_for_request, wait_until
from zarrfs.cli.main import cli
from zarrfs.cli.main import run as cli_run
from zarrfs.daemon.status import Mounted
from zarrfs.daemon.umount import umount, users
from zarrfs.errors import MountError
from zarrfs.fuse import connection
from zarrfs.fuse.mount_table import topmost
from zarrfs.fuse.unmount import unmount

FAKE = Path(__file__).parents[1] / "fake_zarrfs.py"
COMMAND = (sys.executable, "-m", "zarrfs")


def run(*arguments, timeout: float = 30.0) -> tuple[int, str, str]:
    done = run_zarrfs(*arguments, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


class Reader(threading.Thread):
    """Reads a file in the background: ``result`` is its bytes, or the errno.

    opens : whether the daemon answers when the file is opened; then the read is what waits.
    """

    def __init__(self, path: Path, mount_point: Path, *, opens: bool = True) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._opened = threading.Event()
        self.result: bytes | int | None = None
        self.start()
        if opens:
            assert self._opened.wait(20)
        wait_for_request(mount_point)

    def run(self) -> None:
        try:
            file = os.open(self._path, os.O_RDONLY)
        except OSError as error:
            self.result = error.errno
            return
        self._opened.set()
        try:
            self.result = os.read(file, 1 << 20)
        except OSError as error:
            self.result = error.errno
        with suppress(OSError):  # the kernel asks before it closes, and closes anyway
            os.close(file)


@contextmanager
def foreground(source, mount_point):
    """A daemon in the foreground, when it is ready, with the first line of its log."""
    mount_point.mkdir()
    with subprocess.Popen(
        [*COMMAND, "mount", "-f", source, mount_point],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline()
        finally:
            process.kill()
    assert topmost(str(mount_point)) is None


@pytest.fixture
def daemon(mount_daemon, source):
    return mount_daemon(source)


def test_mount_returns_when_it_answers(daemon, data):
    assert (np.memmap(daemon.path / "array.bin", np.uint16, "r") == data.ravel()).all()


def test_config_json_tells_what_is_in_force(mount_daemon, source):
    daemon = mount_daemon(source, "order=F,memory=64M", "recheck=never")
    config = json.loads((daemon.path / ".zarrfs/config.json").read_bytes())
    assert config["pid"] == daemon.pid
    assert config["source"] == str(source)
    assert config["mountpoint"] == str(daemon.path)
    assert config["options"]["order"] == "F"
    assert config["options"]["memory"] == 64 << 20
    assert config["options"]["recheck"] == "never"


def test_mount_table_shows_the_source(mount_daemon, source):
    strange = source.with_name("a, b\\c #é \n.zarr")
    source.rename(strange)
    mount_point = source.with_name("m, p\\q é")
    daemon = mount_daemon(strange, at=mount_point)
    entry = topmost(str(daemon.path))
    assert entry is not None
    assert entry.source == str(strange)


def test_symbolic_link_to_the_mount_point(mount_daemon, source, tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    daemon = mount_daemon(source, at=link)
    assert topmost(str(real)) is not None
    assert run("umount", link) == (0, "", "")
    assert daemon.wait() == 0


def test_the_daemon_lets_go_of_its_surroundings(daemon):
    assert os.readlink(f"/proc/{daemon.pid}/cwd") == "/"
    assert os.getsid(daemon.pid) == daemon.pid
    assert os.readlink(f"/proc/{daemon.pid}/fd/0") == os.devnull
    assert os.readlink(f"/proc/{daemon.pid}/fd/1") == str(daemon.log_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it(daemon, number):
    (daemon.path / "array.bin").read_bytes()
    daemon.signal(number)
    assert daemon.wait() == 0
    assert not daemon.mounted
    assert list(daemon.path.iterdir()) == []


def test_sighup_does_not_end_it(daemon):
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("read everything again")
    assert (daemon.path / "array.bin").stat().st_size == 600_000


def test_sigusr1_dumps_the_state(daemon):
    daemon.signal(signal.SIGUSR1)
    daemon.wait_for_log("state on SIGUSR1")
    daemon.wait_for_log("lifecycle.py")
    assert (daemon.path / "array.bin").stat().st_size == 600_000


def test_zarrfs_umount_waits_for_the_end(daemon):
    assert run("umount", daemon.path) == (0, "", "")
    # Ended already: nothing is waited for here.
    assert daemon.wait(0) == 0
    assert not daemon.mounted


@pytest.mark.parametrize(
    "command", [("fusermount3", "-u"), ("umount",), ("fusermount3", "-uz"), ("umount", "-l")]
)
def test_other_unmounts_end_it(mount_daemon, source, command):
    if command[0] == "umount" and os.geteuid() != 0:
        pytest.skip("umount is for root")
    daemon = mount_daemon(source)
    subprocess.run([*command, str(daemon.path)], check=True, timeout=20)
    assert daemon.wait() == 0


def test_umount_says_who_keeps_it_busy(daemon):
    with open(daemon.path / "array.bin", "rb"):
        status, _, said = run("umount", daemon.path)
        assert status == 1
        assert re.fullmatch(
            rf"zarrfs: {re.escape(str(daemon.path))} is busy: used by \S+ \({os.getpid()}\)\n", said
        )
        assert daemon.mounted


def test_umount_of_several(mount_daemon, source, tmp_path):
    first, second = mount_daemon(source), mount_daemon(source)
    status, _, said = run("umount", first.path, tmp_path / "none", second.path, tmp_path / "no")
    none, no = (f"zarrfs: {tmp_path / name} is not mounted\n" for name in ("none", "no"))
    assert (status, said) == (1, none + no)
    assert not first.mounted
    assert not second.mounted
    assert run("umount", mount_daemon(source).path, mount_daemon(source).path) == (0, "", "")


def test_umount_of_all(mount_daemon, source, monkeypatch):
    """Of those that are listed, except another user's, the latest first."""
    first, second = mount_daemon(source), mount_daemon(source)
    places = {str(first.path): "alive", "/other/user's": "private", str(second.path): "alive"}
    listed = [Mounted(place, "s", False, state, 1) for place, state in places.items()]
    monkeypatch.setattr("zarrfs.daemon.status.list_mounts", lambda: listed)
    assert cli_run(cli, "zarrfs", ["umount", "--all", "x"]) == 2
    assert cli_run(cli, "zarrfs", ["umount"]) == 2
    assert cli_run(cli, "zarrfs", ["umount", "--all"]) == 0
    assert not first.mounted
    assert not second.mounted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mount namespaces")
def test_umount_says_which_mount_namespace_has_it_still(mount_daemon, source, monkeypatch):
    monkeypatch.setattr("zarrfs.daemon.umount._ELSEWHERE_S", 1.0)
    daemon = mount_daemon(source)
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 600"],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        wait_until(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
        with pytest.raises(MountError) as caught:
            umount(str(daemon.path))
        assert f"those of sleep ({holder.pid}): its daemon, process " in str(caught.value)
        assert not daemon.mounted
    finally:
        holder.kill()
        holder.communicate()
    assert daemon.wait() == 0


def test_a_process_that_cannot_be_asked_does_not_hide_the_others(tmp_path, monkeypatch):
    """The kernel may tell for ever nothing of the mappings of a process that waits for a mount."""
    monkeypatch.setattr("zarrfs.daemon.umount._SEARCH_TIMEOUT_S", 0.1)
    path = "/mnt/cells"
    for number, opened, maps in ((7, path, ""), (8, "/", None), (30, f"{path}/array.bin", "")):
        process = tmp_path / f"{number}"
        (process / "fd").mkdir(parents=True)
        (process / "fd/3").symlink_to(opened)
        (process / "comm").write_text(f"p{number}\n")
        if maps is None:
            os.mkfifo(process / "maps")  # reading it waits for a writer
    # A thread that is slow has not yet looked at all in so little time.
    wait_until(lambda: users(path, tmp_path) == ["p7 (7)", "p30 (30)"])
    with suppress(OSError):  # the threads that wait end
        os.close(os.open(tmp_path / "8/maps", os.O_WRONLY | os.O_NONBLOCK))


def test_umount_says_who_has_mapped_it(daemon):
    mapped = np.memmap(daemon.path / "array.bin", np.uint16, "r")
    assert f"({os.getpid()})" in run("umount", daemon.path)[2]
    assert mapped[1] == 1
    del mapped


def test_lazy_umount_of_a_busy_mount(daemon, data):
    with open(daemon.path / "array.bin", "rb") as file:
        assert run("umount", "--lazy", daemon.path) == (0, "", "")
        assert not daemon.mounted
        assert file.read() == data.tobytes()
    assert daemon.wait() == 0


def test_sigterm_ends_a_busy_mount(daemon):
    file = os.open(daemon.path / "array.bin", os.O_RDONLY)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert not daemon.mounted
    with pytest.raises(OSError) as caught:
        os.read(file, 10)
    assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    # The kernel asks before it closes, and closes whatever the answer.
    with pytest.raises(OSError, match="not connected"):
        os.close(file)


def test_sigterm_waits_for_requests_in_flight(mount_fake, source):
    daemon = mount_fake()
    (source / "hold").touch()
    reader = Reader(daemon.path / "nap", daemon.path)
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("ending on SIGTERM")
    (source / "hold").unlink()
    reader.join(30)
    assert isinstance(reader.result, bytes)
    assert len(reader.result) == 10_000
    assert daemon.wait() == 0


@pytest.mark.parametrize(("name", "end"), [("slow", 60), ("deaf", 2)])
def test_sigterm_ends_requests_that_are_never_answered(mount_fake, name, end):
    daemon = mount_fake("drain=0.5", f"end={end}", quiet=False)
    reader = Reader(daemon.path / name, daemon.path)
    daemon.signal(signal.SIGTERM)
    # What cannot be cancelled is ended by the watchdog, which does not call that a success.
    assert daemon.wait() == (0 if name == "slow" else 1)
    assert not daemon.mounted
    reader.join(30)
    assert reader.result in (errno.ENOTCONN, errno.ECONNABORTED)


def test_second_signal_does_not_wait(mount_fake):
    daemon = mount_fake("drain=60", "end=90", quiet=False)
    reader = Reader(daemon.path / "slow", daemon.path)
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("ending on SIGTERM")
    daemon.signal(signal.SIGINT)
    assert daemon.wait() == 0
    reader.join(30)
    assert not reader.is_alive()


def test_a_daemon_that_reads_its_own_mount_can_be_ended(mount_daemon, source, tmp_path):
    """A link from the source into the mount makes chunks wait for themselves, and only those."""
    mount_point = tmp_path / "mnt"
    chunk = source / "c/0/0"
    chunk.unlink()
    chunk.symlink_to(mount_point / "chunks/0/0")
    daemon = mount_daemon(source, "follow_symlinks", at=mount_point, quiet=False)
    reader = Reader(mount_point / "chunks/0/0", mount_point, opens=False)
    assert json.loads((mount_point / ".zarrfs/config.json").read_bytes())["pid"] == daemon.pid
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("ending on SIGTERM")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert not daemon.mounted
    reader.join(30)
    assert isinstance(reader.result, int)


def test_mount_point_of_a_killed_daemon_is_mounted_again(mount_daemon, source):
    killed = mount_daemon(source, quiet=False)
    (killed.path / "array.bin").read_bytes()
    killed.signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    with pytest.raises(OSError, match="not connected"):
        os.listdir(killed.path)
    again = mount_daemon(source, at=killed.path)
    assert (again.path / "array.bin").stat().st_size == 600_000
    again.umount()
    assert topmost(str(again.path)) is None  # the dead one is not underneath


def test_umount_clears_what_a_killed_daemon_left(mount_daemon, source):
    killed = mount_daemon(source, quiet=False)
    killed.signal(signal.SIGKILL)
    killed.wait()
    assert run("umount", killed.path) == (0, "", "")
    assert not killed.mounted


def test_an_old_daemon_leaves_its_successor_alone(mount_daemon, source):
    old = mount_daemon(source)
    with open(old.path / "array.bin", "rb"):
        unmount(str(old.path), lazy=True)
        new = mount_daemon(source, at=old.path)
        old.signal(signal.SIGTERM)
        assert old.wait() == 0
        assert new.mounted
        assert (new.path / "array.bin").stat().st_size == 600_000


def test_foreground(source, tmp_path):
    mount_point = tmp_path / "mnt"
    with foreground(source, mount_point) as (process, first):
        assert f"mounted {source} at {mount_point}" in first
        assert (mount_point / "array.bin").stat().st_size == 600_000
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in err


def test_a_log_that_nobody_reads_does_not_hang_the_mount(source, tmp_path):
    mount_point = tmp_path / "mnt"
    with foreground(source, mount_point) as (process, _):
        pipe, page = process.stderr.fileno(), os.sysconf("SC_PAGESIZE")
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, page)
        end = time.monotonic() + 20
        while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder) < page:
            assert time.monotonic() < end
            process.send_signal(signal.SIGUSR1)  # a dump has some kilobytes
            time.sleep(0.05)
        assert (mount_point / "array.bin").stat().st_size == 600_000
        process.terminate()
        assert process.wait(20) == 0


def test_interrupted_command_leaves_nothing(tmp_path):
    """The user who presses ^C while the source is being opened gets no late mount."""
    mount_point = tmp_path / "mnt"
    mount_point.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.zarr"
        with subprocess.Popen([*COMMAND, "mount", url, mount_point], stderr=subprocess.PIPE) as it:
            silent.accept()[0].close()
            it.send_signal(signal.SIGINT)
            _, said = it.communicate(timeout=20)
    # After the ^C on the terminal comes a line's end.
    assert (it.returncode, said) == (130, b"\nzarrfs: interrupted\n")
    assert topmost(str(mount_point)) is None


INTERRUPTED_FORK = """
import os, signal, time
from zarrfs.daemon.system.background import run_in_background

def daemon(launch):
    print(os.getpid(), flush=True)
    time.sleep(100)

os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
run_in_background(daemon, mount_point="/", log_file=None)
"""


def test_interrupted_while_it_forks():
    done = run_python("-c", INTERRUPTED_FORK)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.endswith("KeyboardInterrupt\n")
    assert "ignored" not in done.stderr


def test_killed_command_leaves_nothing(source, tmp_path):
    """A mount that nobody waits for any more when it is ready ends itself."""
    mount_point, log = tmp_path / "mnt", tmp_path / "log"
    mount_point.mkdir()
    command = [sys.executable, FAKE, source, mount_point, "-o", f"log_file={log}"]
    (source / "hold").touch()
    with subprocess.Popen(command) as it:
        wait_until(log.exists)  # the daemon runs, and opens the source now
        it.kill()
    (source / "hold").unlink()
    wait_until(lambda: "unmounted" in log.read_text())
    assert topmost(str(mount_point)) is None


def test_a_failure_leaves_no_empty_directory(mount_fake, mount_daemon, source):
    """Who works in the mount when its daemon fails sees errors until it is mounted again."""
    daemon = mount_fake(quiet=False)
    with pytest.raises(OSError):
        (daemon.path / "broken").read_bytes()
    assert daemon.wait() == 1
    assert "Traceback" in daemon.log
    with pytest.raises(OSError, match="not connected"):
        os.listdir(daemon.path)
    again = mount_daemon(source, at=daemon.path)
    assert (again.path / "array.bin").stat().st_size == 600_000


@pytest.mark.parametrize(("step", "said"), [(1, "answers"), (2, "no event loop")])
def test_a_failure_while_it_mounts_leaves_nothing(source, tmp_path, step, said):
    mount_point = tmp_path / "mnt"
    mount_point.mkdir()
    done = run_python(FAKE, f"fail={step}", source, mount_point, "-o", f"log_file={tmp_path}/log")
    assert done.returncode != 0
    assert said in done.stderr
    assert topmost(str(mount_point)) is None
    assert not os.path.ismount(mount_point)
    assert not os.listdir(mount_point)


@pytest.mark.parametrize("through", ["fusectl", "umount2"])
def test_an_aborted_connection_ends_it(mount_fake, monkeypatch, tmp_path, through):
    daemon = mount_fake("stall=20", "drain=0.5", quiet=False)
    reader = Reader(daemon.path / "slow", daemon.path)
    if through == "umount2":
        if os.geteuid() != 0:
            pytest.skip("umount2 is for root")
        monkeypatch.setattr(connection, "_CONNECTIONS", tmp_path)
    found = connection.Connection.find(str(daemon.path))
    assert found is not None
    held = found.held()
    assert held.abort()
    held.close()
    reader.join(30)
    assert reader.result in (errno.ENOTCONN, errno.ECONNABORTED)
    assert daemon.wait() == 0
    assert not daemon.mounted


def test_no_descriptors_or_threads_leak(daemon):
    def use() -> tuple[int, int]:
        for _ in range(50):
            (daemon.path / "array.bin").read_bytes()
            (daemon.path / ".zarrfs/stats.json").read_bytes()
            list(daemon.path.iterdir())
        process = Path("/proc", str(daemon.pid))
        return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

    descriptors, threads = use()
    again = use()
    assert again[0] <= descriptors
    assert again[1] <= threads + 2  # a pool may still grow by a thread
