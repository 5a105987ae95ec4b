"""Attributes of one inode, and of the file system."""

from __future__ import annotations

from typing import NamedTuple


class Attributes(NamedTuple):
    """One inode.

    size : bytes; 0 for directories.
    stored : bytes that the store really holds for it; shown as ``st_blocks``.
    mtime_ns : nanoseconds since the epoch.
    fresh_seconds : how long this may be cached by the kernel.
    writable : whether it can be changed (a directory: entries removed).
    name_seconds : how long its name may be; None: as long as all the rest.
    mode : permissions before the mount's umask; None: those of any file.
    """

    inode: int
    is_directory: bool
    size: int
    stored: int
    mtime_ns: int
    fresh_seconds: float
    writable: bool = False
    name_seconds: float | None = None
    mode: int | None = None


class DirectoryEntry(NamedTuple):
    """A name in a directory.

    cookie : where to go on after this entry; greater than any before it.
    """

    name: str
    attributes: Attributes
    cookie: int


class OpenMode(NamedTuple):
    """How a file is opened.

    read : whether it may be read, and thus mapped.
    truncate : changes nothing, because files have a fixed size, like devices. Where arrays may be
        resized, it leaves none of their rows.
    append : whether all writes go behind the end. The kernel may not know of what came there
        through other files, so where the end can move, such a file cannot be mapped, and
        each write to it goes where the end is.
    sync : whether each write is to be stored when it returns. The kernel asks for that itself
        after a write through its pages, but not after one past them.
    paged : whether it is read through the kernel's pages, which keep what was read.
    """

    read: bool = True
    write: bool = False
    truncate: bool = False
    append: bool = False
    sync: bool = False
    paged: bool = True


class OpenFile(NamedTuple):
    """An open file.

    keep_cache : whether pages that the kernel has of the inode are still good.
    direct : whether the kernel keeps out of what is read and written: where the content
        is made for each open, so that it must not be cached at all and may not have the
        size that `Attributes` told, and where it is written only.
    """

    handle: int
    keep_cache: bool
    direct: bool


class Space(NamedTuple):
    """Bytes in all and bytes free, of what holds the store."""

    total: int
    free: int
