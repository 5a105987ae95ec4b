"""Opens files below a directory such that no path and no symlink leads out of it.

``openat2(2)`` with ``RESOLVE_BENEATH`` has the kernel refuse any step outside the root, in one call
and free of races. Two cases need another way: systems without that call (Linux before 5.6, some
sandboxes), and links that it always refuses (an absolute link that points back into the root).
There the file is opened as usual, and the kernel then says where the open file lies. The check is
on the open file, not on a path that may change meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable
from contextlib import suppress

from zarrfs.errors import StoreAccessDenied

_OPENAT2 = 437  # the same number on every architecture except alpha
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RACES = 16
_ACL = "system.posix_acl_access"
# Entries for a user, the group of the file, a group, and the mask of these three.
_ACL_OF_SOME = (0x02, 0x04, 0x08, 0x10)

# O_NONBLOCK: opening a FIFO without a writer must not block. O_NOCTTY: a terminal in the store
# must not become the controlling terminal of the daemon.
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
INSPECT = os.O_PATH | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY

Open = Callable[[int, bytes, int], int]
"""Maps ``(root_fd, relative path, flags)`` to a file descriptor; raises `OSError`."""


class LeavesRoot(Exception):
    """The path leads out of the root through a symlink."""


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def _how(flags: int) -> _OpenHow:
    return _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)


_NO_LINKS = 0
_HOWS = {flags: _how(flags) for flags in (READ, INSPECT, DIRECTORY)}
_HOWS[_NO_LINKS] = _OpenHow(INSPECT, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
_HOW_POINTERS = {flags: ctypes.addressof(how) for flags, how in _HOWS.items()}
_HOW_SIZE = ctypes.sizeof(_OpenHow)

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_syscall.restype = ctypes.c_long


def _openat2(root_fd: int, path: bytes, flags: int) -> int:
    """As `Open`, for the flags named above; raises `OSError` for a link that leads out."""
    for _ in range(_RACES):
        fd: int = _syscall(_OPENAT2, root_fd, path, _HOW_POINTERS[flags], _HOW_SIZE)
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        # EAGAIN: another process renamed a component while the kernel resolved the path.
        if not isinstance(OSError(number, ""), (BlockingIOError, InterruptedError)):
            break
    # In a variable, the error would keep this frame, and with it all data of the callers, until the
    # garbage collector finds both.
    raise OSError(number, os.strerror(number), path)


def openat2_works(directory_fd: int) -> bool:
    """Whether this kernel, in this sandbox, supports ``openat2``."""
    try:
        os.close(_openat2(directory_fd, b".", INSPECT))
    except OSError:
        return False
    return True


def _where(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)


def open_checked(root_fd: int, path: bytes, flags: int) -> int:
    """As `Open`, without ``openat2``; raises `LeavesRoot` if the file lies outside."""
    fd = os.open(path, flags, dir_fd=root_fd)
    try:
        root, opened = _where(root_fd).rstrip(b"/"), _where(fd)
        if opened != (root or b"/") and not opened.startswith(root + b"/"):
            raise LeavesRoot
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_anywhere(root_fd: int, path: bytes, flags: int) -> int:
    """As `Open`, following symlinks wherever they lead."""
    return os.open(path, flags, dir_fd=root_fd)


def open_beneath(root_fd: int, path: bytes, flags: int) -> int:
    """As `Open`, through ``openat2``; raises `LeavesRoot` if the path leads outside."""
    try:
        return _openat2(root_fd, path, flags)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        raise
    except OSError:
        # A slow way for rare cases: an absolute link, a link loop, a socket.
        return open_checked(root_fd, path, flags)


def has_dangling_link(root_fd: int, path: bytes) -> bool:
    """Whether a file is missing because a symlink on its path has no target.

    Such an object is somewhere else, as with git-annex before ``git annex get``.
    """
    try:
        # Mostly there is no link, which one call says.
        os.close(_openat2(root_fd, path, _NO_LINKS))
    except FileNotFoundError:
        return False
    except OSError:
        pass
    parts = path.split(b"/")
    for count in range(1, len(parts) + 1):
        at = b"/".join(parts[:count])
        try:
            os.stat(at, dir_fd=root_fd)
        except OSError:
            with suppress(OSError):
                return stat.S_ISLNK(os.lstat(at, dir_fd=root_fd).st_mode)
            break
    return False


def open_for_others(opener: Open) -> Open:
    """``opener``, but refusing a link to a file that some readers of the link may not read.

    The owner of a link may be any user, and other users read the file with the rights of this
    process. Raises `PermissionError`.
    """

    def open_checked_rights(root_fd: int, path: bytes, flags: int) -> int:
        # Others may replace the link, or the file, after each step.
        for _ in range(_RACES):
            fd = opener(root_fd, path, flags)
            try:
                root = _where(root_fd).rstrip(b"/")
                named = root if path == b"." else root + b"/" + path
                if _where(fd) == (named or b"/"):
                    return fd
                owner = _owner_of_link(root, path)
                if owner is not None and others_may_read(fd, root, owner):
                    return fd
            except FileNotFoundError:
                owner = None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if owner is not None:
                break
        raise PermissionError(13, "is a link to what not all of its readers may read")

    return open_checked_rights


def descriptor_path(fd: int) -> bytes:
    """A path of an open file, whatever is done to its name."""
    return b"/proc/self/fd/%d" % fd


def _group_and_others(mode: int, path: bytes) -> tuple[int, int]:
    """The rights to a file at ``path`` that all of its group have, and all others, as bits ``0o7``.

    An access control list may deny what the mode grants: its entries for single users and groups
    count before that for others, and its mask is what the mode shows of the group.

    https://man7.org/linux/man-pages/man5/acl.5.html
    """
    group, others = mode >> 3 & 0o007, mode & 0o007
    try:
        acl = os.getxattr(path, _ACL)
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
            raise
        return group, others
    for tag, granted, _ in struct.iter_unpack("<HHI", acl[4:]):
        if tag in _ACL_OF_SOME:
            group &= granted
    return group, others & group


def shown_mode(status: os.stat_result, path: bytes) -> int:
    """Read permissions that give no user more access in the mount than below it.

    path : of the file.

    The mount's owner owns all entries of the mount, while the file below may belong to another
    user or group. Such owners and groups get the permissions of others. If the mode denies the
    group more than others, nobody gets that in the mount.
    """
    mode = stat.S_IMODE(status.st_mode)
    group, others = (bits & 0o005 for bits in _group_and_others(mode, path))
    if status.st_gid != os.getegid():
        group = others = group & others
    owner = mode >> 6 & 0o005 if status.st_uid == os.geteuid() else others
    if os.geteuid() == 0:
        owner = 0o005 if stat.S_ISDIR(status.st_mode) else 0o004 | (mode & 0o111 and 1)
    elif status.st_uid != os.geteuid():
        owner |= group
    return owner << 6 | group << 3 | others


def all_readers_may_read(fd: int, root_fd: int, path: bytes) -> bool:
    """Whether all who may enter the directory of an array or group may read an object of it.

    fd : of the object, at ``path`` below ``root_fd``.

    A mount shows that directory with its own mode, and shows nothing of the mode of the object,
    nor of the directories of chunks between them. Raises `OSError`.
    """
    *above, name = path.split(b"/")
    count = len(above)
    if not name.startswith(b".") and name != b"zarr.json":
        # An array of such a name counts as a directory of chunks: too little is shown then.
        while count and above[count - 1].isdigit():
            count -= 1
        if count and above[count - 1] == b"c":
            count -= 1
    root = descriptor_path(root_fd)
    enter = shown_mode(os.fstat(root_fd), root) & 0o011
    read = shown_mode(os.fstat(fd), descriptor_path(fd)) >> 2 & 0o011
    for number in range(1, len(above) + 1):
        at = b"/".join([root, *above[:number]])
        mode = shown_mode(os.stat(at), at)
        if number <= count:
            enter &= mode
        else:
            read &= mode
    return not enter & ~read


def _owner_of_link(root: bytes, path: bytes) -> int | None:
    """The owner of the first link on a path below ``root``; None if there is no link."""
    at = root
    for part in path.split(b"/"):
        at += b"/" + part
        status = os.lstat(at)
        if stat.S_ISLNK(status.st_mode):
            return status.st_uid
    return None


def others_may_read(fd: int, root: bytes, owner: int) -> bool:
    """Whether all users may reach and read an open file, as far as ``owner`` has no say in it.

    root : the path of a directory that everybody in question may enter.

    A file or directory that belongs to ``owner`` may be shown by that user whatever its mode is.
    Raises `OSError`.
    """
    where = _where(fd)
    inside = where.startswith(root + b"/")
    at = root if inside else b""
    *above, _ = where[len(at) + 1 :].split(b"/")
    statuses = []
    for part in above:
        at += b"/" + part
        statuses.append((os.lstat(at), at, 0o001))
    status = os.fstat(fd)
    if not stat.S_ISDIR(status.st_mode):
        statuses.append((status, descriptor_path(fd), 0o004))

    def every_user_has(status: os.stat_result, path: bytes, needed: int) -> int:
        group, others = _group_and_others(status.st_mode, path)
        return group & others & needed

    return all(
        each.st_uid == owner or every_user_has(each, path, needed)
        for each, path, needed in statuses
    )


def check_links(root: str) -> None:
    """Raises `StoreAccessDenied` for a link that leads out of ``root``, and for a pipe or device.

    Looks at every name below ``root`` once; names that appear later go unnoticed.
    """
    real = os.path.realpath(root)
    waiting = [real]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        _check(entry.path, real)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        raise StoreAccessDenied(entry.path, "is neither file nor directory")
        except (FileNotFoundError, NotADirectoryError):
            continue  # it is gone, or there is no such directory, which its reader reports
        except OSError as error:
            raise StoreAccessDenied(directory, str(error.strerror)) from error


def _check(path: str, root: str) -> None:
    target = os.path.realpath(path)
    if os.path.commonpath([target, root]) != root:
        raise StoreAccessDenied(path, "is a link that leads out of the source; see follow_symlinks")
