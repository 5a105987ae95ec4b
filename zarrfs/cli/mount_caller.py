"""Whether the user of mount(8) asked to write.

mount(8) passes ``rw`` to its helpers unless the user said ``ro``, but a mount here is read-only
unless the user said ``rw``. So this looks into the arguments of mount(8), or into /etc/fstab if
these name only the source or only the mount point.
"""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

_FSTAB = "/etc/fstab"
_ESCAPE = re.compile(r"\\([0-7]{3})")
# Between mount(8) and this process there may be mount.fuse3 and its shell.
_GENERATIONS = 3


def asked_to_write(directory: str) -> bool:
    """True where mount(8) has not called this process."""
    arguments = _of_mount(os.getppid())
    if arguments is None:
        return True
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--options", action="append", default=[])
    parser.add_argument(
        *("-w", "--rw", "--read-write"), dest="options", action="append_const", const="rw"
    )
    parser.add_argument("-T", "--fstab", default=_FSTAB)
    given, _ = parser.parse_known_args(arguments)
    said = _last_word(",".join(given.options))
    return _fstab_says(given.fstab, directory) if said is None else said


def _of_mount(pid: int) -> Sequence[str] | None:
    """The arguments of the mount(8) that is this process or above it."""
    for _ in range(_GENERATIONS):
        process = Path("/proc", str(pid))
        try:
            if (process / "comm").read_text(errors="replace").strip() == "mount":
                command = (process / "cmdline").read_bytes()
                return [os.fsdecode(part) for part in command.split(b"\0")[1:-1]]
            # "PID (name) state parent …", and the name may hold anything.
            pid = int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return None
    return None


def _last_word(options: str) -> bool | None:
    said = [option for option in options.split(",") if option in ("rw", "ro")]
    return said[-1] == "rw" if said else None


def _fstab_says(fstab: str, directory: str) -> bool:
    try:
        lines = Path(fstab).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return False
    for line in lines:
        fields = [_ESCAPE.sub(lambda code: chr(int(code[1], 8)), text) for text in line.split()]
        if len(fields) > 3 and os.path.realpath(fields[1]) == os.path.realpath(directory):
            return bool(_last_word(fields[3]))
    return False
