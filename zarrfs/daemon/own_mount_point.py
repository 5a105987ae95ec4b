"""A mount point that zarrfs makes if the user names none, and removes when the mount ends.

Only root can write to the directory while nothing is mounted there. So a program that starts after
a failed mount gets an error and does not fill the directory.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from zarrfs.errors import MountError
from zarrfs.fuse.mount_point import prepare_mount_point, resolve_mount_point
from zarrfs.fuse.mount_table import topmost

_MODE = 0o555
_SUFFIXES = (".zarr", ".zip", ".json", ".parquet", ".nc", ".h5", ".hdf5", ".tif", ".tiff", ".grib")
_LONGEST_NAME = 64
_MOST_OF_A_NAME = 1000


def make_mount_point(source: str) -> str:
    """A new directory named after ``source``; if the name is taken, a number follows it.

    Removes the mount of a killed daemon from it first. Raises `MountError`.
    """
    directory = _runtime_directory()
    name = mount_name(source)
    for number in range(1, _MOST_OF_A_NAME):
        path = resolve_mount_point(str(directory / (name if number == 1 else f"{name}-{number}")))
        with suppress(OSError, MountError):
            _remove_leftover(path)
            os.mkdir(path, _MODE)
            os.chmod(path, _MODE)  # whatever the umask is
            return path
        if not os.path.isdir(directory):
            break
    raise MountError(f"cannot make a mount point in {directory}: name one")


def remove_mount_point(path: str) -> None:
    """Remove the directory, unless something is mounted there. Raises nothing."""
    with suppress(OSError):
        os.rmdir(path)


def mount_name(source: str) -> str:
    """``cells`` for ``s3://bucket/cells.zarr``: the last part of a path that has any letters."""
    # The last of chained URLs names the data; a query may hold secrets.
    url = source.rpartition("::")[2] or source
    path = urlsplit(url).path if "://" in url else os.path.abspath(url)
    host = urlsplit(url).hostname if "://" in url else None
    name = Path(path).name or host or ""
    while (stem := next((name[: -len(s)] for s in _SUFFIXES if name.endswith(s)), "")) != "":
        name = stem
    name = re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII).strip("._-")
    return name[:_LONGEST_NAME] or "zarr"


def _remove_leftover(path: str) -> None:
    """Remove a dead mount of zarrfs, or an empty directory, at ``path``."""
    if topmost(path) is not None:
        prepare_mount_point(path, allow_nonempty=False)
    with suppress(FileNotFoundError):
        os.rmdir(path)


def _runtime_directory() -> Path:
    """The directory for mount points, which no other user can change. Raises `MountError`."""
    user = os.geteuid()
    chosen = os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(f"/tmp/zarrfs-{user}")]
    if user == 0:
        candidates.insert(0, Path("/run/zarrfs"))
    elif chosen and os.path.isabs(chosen):
        candidates.insert(0, Path(chosen, "zarrfs"))
    for candidate in candidates:
        with suppress(OSError):
            candidate.mkdir(mode=0o755 if user == 0 else 0o700, exist_ok=True)
            found = candidate.lstat()
            ours = found.st_uid == user and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if stat.S_ISDIR(found.st_mode) and ours and os.access(candidate, os.W_OK):
                return candidate
    raise MountError(f"cannot make a mount point in {candidates[-1]}: name one")
