"""Mode and owner of a file that takes another one's place."""

from __future__ import annotations

import os
import stat

_AS_IT_IS = -1


def take_over(fd: int, old: os.stat_result | None, directory: os.stat_result) -> None:
    """Gives a new file the mode and owner of ``old``, as far as one may.

    fd : a new file, whose mode followed the umask.
    old : what it is going to replace; None: nothing.
    directory : where it is going to lie.

    Access control lists and extended attributes of ``old`` are not taken over.
    Raises `OSError` for a mode that cannot be set, lest the file be open to more users.
    """
    new = os.fstat(fd)
    if old is None:
        # As if it had been made there (inode(7) on the set-group-ID bit).
        if directory.st_mode & stat.S_ISGID and new.st_gid != directory.st_gid:
            _chown(fd, _AS_IT_IS, directory.st_gid)
        return
    # Writing clears the set-user-ID bit and its like, and this is a kind of writing.
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if new.st_uid != old.st_uid:
        _chown(fd, old.st_uid, _AS_IT_IS)
    if new.st_gid != old.st_gid and not _chown(fd, _AS_IT_IS, old.st_gid):
        # What the old group was allowed is not for another one.
        mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    if stat.S_IMODE(new.st_mode) != mode:
        os.fchmod(fd, mode)


def _chown(fd: int, uid: int, gid: int) -> bool:
    try:
        os.fchown(fd, uid, gid)
    except OSError:
        return False
    return True
