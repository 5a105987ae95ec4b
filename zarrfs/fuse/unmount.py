"""Unmounts, as root or as the user who mounted."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess

from zarrfs.errors import MountError

_FORCE = 1  # MNT_FORCE
_DETACH = 2  # MNT_DETACH
_NOFOLLOW = 8  # UMOUNT_NOFOLLOW

_HELPER = "fusermount3"
_HELPER_TIMEOUT_S = 20.0


class MountBusy(MountError):
    """Something under the mount point is in use."""


def unmount(path: str, *, lazy: bool = False) -> None:
    """Unmount the file system that is visible at ``path``.

    lazy : detach the mount from its path now, and end it when no program uses it any more. This
        works on a busy mount, and on a mount whose daemon is dead.

    Raises `MountBusy`, or `MountError` for every other reason.
    """
    try:
        call_libc("umount2", os.fsencode(path), _NOFOLLOW | (_DETACH if lazy else 0))
    except PermissionError:
        _run_helper(path, lazy=lazy)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise MountBusy(f"{path} is busy") from error
        raise MountError(f"cannot unmount {path}: {error.strerror}") from error


def force(path: str) -> bool:
    """Break the connection of the mount at ``path`` with its daemon; needs root.

    Every waiting request fails, and so does every later one. Returns whether the connection is
    broken: if the mount is in use, the kernel reports success as "busy".
    """
    try:
        call_libc("umount2", os.fsencode(path), _NOFOLLOW | _FORCE)
    except OSError as error:
        return error.errno == errno.EBUSY
    return True


def helper() -> str | None:
    """Path of the program that mounts and unmounts for users other than root, if installed."""
    return shutil.which(_HELPER, path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")


def call_libc(name: str, *arguments: object) -> None:
    """Raises OSError."""
    # CDLL releases the GIL during the call, without which the daemon could not answer
    # what the kernel may ask it meanwhile.
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _run_helper(path: str, *, lazy: bool) -> None:
    program = helper()
    if program is None:
        raise MountError(f"cannot unmount {path}: {_HELPER} is not installed (package fuse3)")
    command = [program, "-u", *(["-z"] if lazy else []), "--", path]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_HELPER_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MountError(f"cannot unmount {path}: {_HELPER} does not end") from error
    except OSError as error:
        raise MountError(f"cannot unmount {path}: {_HELPER}: {error.strerror}") from error
    if done.returncode == 0:
        return
    says = " ".join(done.stderr.split())
    if "busy" in says:
        raise MountBusy(f"{path} is busy")
    raise MountError(says.removeprefix(f"{_HELPER}: ") or f"cannot unmount {path}")
