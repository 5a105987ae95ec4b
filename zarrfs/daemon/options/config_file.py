"""Default mount options from configuration files, by source and mount point.

``/etc/zarrfs/config.toml`` is for all users, ``$XDG_CONFIG_HOME/zarrfs/config.toml`` (or
``~/.config/zarrfs/config.toml``) for one; see the XDG Base Directory Specification:

    options = "memory=2G"

    [[mount]]
    source = "s3://bucket/*"
    options = "disk_cache=/var/cache/zarrfs,immutable"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from zarrfs.errors import UsageError

_SYSTEM = Path("/etc/zarrfs/config.toml")
_LONGEST = 1 << 20
_OF_A_MOUNT = frozenset({"source", "mountpoint", "options"})


def configured(sources: Sequence[str], mount_point: str | None) -> tuple[str, ...]:
    """Texts of options that the files give to a mount, each as after ``-o``; later ones win.

    A local source and the mount point are compared as absolute paths, by patterns of the shell.

    Raises UsageError for a file that cannot be read or says something else.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    named = [source if "://" in source else os.path.abspath(source) for source in sources]
    place = "" if mount_point is None else os.path.abspath(mount_point)
    paths = dict.fromkeys((_SYSTEM, Path(home, "zarrfs/config.toml")))
    return tuple(text for path in paths for text in _options(path, named, place))


def _options(path: Path, sources: Sequence[str], place: str) -> Iterator[str]:
    document = _read(path)
    yield _text(path, document, "options")
    mounts = document.get("mount", [])
    unknown = document.keys() - {"options", "mount"}
    if unknown or not isinstance(mounts, list):
        raise UsageError(f"{path}: {min(unknown, default='mount')}: expected options, [[mount]]")
    for mount in mounts:
        if not isinstance(mount, dict) or mount.keys() - _OF_A_MOUNT:
            raise UsageError(f"{path}: a [[mount]] has source, mountpoint and options")
        pattern = _text(path, mount, "source") or "*"
        at = _text(path, mount, "mountpoint") or "*"
        if all(fnmatchcase(source, pattern) for source in sources) and fnmatchcase(place, at):
            yield _text(path, mount, "options")


def _text(path: Path, document: Mapping[str, Any], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise UsageError(f"{path}: {name} is not a text")
    return value


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            # Under sudo the environment may name a directory of another user.
            if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
                raise UsageError(f"{path} belongs to another user")
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise UsageError(f"{path} has more than {_LONGEST} bytes")
        return tomllib.loads(content.decode())
    except (FileNotFoundError, NotADirectoryError):
        # The home of a service's user may be /dev/null.
        return {}
    except PermissionError as error:
        # As `zarrfs setup` makes /etc/zarrfs, only root enters it: its files are for root's mounts.
        if not os.access(path.parent, os.X_OK, effective_ids=True):
            return {}
        raise UsageError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
