"""Unmounting, and waiting until the daemon is gone."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from zarrfs.daemon.inquiry import NoAnswer, ask
from zarrfs.daemon.life.end_report import End, EndReader
from zarrfs.errors import MountError
from zarrfs.fuse.mount_point import resolve_mount_point
from zarrfs.fuse.mount_table import mounted_for, own_mount
from zarrfs.fuse.unmount import MountBusy, unmount

_ASK_TIMEOUT_S = 5.0
_END_TIMEOUT_S = 60.0
_LOOK_S = 0.2
# Seconds after which a daemon that stores nothing may have a mount elsewhere. Namespaces that live
# for a moment, such as those of sandboxes, copy all mounts, too.
_ELSEWHERE_S = 30.0
_BUSY_S = 0.5
_SEARCH_TIMEOUT_S = 2.0
_MAX_USERS = 5
_PROCESSES = Path("/proc")


def umount(
    mount_point: str, *, lazy: bool = False, progress: Callable[[int], None] = lambda left: None
) -> None:
    """Unmounts ``mount_point`` and returns when its daemon has ended.

    lazy : also where it is in use; the daemon then ends when the last user does, and is
        not waited for.
    progress : told several times a second how many bytes are left, while changes are stored.

    Raises `MountError` where nothing of zarrfs is mounted there, it is in use, the daemon
    does not end, or it could not store all changes.
    """
    path = resolve_mount_point(mount_point)
    entry = own_mount(path)
    with contextlib.ExitStack() as stack:
        daemon = _Daemon.of(path, stack)
        _unmount(path, lazy=lazy)
        if daemon is not None and not lazy:
            _see_to_the_end(path, daemon, entry.device, progress)


def _unmount(path: str, *, lazy: bool) -> None:
    # Those who only look, `zarrfs status` or `df`, are gone in a moment.
    give_up = time.monotonic() + _BUSY_S
    while True:
        try:
            unmount(path, lazy=lazy)
        except MountBusy as error:
            if time.monotonic() > give_up:
                using = ", ".join(users(path))
                raise MountBusy(f"{path} is busy{using and ': used by '}{using}") from error
            time.sleep(_BUSY_S / 10)
        else:
            return


def _see_to_the_end(
    path: str, daemon: _Daemon, device: tuple[int, int], progress: Callable[[int], None]
) -> None:
    # While it stores changes it is bounded by its own watchdog, and by nothing shorter.
    give_up = time.monotonic() + _END_TIMEOUT_S
    look = time.monotonic() + _ELSEWHERE_S
    while not daemon.wait(_LOOK_S):
        end = daemon.end
        if end.storing:
            progress(end.left)
            give_up = time.monotonic() + _END_TIMEOUT_S
        elif time.monotonic() > look and (holders := elsewhere(device)):
            raise MountError(
                f"{path} is unmounted here, but not in other mount namespaces, those of "
                f"{', '.join(holders)}: its daemon, process {daemon.pid}, serves them"
            )
        elif time.monotonic() > give_up:
            raise MountError(
                f"{path} is unmounted, but its daemon, process {daemon.pid}, has not ended"
            )
    end = daemon.end
    if end.reasons:
        raise MountError(
            f"{path} is unmounted, but not all changes could be stored: {'; '.join(end.reasons)}"
        )
    if not end.stored:
        raise MountError(
            f"{path} is unmounted, but its daemon ended before all changes were stored; see its log"
        )


class _Daemon(NamedTuple):
    """A process that cannot be mistaken for a later one with its number."""

    pid: int
    descriptor: int
    reader: EndReader | None

    @classmethod
    def of(cls, path: str, stack: contextlib.ExitStack) -> _Daemon | None:
        """The daemon that serves ``path``, until ``stack`` ends; None where it does not tell."""
        try:
            (document,) = ask(path, ["config.json"], _ASK_TIMEOUT_S)
        except NoAnswer:
            return None
        pid = document.get("pid")
        if not isinstance(pid, int):
            return None
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        stack.callback(os.close, descriptor)
        # The number of a daemon in another PID namespace belongs to another process here.
        if "zarrfs" not in _content(_PROCESSES / str(pid) / "cmdline"):
            return None
        reader = None
        with contextlib.suppress(KeyError, OSError):  # read-only, or another user's
            reader = EndReader(document["end_report"])
            stack.callback(reader.close)
        return cls(pid, descriptor, reader)

    def wait(self, seconds: float) -> bool:
        """Whether the process ended within ``seconds``."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    @property
    def end(self) -> End:
        return End(stored=True) if self.reader is None else self.reader.read()


def elsewhere(device: tuple[int, int]) -> list[str]:
    """Names and numbers of processes in other mount namespaces that have a mount, one of each."""
    found: dict[str, str] = {_target(_PROCESSES / "self/ns/mnt"): ""}
    for process in _processes(_PROCESSES):
        namespace = _target(process / "ns/mnt")
        if namespace and namespace not in found:
            found[namespace] = _name(process) if mounted_for(process, device) else ""
    return list(filter(None, found.values()))[:_MAX_USERS]


def users(path: str, processes: Path = _PROCESSES) -> list[str]:
    """The names and numbers of processes that use the mount at ``path``, at most a few.

    Reads what the kernel tells about processes and asks no mount. The kernel tells a process's
    mappings only when the process does not change them, which may take for ever. So a thread
    looks for a limited time, at the mappings after all open files.
    """
    found: list[Path] = []

    def look() -> None:
        for uses in (_has_open, _has_mapped):
            for process in _processes(processes):
                if process not in found and uses(process, path):
                    found.append(process)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_SEARCH_TIMEOUT_S)
    return [_name(process) for process in _processes(processes) if process in found][:_MAX_USERS]


def _processes(directory: Path) -> list[Path]:
    """In the order of their numbers."""
    numbers = (name for name in os.listdir(directory) if name.isdigit())
    return [directory / number for number in sorted(numbers, key=int)]


def _has_open(process: Path, path: str) -> bool:
    with contextlib.suppress(OSError):
        links = [process / "cwd", process / "root", *(process / "fd").iterdir()]
        return any(_below(_target(link), path) for link in links)
    return False


def _has_mapped(process: Path, path: str) -> bool:
    with contextlib.suppress(OSError):
        maps = (process / "maps").read_text(errors="surrogateescape")
        return any(_below(line.partition("/")[2], path[1:]) for line in maps.splitlines())
    return False


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _name(process: Path) -> str:
    return f"{_content(process / 'comm').strip() or '?'} ({process.name})"


def _content(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
