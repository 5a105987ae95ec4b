"""The installed commands, as scripts that any user can run."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import zarrfs

SCRIPT = """#!{python}
import sys
sys.path[:0] = {paths!r}
from zarrfs.cli.{module} import main
main()
"""
NAMES = {"zarrfs": "main", "mount.zarrfs": "mount_helper"}
NOBODY = 65534


def write_programs(directory: Path) -> Path:
    """Makes ``directory`` with the commands in it; the path of ``zarrfs``."""
    directory.mkdir()
    paths = [str(Path(zarrfs.__file__).parents[1]), sysconfig.get_path("platlib")]
    for name, module in NAMES.items():
        path = directory / name
        path.write_text(SCRIPT.format(python=interpreter(), paths=paths, module=module))
        path.chmod(0o755)
    return directory / "zarrfs"


def interpreter() -> str:
    """A Python of this version that everyone may run, or else the one that runs this."""
    mine = os.path.realpath(sys.executable)
    system = shutil.which(
        f"python{sys.version_info[0]}.{sys.version_info[1]}", path="/usr/bin:/usr/local/bin"
    )
    return mine if _open_to_all(mine) or system is None else system


def for_everyone() -> bool:
    """Whether another user can run what `write_programs` writes."""
    needed = (interpreter(), zarrfs.__file__, sysconfig.get_path("platlib"))
    return all(map(_open_to_all, needed))


def _open_to_all(path: str) -> bool:
    place = Path(os.path.realpath(path))
    return all(part.stat().st_mode & 0o001 for part in place.parents)
