"""The two C programs, compiled when they are first needed."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parent


def program(name: str, directory: Path) -> Path:
    """The program made of ``<name>.c``, in ``directory``."""
    source = _SOURCES / f"{name}.c"
    path = directory / name
    if path.exists() and path.stat().st_mtime >= source.stat().st_mtime:
        return path
    directory.mkdir(parents=True, exist_ok=True)
    flags: list[str] = []
    if name == "memfs":
        told = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"],
            capture_output=True,
            text=True,
            check=True,
        )
        flags = shlex.split(told.stdout)
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", str(source), "-o", str(path)]
    subprocess.run(command + flags, check=True)
    return path
