"""Unmounting, and waiting until the daemon is gone."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
import time
from pathlib import Path

from zarrfs.errors import MountError
from zarrfs.fuse.mount_point import resolve_mount_point
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, topmost
from zarrfs.fuse.unmount import MountBusy, unmount

_ASK_TIMEOUT_S = 5.0
_END_TIMEOUT_S = 60.0
_SEARCH_TIMEOUT_S = 2.0
_MAX_USERS = 5


def umount(mount_point: str, *, lazy: bool = False) -> None:
    """Unmounts ``mount_point`` and returns when its daemon has ended.

    lazy : also where it is in use; the daemon then ends when the last user does, and is
        not waited for.

    Raises `MountError` where nothing of zarrfs is mounted there, it is in use, or the
    daemon does not end.
    """
    path = resolve_mount_point(mount_point)
    entry = topmost(path)
    if entry is None:
        raise MountError(f"{path} is not mounted")
    if entry.type != FILE_SYSTEM_TYPE:
        raise MountError(f"{path} is not a zarrfs mount but one of {entry.type}")
    daemon = _Daemon.of(path)
    try:
        try:
            unmount(path, lazy=lazy)
        except MountBusy as error:
            raise MountBusy(f"{path} is busy{_users(path)}") from error
        if daemon is not None and not lazy and not daemon.wait(_END_TIMEOUT_S):
            raise MountError(
                f"{path} is unmounted, but its daemon, process {daemon.pid}, has not ended"
            )
    finally:
        if daemon is not None:
            daemon.close()


class _Daemon:
    """A process that cannot be mistaken for a later one with its number."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor

    @classmethod
    def of(cls, path: str) -> _Daemon | None:
        """The daemon that serves ``path``; None where it does not tell."""
        pid = _read_pid(path)
        if pid is None:
            return None
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        daemon = cls(pid, descriptor)
        # A daemon in another PID namespace told a number that means someone else here.
        if b"zarrfs" in _command(pid):
            return daemon
        daemon.close()
        return None

    def wait(self, seconds: float) -> bool:
        """Whether the process ended within ``seconds``."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        os.close(self._descriptor)


def _read_pid(path: str) -> int | None:
    """The process number in the mount's own ``.zarrfs/config.json``.

    Read by a thread: a mount that hangs must not hang the command that takes it away.
    """
    found: list[int] = []

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            document = json.loads(Path(path, ".zarrfs", "config.json").read_bytes())
            found.append(int(document["pid"]))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(_ASK_TIMEOUT_S)
    return found[0] if found else None


def _users(path: str) -> str:
    """Who keeps ``path`` busy, as far as one can see: links in /proc, which ask no mount."""
    give_up = time.monotonic() + _SEARCH_TIMEOUT_S
    users: list[str] = []
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        if time.monotonic() > give_up or len(users) == _MAX_USERS:
            break
        if _uses(pid, path):
            users.append(f"{_name(pid)} ({pid})")
    return f": used by {', '.join(users)}" if users else ""


def _uses(pid: str, path: str) -> bool:
    process = Path("/proc", pid)
    with contextlib.suppress(OSError):
        links = [process / "cwd", process / "root", *(process / "fd").iterdir()]
        if any(_below(_target(link), path) for link in links):
            return True
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


def _name(pid: str) -> str:
    try:
        return Path("/proc", pid, "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"


def _command(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return b""
