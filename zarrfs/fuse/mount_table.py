"""The mount table of the kernel. Reading it accesses no mount."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from zarrfs.errors import MountError

FILE_SYSTEM_TYPE = "fuse.zarrfs"

_TABLE = "/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class MountEntry(NamedTuple):
    """One mount.

    device : major and minor number; of a FUSE mount, the minor names its connection.
    path : where, from this process' root.
    type : of the file system, with its subtype: ``fuse.zarrfs``.
    source : what it shows, as the file system says.
    options : of the mount, as the kernel says them: ro, nosuid, ….
    number : of the mount, which the kernel gives to another one once this is unmounted.
    """

    device: tuple[int, int]
    path: str
    type: str
    source: str
    options: tuple[str, ...] = ()
    number: int = 0


def mounts(type_name: str) -> list[MountEntry]:
    """All mounts of a type that can be seen, in the order in which they were mounted."""
    entries = list(_entries())
    covering = {entry.path: entry for entry in entries}
    return [entry for entry in entries if entry.type == type_name and covering[entry.path] is entry]


def topmost(path: str) -> MountEntry | None:
    """The mount that is seen at ``path``, an absolute path without symbolic links.

    None where ``path`` is not a mount point.
    """
    found = None
    # Later mounts come later, so the last one at a path covers the others.
    for entry in _entries():
        if entry.path == path:
            found = entry
    return found


def own_mount(path: str) -> MountEntry:
    """The mount of zarrfs at ``path``, as for `topmost`. Raises `MountError` if there is none."""
    entry = topmost(path)
    if entry is None:
        raise MountError(f"{path} is not mounted")
    if entry.type != FILE_SYSTEM_TYPE:
        raise MountError(f"{path} is a mount of {entry.type}, not of zarrfs")
    return entry


def mounted_for(process: Path, device: tuple[int, int]) -> bool:
    """Whether a process, by its directory in ``/proc``, sees a mount of zarrfs on ``device``.

    False if this user may not know.
    """
    try:
        entries = list(_entries(str(process / "mountinfo")))
    except OSError:
        return False
    return any(each.device == device and each.type == FILE_SYSTEM_TYPE for each in entries)


def _entries(table_path: str = _TABLE) -> Iterator[MountEntry]:
    with open(table_path, "rb") as table:
        for line in table:
            if (entry := _parse(line)) is not None:
                yield entry


def _parse(line: bytes) -> MountEntry | None:
    # "36 35 98:0 /root /path options [optional fields] - type source super-options"
    mount, separator, file_system = line.partition(b" - ")
    before, after = mount.split(b" "), file_system.split(b" ")
    if not separator or len(before) < 5 or len(after) < 2:
        return None
    major, _, minor = before[2].partition(b":")
    return MountEntry(
        device=(int(major), int(minor)),
        path=_unescape(before[4]),
        type=_unescape(after[0]),
        source=_unescape(after[1]),
        options=(*_unescape(before[5]).split(","),) if len(before) > 5 else (),
        number=int(before[0]),
    )


def _unescape(field: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field))
