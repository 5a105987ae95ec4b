"""Where figures were measured, without which they say little."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_PACKAGES = ("zarrfs", "tensorstore", "zarr", "zarrs", "numcodecs", "numpy", "pyfuse3")


def describe() -> dict[str, Any]:
    """Machine, system and versions, as JSON; memory in bytes, load of the last minute."""
    return {
        "measured": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _value(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "load": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "libfuse": _output("pkg-config", "--modversion", "fuse3"),
        "commit": _output(
            "git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"
        ),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def _value(path: Path, name: str) -> str:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip()
