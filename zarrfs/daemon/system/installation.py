"""What the system needs to have in its own places: the mount helper and the units of systemd.

`mount(8)` looks for its helpers in one directory only, whatever PATH says, and systemd wants
to know where a program is.
"""

from __future__ import annotations

import os
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
# By the type in `mount -t`, and by the one that the mount table shows.
_LINKS = ("mount.zarrfs", "mount.fuse.zarrfs")
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
            # What systemd-tmpfiles makes at the next boot, for the first file of a mount.
            (self.root / "etc/zarrfs").mkdir(mode=0o750, exist_ok=True)
        return placed

    def _check_ownership(self, helper: Path) -> None:
        """Raises `MountError` where somebody else can change what root will run."""
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
        _remove_if_empty([] if self.user else [self.root / "etc/zarrfs"])
        if self.user or self.root != Path("/"):
            # Directories that `install` may have made. The system's own are left alone.
            top = Path.home() if self.user else self.root
            _remove_if_empty(
                parent for path in found for parent in path.parents if top in parent.parents
            )
        return found

    def closed_to_others(self) -> Path | None:
        """What keeps users other than root from running the program; None: nothing."""
        needed = (self.program, Path(sys.executable).resolve())
        for path in (each for end in needed for each in (*reversed(end.parents), end)):
            with suppress(OSError):
                if path.stat().st_mode & 0o005 not in (0o005, 0o001 if path.is_dir() else 0o005):
                    return path
        return None

    def _wanted(self) -> Iterator[tuple[Path, str | Path]]:
        """Places, each with a text or with what a symbolic link leads to."""
        kind = "user" if self.user else "system"
        unit = files("zarrfs") / "systemd" / kind / "zarrfs@.service"
        text = unit.read_text(encoding="utf-8").replace(_SHIPPED_PROGRAM, str(self.program))
        yield self._units / "zarrfs@.service", text
        if self.user:
            return
        made = files("zarrfs") / "systemd" / "tmpfiles.d" / "zarrfs.conf"
        yield self.root / "etc/tmpfiles.d/zarrfs.conf", made.read_text(encoding="utf-8")
        for name in _LINKS:
            yield self.root / "sbin" / name, self.program.with_name(_HELPER)

    @property
    def _units(self) -> Path:
        if not self.user:
            return self.root / "etc/systemd/system"
        chosen = os.environ.get("XDG_CONFIG_HOME")
        return (Path(chosen) if chosen else Path.home() / ".config") / "systemd" / "user"

    def _put(self, path: Path, content: str | Path) -> Path:
        if os.path.lexists(path) and not self._is_ours(path, content):
            raise MountError(f"{path} is there already and is not of zarrfs; remove it first")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                temporary.symlink_to(content)
            else:
                temporary.write_text(content, encoding="utf-8")
                temporary.chmod(0o644)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise MountError(f"{path}: {error.strerror}") from error
        return path

    @staticmethod
    def _is_ours(path: Path, content: str | Path) -> bool:
        try:
            if isinstance(content, Path):
                return path.readlink().name == content.name
            # Whichever version wrote it.
            return path.read_text(encoding="utf-8").startswith(content.partition("\n")[0])
        except OSError:
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
