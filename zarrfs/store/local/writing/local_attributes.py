"""Mode and owner of a file that replaces another file."""

from __future__ import annotations

import os
import stat

_AS_IT_IS = -1


def take_over(fd: int, old: os.stat_result | None, directory: os.stat_result) -> None:
    """Give a new file the mode and owner of ``old``, as far as the process may.

    fd : a new file, whose mode followed the umask.
    old : the file that it will replace; None: none.
    directory : the directory that it will lie in.

    Access control lists and extended attributes of ``old`` are not copied. Raises `OSError` for
    a mode that cannot be set: otherwise more users could read or write the file.
    """
    new = os.fstat(fd)
    if old is None:
        # As if the file had been made there (see inode(7) on the set-group-ID bit).
        if directory.st_mode & stat.S_ISGID and new.st_gid != directory.st_gid:
            _chown(fd, _AS_IT_IS, directory.st_gid)
        return
    # Like any write, a replacement clears the set-user-ID bit and the similar bits.
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if new.st_uid != old.st_uid:
        _chown(fd, old.st_uid, _AS_IT_IS)
    if new.st_gid != old.st_gid and not _chown(fd, _AS_IT_IS, old.st_gid):
        # The new group must not get the permissions of the old group.
        mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    if stat.S_IMODE(new.st_mode) != mode:
        os.fchmod(fd, mode)


def _chown(fd: int, uid: int, gid: int) -> bool:
    try:
        os.fchown(fd, uid, gid)
    except OSError:
        return False
    return True
