"""Files in system directories: the mount helper and the units of systemd.

`mount(8)` looks for its helpers in one directory only, whatever PATH says, and systemd wants
to know where a program is.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from zarrfs.daemon.system.ownership import changeable_by_others
from zarrfs.errors import MountError

_HELPER = "mount.zarrfs"
_WRAPPER = "mount.zarrfs.sh"
_SHIPPED_HELPER = "helper=/usr/local/bin/mount.zarrfs"
_SHIPPED_PACKAGE = "package="
# By the type in `mount -t`, and by the one that the mount table shows.
_HELPERS = ("mount.zarrfs", "mount.fuse.zarrfs")
_MADE = ("etc/zarrfs", "var/lib/zarrfs/journal", "var/lib/zarrfs", "run/zarrfs")
_SHIPPED_PROGRAM = "/usr/local/bin/zarrfs"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where what goes.

    program : the command ``zarrfs`` that units run, an absolute path; ``mount.zarrfs``
        stands beside it.
    user : only what this user's own service manager needs.
    root : what stands for ``/``, for packagers and tests.
    """

    program: Path
    user: bool = False
    root: Path = Path("/")

    def install(self) -> list[Path]:
        """Puts everything in its place; returns what is there now.

        Raises `MountError` for what is in the way or not allowed.
        """
        helper = self.program.with_name(_HELPER)
        if not self.user and not helper.exists():
            raise MountError(f"{helper} is not installed")
        if not self.user and self.root == Path("/"):
            self._check_ownership(helper)
        placed = [self._put(path, content) for path, content in self._wanted()]
        if not self.user:
            # systemd-tmpfiles makes it at the next boot; the user may need it earlier.
            (self.root / "etc/zarrfs").mkdir(mode=0o750, exist_ok=True)
        return placed

    def _check_ownership(self, helper: Path) -> None:
        """Raises `MountError` if another user can change a program that root will run."""
        for path in (self.program, helper):
            if (reason := changeable_by_others(path)) is not None:
                raise MountError(
                    f"root would run {path} at every mount, but {reason}; install zarrfs as root, "
                    "in a place that only root can write to"
                )

    def remove(self) -> list[Path]:
        """Takes away what `install` puts; returns what was there."""
        found = [path for path, content in self._wanted() if self._is_ours(path, content)]
        for path in found:
            try:
                path.unlink()
            except OSError as error:
                raise MountError(f"{path}: {error.strerror}") from error
        if not self.user:
            # Directories of mounts, unless they contain files.
            _remove_if_empty(self.root / made for made in _MADE)
        if self.user or self.root != Path("/"):
            # Directories that `install` may have made. The system's own are left alone.
            top = Path.home() if self.user else self.root
            _remove_if_empty(
                parent for path in found for parent in path.parents if top in parent.parents
            )
        return found

    def closed_to_others(self) -> Path | None:
        """The path that keeps users other than root from running the program; None: no path."""
        needed = (self.program, Path(sys.executable).resolve())
        for path in (each for end in needed for each in (*reversed(end.parents), end)):
            with suppress(OSError):
                if path.stat().st_mode & 0o005 not in (0o005, 0o001 if path.is_dir() else 0o005):
                    return path
        return None

    def _wanted(self) -> Iterator[tuple[Path, str]]:
        """Places, each with the text of the file."""
        kind = "user" if self.user else "system"
        unit = files("zarrfs") / "systemd" / kind / "zarrfs@.service"
        text = unit.read_text(encoding="utf-8").replace(_SHIPPED_PROGRAM, str(self.program))
        yield self._units / "zarrfs@.service", text
        if self.user:
            return
        made = files("zarrfs") / "systemd" / "tmpfiles.d" / "zarrfs.conf"
        yield self.root / "etc/tmpfiles.d/zarrfs.conf", made.read_text(encoding="utf-8")
        wrapper = self.wrapper()
        for name in _HELPERS:
            yield self.root / "sbin" / name, wrapper

    def wrapper(self) -> str:
        """The script that mount(8) runs: it says in one line why a user cannot run Python."""
        package = Path(str(files("zarrfs")))
        # Another installation has its package elsewhere.
        own = Path(sys.prefix) in self.program.parents
        text = (files("zarrfs") / "systemd" / _WRAPPER).read_text(encoding="utf-8")
        helper = shlex.quote(str(self.program.with_name(_HELPER)))
        text = text.replace(_SHIPPED_HELPER, f"helper={helper}")
        return text.replace(
            f"\n{_SHIPPED_PACKAGE}\n",
            f"\n{_SHIPPED_PACKAGE}{shlex.quote(str(package)) if own else ''}\n",
        )

    @property
    def _units(self) -> Path:
        if not self.user:
            return self.root / "etc/systemd/system"
        chosen = os.environ.get("XDG_CONFIG_HOME")
        return (Path(chosen) if chosen else Path.home() / ".config") / "systemd" / "user"

    def _put(self, path: Path, content: str) -> Path:
        if os.path.lexists(path) and not self._is_ours(path, content):
            raise MountError(f"{path} exists and is not a file of zarrfs; remove it first")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(content, encoding="utf-8")
            temporary.chmod(0o755 if content.startswith("#!") else 0o644)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise MountError(f"{path}: {error.strerror}") from error
        return path

    @staticmethod
    def _is_ours(path: Path, content: str) -> bool:
        try:
            if path.is_symlink():  # earlier versions linked their helper
                return path.name in _HELPERS and path.readlink().name == _HELPER
            # Another version may have written it, but all begin with the same comment.
            mark = next(line for line in content.splitlines() if not line.startswith("#!"))
            return mark in path.read_text(encoding="utf-8").splitlines()[:2]
        except (OSError, UnicodeDecodeError):
            return False


def _remove_if_empty(directories: Iterable[Path]) -> None:
    """In the order in which they come; what holds something stays."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


def find_program(called: str) -> Path:
    """The absolute path of the command ``zarrfs``, called as ``called``.

    Raises `MountError` where it is not a program of its own.
    """
    found = shutil.which(called) if "/" not in called else called
    if found is None or not os.access(found, os.X_OK) or Path(found).suffix == ".py":
        raise MountError("the command zarrfs is not installed as a program; install the package")
    return Path(os.path.abspath(found))
