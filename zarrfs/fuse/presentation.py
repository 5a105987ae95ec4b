"""How inodes look to the kernel: owner, modes, times and timeouts."""

from __future__ import annotations

import stat
from typing import NamedTuple

import pyfuse3

from zarrfs.fs.attributes import Attributes, Space

_SECTOR = 512  # the unit of st_blocks, whatever st_blksize is
_BLOCK = 4096
NAME_MAX = 255


class PresentationConfig(NamedTuple):
    """Properties of files that `Attributes` do not have.

    uid, gid : of every file and directory.
    umask : taken from 0444 of files and 0555 of directories, and from 0644 and 0755 of
        those that can be written to. Default 0.
    missing_seconds : how long the kernel may remember that a name does not exist.
    """

    uid: int
    gid: int
    umask: int = 0
    missing_seconds: float = 1.0


class Presentation:
    """Fills in what is sent to the kernel."""

    def __init__(self, config: PresentationConfig) -> None:
        self._config = config

    def entry(self, attributes: Attributes) -> pyfuse3.EntryAttributes:
        entry = pyfuse3.EntryAttributes()
        entry.generation = 0
        entry.st_ino = attributes.inode
        entry.entry_timeout = entry.attr_timeout = attributes.fresh_seconds
        if attributes.name_seconds is not None:
            entry.entry_timeout = attributes.name_seconds
        permissions = attributes.mode
        if permissions is None:
            permissions = 0o755 if attributes.is_directory else 0o644
            permissions &= 0o777 if attributes.writable else 0o555
        kind = stat.S_IFDIR if attributes.is_directory else stat.S_IFREG
        entry.st_mode = kind | (permissions & ~self._config.umask)
        # 1 for directories too: it tells `find` not to count subdirectories by it.
        entry.st_nlink = 1
        entry.st_uid = self._config.uid
        entry.st_gid = self._config.gid
        entry.st_rdev = 0
        entry.st_size = attributes.size
        entry.st_blksize = _BLOCK
        entry.st_blocks = -(-attributes.stored // _SECTOR)
        entry.st_mtime_ns = entry.st_ctime_ns = entry.st_atime_ns = attributes.mtime_ns
        return entry

    def missing(self, *, remember: bool) -> pyfuse3.EntryAttributes:
        """Says that a name does not exist, and whether the kernel may remember it."""
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = 0
        entry.entry_timeout = self._config.missing_seconds if remember else 0
        return entry

    def space(self, space: Space) -> pyfuse3.StatvfsData:
        statvfs = pyfuse3.StatvfsData()
        statvfs.f_bsize = statvfs.f_frsize = _BLOCK
        statvfs.f_blocks = space.total // _BLOCK
        statvfs.f_bfree = statvfs.f_bavail = space.free // _BLOCK
        # Counting the inodes would mean walking the store; 0 makes `df -i` print a dash.
        statvfs.f_files = statvfs.f_ffree = statvfs.f_favail = 0
        statvfs.f_namemax = NAME_MAX
        return statvfs
