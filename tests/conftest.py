"""Real mounts for tests: `mounted` mounts with the real command and cleans up whatever happens."""

import ctypes
import functools
import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.forked_mount import forked
from tests.soak import EXHAUSTIVE, TIMES
from tests.waiting import wait_until
from zarrfs import locks
from zarrfs.daemon.umount import umount
from zarrfs.errors import MountError
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, topmost
from zarrfs.fuse.unmount import unmount

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "zarrfs")
COMMAND_TIMEOUT_S = 60.0
END_TIMEOUT_S = 40.0
# For all tests of a module that share mounts.
SHARED_TIMEOUT_S = 400.0
# An exhaustive crash sweep may take so many times as long as a sample.
SWEEP_TIMES = 20
# These take longest, and the run would wait for each that began late.
LONGEST = [
    "docs/test_commands", "benchmarks/test_shapes", "benchmarks/test_rows",
    "store/remote/test_distant_store", "faults/killed/test_crash_sweep", "faults/hostile/test_fuzz",
    "faults/hostile/test_hostile_input", "interop/foreign/test_foreign_files",
    "interop/hierarchies/test_distant_hierarchies", "model/test_rewriting",
    "model/test_write_machine", "model/test_resize_machine", "tools/test_python_packages",
    "mount/workers/test_workers", "store/test_every_store", "unit/format/test_metadata_model",
    "fs/reading/test_failing_loads",
]  # fmt: skip

# Opened while the mount is there, this reaches no other one that gets its number later.
GUARD = 'exec 3>"$2"; sleep "$1"; echo 1 >&3'

_PR_SET_CHILD_SUBREAPER = 36
_TROUBLE = re.compile(r"\b(WARNING|ERROR|CRITICAL|Traceback)\b")
_DAEMON = re.compile(r"zarrfs\[(\d+)\]")

settings.load_profile("zarrfs")


def pytest_configure() -> None:
    # Here, and in the daemons that the tests start.
    locks.checked = True
    os.environ["ZARRFS_DEBUG_LOCKS"] = "1"
    # It takes the locks of the standard streams away.
    os.environ.pop("PYTHONUNBUFFERED", None)
    # Each store at a URL asks, and to look through all packages takes longer than to open it.
    found = functools.cache(lambda _, entry_points=metadata.entry_points, **of: entry_points(**of))
    metadata.entry_points = lambda **of: found(tuple(sys.path), **of)
    # Where the tests are a shell's background job they ignore it, and all that they start would.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session: pytest.Session) -> None:
    """Has each of several processes import its share of all tests before the others.

    What it compiles the others find, where each would compile all of them at the same time.
    """
    # Nothing that is collected becomes garbage.
    gc.disable()
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    share = slice(int(worker[2:]), None, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for path in files[share]:
        # What cannot be imported is told by who collects it.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names that are the same in all processes, which compressed bytes with a time are not."""
    return f"{argname} of {len(val)}" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest = {Path(__file__).parent / f"{name}.py" for name in LONGEST}
    assert all(path.exists() for path in longest)
    items.sort(key=lambda item: item.path not in longest)
    for item in items:
        if {"mount_daemon", "mounted", "shared_mounter"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.mount)


def pytest_collection_finish(session: pytest.Session) -> None:
    # Without `gc.freeze`: hypothesis asks which objects refer to one.
    gc.enable()
    # Each look through all that was collected takes as long as a test.
    gc.set_threshold(700, 10, 100)
    # Only now does every test that hypothesis runs say so.
    times = max(TIMES, SWEEP_TIMES if EXHAUSTIVE else 1)
    for item in session.items if times > 1 else ():
        if item.get_closest_marker("hypothesis") or item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(_timeout(item) * times), append=False)


