"""Whether a program is root's own, with all that it stands on."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

_SHEBANG = b"#!"
_LONGEST_SHEBANG = 4096


def changeable_by_others(program: Path) -> str | None:
    """Why a user other than root can change what ``program`` runs; None if no user can.

    Looked at are the program, its interpreter, the virtual environment that either is in with
    all files in it, and for each of these the directories above and the targets of links.
    """
    seen: set[Path] = set()
    for path in _stands_on(program):
        for each in _with_links(path):
            for part in (each, *each.parents):
                if part in seen:
                    continue
                seen.add(part)
                if (reason := _reason(part)) is not None:
                    return reason
    return None


def _stands_on(program: Path) -> Iterator[Path]:
    """Files and directories that are run or imported."""
    yield program
    interpreter = _interpreter(program)
    if interpreter is not None:
        yield interpreter
    for start in (program, interpreter):
        if start is None:
            continue
        environment = Path(os.path.abspath(start)).parent.parent
        if (environment / "pyvenv.cfg").exists():
            for directory, names, files in os.walk(environment):
                yield from (Path(directory, name) for name in (*names, *files))


def _interpreter(program: Path) -> Path | None:
    """The first word behind ``#!``."""
    try:
        with program.open("rb") as file:
            line = file.read(_LONGEST_SHEBANG).split(b"\n")[0]
    except OSError:
        return None
    words = line.removeprefix(_SHEBANG).split()
    return Path(os.fsdecode(words[0])) if line.startswith(_SHEBANG) and words else None


def _with_links(path: Path) -> Iterator[Path]:
    """``path`` as it is named, and where it really is."""
    absolute = Path(os.path.abspath(path))
    yield absolute
    if (real := Path(os.path.realpath(absolute))) != absolute:
        yield real


def _reason(path: Path) -> str | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path}: {error.strerror}"
    if status.st_uid != 0:
        return f"{path} belongs to {_user_name(status.st_uid)}"
    if stat.S_ISLNK(status.st_mode):
        return None  # of a link the mode means nothing
    # In a directory like /tmp nobody renames or removes what is another's.
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & stat.S_IWOTH and not sticky:
        return f"every user can write to {path}"
    if status.st_mode & stat.S_IWGRP and not sticky and _has_members(status.st_gid):
        return f"a group that is not root's can write to {path}"
    return None


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user {uid}"


def _has_members(gid: int) -> bool:
    """Whether anybody but root is in a group, as far as this machine's own files tell."""
    import grp  # noqa: PLC0415 - seldom needed

    if gid == 0:
        return False
    try:
        named = set(grp.getgrgid(gid).gr_mem) - {"root"}
    except KeyError:
        return True  # nobody knows who is in it
    return bool(named) or any(u.pw_gid == gid and u.pw_uid != 0 for u in pwd.getpwall())
