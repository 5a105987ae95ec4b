"""Whether a directory can become the mount point, found out before anything is started."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs.errors import MountError
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, MountEntry, topmost
from zarrfs.fuse.unmount import helper, unmount

_DEVICE = "/dev/fuse"
_FUSE_CONF = "/etc/fuse.conf"

# Daemons killed one after the other leave their mounts stacked.
_MAX_STALE = 16

# Errors of the kernel at the mount point of a dead daemon: ENOTCONN, and ECONNABORTED
# where its connection was aborted.
_DEAD = (errno.ENOTCONN, errno.ECONNABORTED)


def says_dead(error: OSError) -> bool:
    """Whether the kernel gives this error for a mount whose daemon has died."""
    return error.errno in _DEAD


def resolve_mount_point(path: str) -> str:
    """``path`` absolute and without symbolic links, whether its daemon lives or not.

    A mount point that is given without links is recognised with nothing mounted there
    being asked, which could hang.
    """
    path = os.path.abspath(path)
    if topmost(path) is not None:
        return path
    parent, name = os.path.split(path)
    beside = os.path.join(os.path.realpath(parent), name)
    if topmost(beside) is not None:
        return beside
    return os.path.realpath(path)


def prepare_mount_point(path: str, *, allow_nonempty: bool) -> None:
    """Makes sure that ``path``, as `resolve_mount_point` returns it, can be mounted on.

    Clears away what a zarrfs daemon that was killed has left there. Raises `MountError`
    that says what is in the way.
    """
    for _ in range(_MAX_STALE):
        entry = topmost(path)
        if entry is None or not _is_dead(entry):
            break
        if entry.type != FILE_SYSTEM_TYPE:
            raise MountError(f"mount point {path} holds a dead {entry.type}; unmount that first")
        unmount(path, lazy=True)
    entry = topmost(path)
    if entry is not None and entry.type == FILE_SYSTEM_TYPE:
        raise MountError(f"{path} is mounted already (it shows {entry.source})")
    try:
        with os.scandir(path) as names:
            occupied = next(names, None) is not None
    except FileNotFoundError as error:
        raise MountError(f"mount point {path} does not exist") from error
    except NotADirectoryError as error:
        raise MountError(f"mount point {path} is not a directory") from error
    except OSError as error:
        raise MountError(f"mount point {path}: {error.strerror}") from error
    if occupied and not allow_nonempty:
        raise MountError(f"mount point {path} is not empty (-o nonempty mounts over it)")


@contextmanager
def writable_by_owner(path: str) -> Iterator[None]:
    """Inside, the owner can write to the directory ``path``; afterwards it is as before.

    fusermount3 demands that. A mount point that is otherwise not writable keeps programs from
    filling it while nothing is mounted there.
    """
    if os.geteuid() == 0:
        yield
        return
    # The path leads to the mount when there is one, but this descriptor does not.
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(directory)
        mode = stat.S_IMODE(found.st_mode)
        change = found.st_uid == os.geteuid() and not mode & stat.S_IWUSR
        if change:
            os.fchmod(directory, mode | stat.S_IWUSR)
        try:
            yield
        finally:
            if change:
                os.fchmod(directory, mode)
    finally:
        os.close(directory)


def check_can_mount(*, others: bool) -> None:
    """Makes sure that this user can mount FUSE file systems on this machine.

    others : with access for users other than this one.

    Raises `MountError` that says what is missing.
    """
    if not os.path.exists(_DEVICE):
        raise MountError(
            f"{_DEVICE} does not exist: load the fuse module (modprobe fuse), "
            f"or give the container --device {_DEVICE} --cap-add SYS_ADMIN"
        )
    if os.geteuid() == 0:
        return
    if helper() is None:
        raise MountError("fusermount3 is not installed (package fuse3)")
    if others and not _user_allow_other():
        raise MountError(f"allow_other and allow_root need a line user_allow_other in {_FUSE_CONF}")


def _is_dead(entry: MountEntry) -> bool:
    """Whether the daemon of a FUSE mount has died, as far as this user may know."""
    if not entry.type.startswith("fuse"):
        return False
    try:
        # The kernel remembers attributes, and so a dead mount can still answer `stat`.
        os.statvfs(entry.path)
    except OSError as error:
        return says_dead(error)
    return False


def _user_allow_other() -> bool:
    try:
        with open(_FUSE_CONF, encoding="utf-8", errors="replace") as lines:
            return any(line.strip() == "user_allow_other" for line in lines)
    except OSError:
        return False