def _timeout(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return marker.args[0] if marker else float(item.config.getini("timeout"))


def run_zarrfs(
    *arguments: str | Path, timeout: float = COMMAND_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """The real command, to its end."""
    asked = list(map(str, arguments))
    return forked(asked, timeout) or run_program(*COMMAND, *asked, timeout=timeout)


def run_python(*arguments: str | Path, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """A new interpreter, to its end."""
    return run_program(sys.executable, *arguments, **keywords)


def run_program(
    *command: object, timeout: float = COMMAND_TIMEOUT_S, check: bool = False, **keywords: Any
) -> subprocess.CompletedProcess[str]:
    """Any program, to its end; keywords are those of `subprocess.run`."""
    return subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=check,
        **keywords,
    )


def run_shell(line: str, **names: object) -> subprocess.CompletedProcess[str]:
    """Runs ``line`` with variables set, in English."""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"} | {n: str(v) for n, v in names.items()}
    return run_program("bash", "-c", line, env=env)


@dataclass
class Daemon:
    """A mounted daemon. Tests run as its reaper, so that its exit status can be seen."""

    path: Path
    log_path: Path
    pid: int
    guard: subprocess.Popen[bytes]
    quiet: bool = True
    status: int | None = None

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    @property
    def mounted(self) -> bool:
        entry = topmost(str(self.path))
        return entry is not None and entry.type == FILE_SYSTEM_TYPE

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float = END_TIMEOUT_S) -> int:
        """The exit status of the daemon (a negative signal number if it was killed)."""
        give_up = time.monotonic() + timeout
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > give_up:
                raise TimeoutError(f"daemon {self.pid} does not end; its log:\n{self.log}")
            else:
                time.sleep(0.01)
        return self.status

    def wait_for_log(self, text: str, timeout: float = END_TIMEOUT_S) -> None:
        give_up = time.monotonic() + timeout
        while text not in self.log:
            assert time.monotonic() < give_up, f"{text!r} not in the log:\n{self.log}"
            time.sleep(0.01)

    def umount(self) -> None:
        done = run_zarrfs("umount", self.path)
        assert (done.returncode, done.stderr) == (0, "")


@dataclass
class Mounter:
    """Mounts, and ends what it has mounted."""

    directory: Path
    timeout: float
    daemons: list[Daemon] = field(default_factory=list)

    def __call__(
        self,
        source: str | Path,
        *options: str,
        quiet: bool = True,
        at: Path | None = None,
        command: tuple[str | Path, ...] = (),
    ) -> Daemon:
        """Mounts ``source``.

        options : each as after ``-o``.
        quiet : fail the test if the daemon logs a warning.
        at : the mount point; None for a new directory.
        command : in place of ``zarrfs mount``. A script that this Python runs is forked, too.
        """
        number = len(self.daemons)
        path = at or self.directory / f"mount{number}"
        # A place that is given may be there, as the mount point of a daemon that was killed.
        with suppress(OSError):
            path.mkdir()
        place = path.resolve()
        log = self.directory / f"log{number}"
        # Not where those of real mounts are; a test may name another place. Of all that a mount
        # starts, workers take longest, and small arrays need none: a test may ask for more.
        defaults = f"journal={self.directory / 'journal'}", "workers=1"
        options = (*defaults, *options, f"log_file={log}")
        arguments = [str(source), str(path)]
        arguments += [part for option in options for part in ("-o", option)]
        started = [*map(str, command or (*COMMAND, "mount")), *arguments]
        # A script of this Python, or the plain command.
        asked = started[1:] if command else ["mount", *arguments]
        plain = not command or (started[0] == sys.executable and asked[0].endswith(".py"))
        done = (forked(asked, COMMAND_TIMEOUT_S) if plain else None) or run_program(*started)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        daemon = Daemon(place, log, _pid(log), self._guard(place), quiet=quiet)
        self.daemons.append(daemon)
        return daemon

    def end(self, daemon: Daemon) -> None:
        """Before the test is over, which may need many."""
        problems = list(self._end(daemon))
        assert not problems, "\n".join(problems)

    def close(self) -> None:
        left = [daemon for daemon in self.daemons if daemon.guard.returncode is None]
        problems = [problem for daemon in left for problem in self._end(daemon)]
        assert not problems, "\n".join(problems)

    def _guard(self, path: Path) -> subprocess.Popen[bytes]:
        """Another process that frees the mount when the test hangs in it.

        Not a thread: a page fault in a mapping of the mount holds the GIL.
        """
        entry = topmost(str(path))
        assert entry is not None
        abort = f"/sys/fs/fuse/connections/{entry.device[1]}/abort"
        return subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(self.timeout), abort],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _end(self, daemon: Daemon) -> Iterator[str]:
        try:
            if daemon.status is None and daemon.mounted:
                # What the command does, without starting another Python.
                umount(str(daemon.path))
            daemon.wait()
            if daemon.quiet and (daemon.status != 0 or _TROUBLE.search(daemon.log)):
                yield f"daemon ended with {daemon.status}; its log:\n{daemon.log}"
        except (TimeoutError, MountError) as error:
            yield str(error)
            if daemon.status is None:
                os.kill(daemon.pid, signal.SIGKILL)
        finally:
            os.killpg(daemon.guard.pid, signal.SIGKILL)
            daemon.guard.wait()
            if daemon.mounted:
                unmount(str(daemon.path), lazy=True)


def _pid(log: Path) -> int:
    """The daemon's process number, from the first line of its log, which comes soon."""
    said = wait_until(lambda: log.exists() and _DAEMON.search(log.read_text()), END_TIMEOUT_S)
    assert said
    return int(said[1])


@pytest.fixture(scope="session")
def _reaper() -> None:
    """Orphaned daemons become children of this process instead of init's."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture
def mount_daemon(
    tmp_path: Path, request: pytest.FixtureRequest, _reaper: None
) -> Iterator[Mounter]:
    """Mounts sources as `Mounter` says; checks that their daemons end well and quietly."""
    mounter = Mounter(tmp_path, _timeout(request.node))
    yield mounter
    mounter.close()


@pytest.fixture(scope="module")
def shared_mounter(tmp_path_factory: pytest.TempPathFactory, _reaper: None) -> Iterator[Mounter]:
    """As `mount_daemon`, for mounts that tests of a module share: each leaves them as they were."""
    mounter = Mounter(tmp_path_factory.mktemp("shared"), SHARED_TIMEOUT_S)
    yield mounter
    mounter.close()


@pytest.fixture
def mounted(mount_daemon: Mounter) -> Callable[..., Path]:
    """``mounted(source, *options)``: the path of a fresh mount of ``source``."""

    def mount(source: str | Path, *options: str, quiet: bool = True) -> Path:
        return mount_daemon(source, *options, quiet=quiet).path

    return mount
